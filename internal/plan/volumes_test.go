// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

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
	}{
		"stays":                        {func(*snapshotBuilder) {}, nil},
		"stays where the spec says so": {whenScaled(v1alpha1.RetentionPolicyRetain), nil},
		"goes where the spec says so":  {goes, []string{"delete PersistentVolumeClaim data-db-1, whose member was scaled away"}},
		"stays while its pod is still there": {func(b *snapshotBuilder) {
			goes(b)
			b.withMember(func(m *Member) { m.Pod.Name, m.Pod.UID = "db-1", "uid-of-db-1" })
		}, nil},
		"stays while the primary is away": {func(b *snapshotBuilder) { goes(b); b.Members[0].Probe.Answers = false }, nil},
		"stays while the primary takes no writes": {
			func(b *snapshotBuilder) { goes(b); b.Members[0].Probe.Engine.Role = v1alpha1.MemberRoleReplica }, nil,
		},
		"stays in a shutdown": {func(b *snapshotBuilder) { goes(b); b.Database.Spec.Shutdown = true }, nil},
		"stays if it is somebody else's": {
			func(b *snapshotBuilder) {
				goes(b)
				b.Objects[Ref{KindVolumeClaim, "data-db-1"}].GetLabels()[v1alpha1.LabelOwnerUID] = string(anotherUID)
			}, nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := aDatabase().withMember()
			wanted := desired(b)
			wanted.setTopology(true, settled(b))
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
