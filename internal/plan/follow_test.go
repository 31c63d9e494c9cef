// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
		t.Run(engine.name, func(t *testing.T) {
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
				if slices.ContainsFunc(m.actions, func(action Action) bool {
					follow, isFollow := action.(Follow)
					return isFollow && follow.Server.Pod.Name == "db-1" && follow.Source.Member == "db-0"
				}) {
					return
				}
				g.topology = m.topology
			}
			t.Errorf("it isn't told to follow, and the topology is %+v", g.topology)
		})
	}
}
