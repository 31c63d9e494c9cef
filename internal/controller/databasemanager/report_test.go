// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// fill gives everything in a value another value than zero.
func fill(value reflect.Value) {
	switch value.Kind() {
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[metav1.Time]() {
			value.Set(reflect.ValueOf(metav1.Unix(1700000000, 0)))
			return
		}
		for _, field := range value.Fields() {
			fill(field)
		}
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0))
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem())
	case reflect.String:
		value.SetString("text")
	case reflect.Bool:
		value.SetBool(true)
	default:
		value.SetInt(7)
	}
}

// A field that isn't written is missing for users, and differs from what is wanted at
// each look: it would be written again and again.
func TestEveryFieldOfTheStatusIsWritten(t *testing.T) {
	var all v1alpha1.DatabaseManagerStatus
	fill(reflect.ValueOf(&all).Elem())
	for sentence, want := range map[string]v1alpha1.DatabaseManagerStatus{"all of them": all, "none": {Members: []v1alpha1.MemberStatus{{Name: "db-0"}}}} {
		t.Run(sentence, func(t *testing.T) {
			encoded, err := json.Marshal(statusFields(want))
			if err != nil {
				t.Fatal(err)
			}
			var got v1alpha1.DatabaseManagerStatus
			if err := json.Unmarshal(encoded, &got); err != nil {
				t.Fatal(err)
			}
			if difference := cmp.Diff(want, got); difference != "" {
				t.Errorf("what is written differs (-want +got):\n%s", difference)
			}
		})
	}
}

// TestAStatusThatMayPassIsWrittenAMomentLater: what a database goes through in less
// than that costs no write, and nobody is told.
func TestAStatusThatMayPassIsWrittenAMomentLater(t *testing.T) {
	begun := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	after := begun.Add
	ready := func(value metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: value, Reason: v1alpha1.ReasonWaitingForMember, Message: message}}
	}
	for sentence, row := range map[string]struct {
		written []metav1.Condition
		at      []time.Time // of syncs that find another status
		waits   []time.Duration
		writes  int
	}{
		"but not the first one":                     {nil, []time.Time{begun}, []time.Duration{0}, 1},
		"nor one that changes what Ready is":        {ready(metav1.ConditionTrue, ""), []time.Time{begun}, []time.Duration{0}, 1},
		"at first":                                  {ready(metav1.ConditionFalse, ""), []time.Time{begun}, []time.Duration{statusPatience}, 0},
		"while it goes on differing":                {ready(metav1.ConditionFalse, ""), []time.Time{begun, after(statusPatience / 4)}, []time.Duration{statusPatience, statusPatience * 3 / 4}, 0},
		"and then it is":                            {ready(metav1.ConditionFalse, ""), []time.Time{begun, after(statusPatience)}, []time.Duration{statusPatience, 0}, 1},
		"however often there was another meanwhile": {ready(metav1.ConditionFalse, ""), []time.Time{begun, after(statusPatience - 1), after(statusPatience)}, []time.Duration{statusPatience, 1, 0}, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			e, _, owners := anExecution(nil, []runtime.Object{theDatabase()})
			recorder := events.NewFakeRecorder(10)
			e.config.Recorder = recorder
			e.snapshot.Database.Status.Conditions = row.written
			for i, at := range row.at {
				wait, _ := e.report(t.Context(), e.key, e.snapshot, plan.Desired{}, plan.Plan{}, plan.Outcome{IsDone: true}, at)
				if wait != row.waits[i] {
					t.Errorf("it waits for %s, want %s", wait, row.waits[i])
				}
			}
			if writes := writesOf(owners.Actions()); len(writes) != row.writes {
				t.Errorf("the requests are %v, want %d", writes, row.writes)
			}
		})
	}
}
