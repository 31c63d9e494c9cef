// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/internal/played"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func aPeer(name string, holder types.UID, role v1alpha1.MemberRole) peer {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("pod-" + name)}}
	return peer{
		server: Server{Pod: PodRef{Name: pod.Name, UID: pod.UID}}, holder: holder,
		answers: true, askedAt: noon(), role: role, progress: Progress{Position: "a", IsDrained: true},
	}
}

// TestAMemberThatWasNamedBeforeItExistedFollows scales out onto volumes that were
// kept: what is on them follows nobody by itself, and a replica of such an engine
// is told to only once it is named together with its data.
func TestAMemberThatWasNamedBeforeItExistedFollows(t *testing.T) {
	for _, engine := range playedEngines() {
		t.Run(engine.Name, func(t *testing.T) {
			g := group{
				database: "orders", engine: engine, wanted: 2, isSync: true,
				topology: Topology{
					State: TopologyInitialized, Epoch: 3, DataID: "data", Primary: "db-0", Holder: "claim-0",
					Members: []TopologyMember{{Name: "db-1"}},
				},
				peers: []peer{aPeer("db-0", "claim-0", v1alpha1.MemberRolePrimary), aPeer("db-1", "claim-1", v1alpha1.MemberRoleReplica)},
				host:  func(name string) string { return name + ".members" }, port: 1, now: noon(),
			}
			for range 3 {
				m := g.next()
				if follow, isTold := firstFollow(m); isTold && follow.Pod.Name == "db-1" && follow.Source.Member == "db-0" {
					return
				}
				g.topology = m.topology
			}
			t.Errorf("it isn't told to follow, and the topology is %+v", g.topology)
		})
	}
}

// TestAMemberWhoseHistoryIsUnrelatedCopiesAll has a primary start again, and with
// it a history, after another member was fenced in the former one: where following
// copies everything, nothing is to be waited for.
func TestAMemberWhoseHistoryIsUnrelatedCopiesAll(t *testing.T) {
	for sentence, row := range map[string]struct {
		counts  played.Counting
		follows bool
	}{
		"where following copies everything":            {played.Attached, true},
		"where it goes on from what the member has":    {played.Willing, false},
		"where it does, and the primary knows by name": {played.Named, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			engine := playedEngine{Kind: played.Kind{Counts: row.counts}, most: 1}
			g := group{
				database: "orders", engine: unrelated{engine}, wanted: 2, isSync: true,
				topology: Topology{
					State: TopologyInitialized, Epoch: 1, DataID: "data", Primary: "db-0", Holder: "claim-0", Required: 1,
					Members: []TopologyMember{{Name: "db-1", Holder: "claim-1"}},
				},
				peers: []peer{aPeer("db-0", "claim-0", v1alpha1.MemberRolePrimary), aPeer("db-1", "claim-1", v1alpha1.MemberRoleReplica)},
				host:  func(name string) string { return name + ".members" }, port: 1, now: noon(),
			}
			_, follows := firstFollow(g.next())
			if follows != row.follows {
				t.Errorf("it is told to follow: %t, want %t", follows, row.follows)
			}
		})
	}
}

// unrelated is an engine in which each member has a history of its own.
type unrelated struct{ playedEngine }

func (unrelated) Compare(_, _ string) Order { return OrderUnknown }

// firstFollow is the first action that has a member follow another.
func firstFollow(m move) (Follow, bool) {
	for _, action := range m.actions {
		if follow, isFollow := action.(Follow); isFollow {
			return follow, true
		}
	}
	return Follow{}, false
}
