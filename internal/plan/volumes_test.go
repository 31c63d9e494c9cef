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

func TestTheVolumeOfAMemberThatWasScaledAway(t *testing.T) {
	whenScaled := func(policy v1alpha1.RetentionPolicy) func(*snapshotBuilder) {
		return func(b *snapshotBuilder) {
			b.Database.Spec.Storage.Retention = &v1alpha1.StorageRetention{WhenScaled: policy}
		}
	}
	goes := whenScaled(v1alpha1.RetentionPolicyDelete)
	for sentence, row := range map[string]struct {
		change  func(*snapshotBuilder)
		deletes []string
		isNamed bool // as one whose acknowledgement commits rest on
	}{
		"stays":                          {func(*snapshotBuilder) {}, nil, false},
		"stays where the spec says so":   {whenScaled(v1alpha1.RetentionPolicyRetain), nil, false},
		"goes where the spec says so":    {goes, []string{"delete PersistentVolumeClaim data-db-1, whose member was scaled away"}, false},
		"stays while commits rest on it": {goes, nil, true},
		"stays while its pod is still there": {func(b *snapshotBuilder) {
			goes(b)
			b.withMember(func(m *Member) { m.Pod.Name, m.Pod.UID = "db-1", "uid-of-db-1" })
		}, nil, false},
		"stays while a pod of that name is, whoever has made it": {
			func(b *snapshotBuilder) {
				goes(b)
				b.Strangers = append(b.Strangers, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1"}})
			}, nil, false,
		},
		"stays while the primary is away": {func(b *snapshotBuilder) { goes(b); b.Members[0].Probe.Answers = false }, nil, false},
		"stays while the primary takes no writes": {
			func(b *snapshotBuilder) { goes(b); b.Members[0].Probe.Engine.Role = v1alpha1.MemberRoleReplica }, nil, false,
		},
		"stays in a shutdown": {func(b *snapshotBuilder) { goes(b); b.Database.Spec.Shutdown = true }, nil, false},
		"stays if it is somebody else's": {
			func(b *snapshotBuilder) {
				goes(b)
				b.Objects[Ref{KindVolumeClaim, "data-db-1"}].GetLabels()[v1alpha1.LabelOwnerUID] = string(anotherUID)
			}, nil, false,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := aDatabase().withMember()
			wanted := desired(b)
			topology := settled(b)
			if row.isNamed {
				topology.Members = []TopologyMember{{"db-1", "uid-of-PersistentVolumeClaim data-db-1"}}
				b.Members[0].Pod.Labels[v1alpha1.LabelRole] = string(v1alpha1.MemberRolePrimary)
			}
			wanted.setTopology(true, topology)
			b.withAll(wanted)
			left := aChild(Ref{KindVolumeClaim, "data-db-1"})
			left.IsRetained, left.Hash = true, string(ourUID)+"-initialized"
			b.with(KindVolumeClaim, asObject(b.Database, left))
			b.withTopology(wanted.Topology.Topology)
			row.change(b)
			wanted.Topology.move = b.build().move(wanted.Topology.Topology, anEngine(), noon())
			todo := Make(b.build(), wanted, nil, noon())
			deletes := slices.DeleteFunc(actionsOf(todo), func(action string) bool { return action[:6] != "delete" })
			if !slices.Equal(deletes, row.deletes) && len(deletes)+len(row.deletes) > 0 {
				t.Errorf("it does %q, want %q", actionsOf(todo), row.deletes)
			}
			for _, action := range todo.Actions {
				if deletion, isDeletion := action.(DeleteVolume); isDeletion && (deletion.UID != types.UID("uid-of-PersistentVolumeClaim data-db-1")) {
					t.Errorf("it means the UID %s", deletion.UID)
				}
			}
		})
	}
}
