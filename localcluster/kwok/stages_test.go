// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

func TestStagesAreThoseThatNothingRepeats(t *testing.T) {
	stages, err := fastStages()
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{"Node": {"node-initialize"}, "Pod": {"pod-ready", "pod-complete", "pod-delete"}} {
		found := stages[internalversion.StageResourceRef{APIGroup: "v1", Kind: kind}]
		if len(found) != len(want) {
			t.Fatalf("there are %d for a %s", len(found), kind)
		}
		for i, stage := range found {
			if stage.Name != want[i] || stage.Spec.Delay != nil {
				t.Errorf("stage %s of a %s waits %+v", stage.Name, kind, stage.Spec.Delay)
			}
		}
		if _, err := lifecycle.NewLifecycle(found); err != nil {
			t.Errorf("kwok refuses those of a %s: %v", kind, err)
		}
	}
	if len(stages) != 2 {
		t.Errorf("there are stages for %d kinds", len(stages))
	}
}
