// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestADatabaseIsRollingFromTheChangeOn holds that the status doesn't say that
// the spec is carried out in the moment between the change of the workload and
// its controller's look at it.
func TestADatabaseIsRollingFromTheChangeOn(t *testing.T) {
	lags := func(b *snapshotBuilder) {
		b.Objects[b.workloadRef()].SetGeneration(2)
		switch workload := b.Objects[b.workloadRef()].(type) {
		case *appsv1.StatefulSet:
			workload.Status.ObservedGeneration = 1
		case *appsv1.Deployment:
			workload.Status.ObservedGeneration = 1
		}
	}
	isNew := func(b *snapshotBuilder) { b.Objects[b.workloadRef()].SetGeneration(1) }
	for sentence, row := range map[string]struct {
		database *snapshotBuilder
		change   func(*snapshotBuilder)
		reason   string
	}{
		"a StatefulSet whose controller has seen the change": {aDatabase(), func(*snapshotBuilder) {}, v1alpha1.ReasonAvailable},
		"a StatefulSet whose controller hasn't":              {aDatabase(), lags, v1alpha1.ReasonRolling},
		"a StatefulSet that its controller never saw":        {aDatabase(), isNew, v1alpha1.ReasonAvailable},
		"a Deployment whose controller has seen the change":  {aDatabase().ephemeral(), func(*snapshotBuilder) {}, v1alpha1.ReasonEphemeralStorage},
		"a Deployment whose controller hasn't":               {aDatabase().ephemeral(), lags, v1alpha1.ReasonRolling},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := row.database.withMember()
			wanted := desired(b)
			wanted.setTopology(b.isDurable(), settled(b))
			b.withAll(wanted)
			row.change(b)
			status := Report(b.build(), wanted, Make(b.build(), wanted, nil, noon()), Outcome{IsDone: true}, noon())
			if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Reason; got != row.reason {
				t.Errorf("Ready has the reason %s, want %s", got, row.reason)
			}
		})
	}
}
