//go:build successor

// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// graceOf returns the form of a workload, and how long its members may take to
// stop, which is what the next form changes.
func graceOf(t *testing.T, in Input) (form string, seconds int64) {
	t.Helper()
	r, problem := resolve(in)
	if problem != nil {
		t.Fatal(problem)
	}
	var workload appsv1.StatefulSet
	workloadOf(t, &r, &workload)
	return r.template.version, *workload.Spec.Template.Spec.TerminationGracePeriodSeconds
}

// TestTheNextBuildKeepsTheFormOfWhatExistsUntilTheUserAsks is about a build that
// has another form; that it renders the former one byte for byte is what the
// golden files say, which hold under this tag too.
func TestTheNextBuildKeepsTheFormOfWhatExistsUntilTheUserAsks(t *testing.T) {
	for sentence, row := range map[string]struct {
		options []func(*Input)
		form    string
		grace   int64
	}{
		"a new database has the next one":       {nil, "2", grace + 10},
		"one that exists keeps its own":         {[]func(*Input){recordedAs("1")}, "1", grace},
		"it does so whatever else is asked for": {[]func(*Input){recordedAs("1"), adopting("1")}, "1", grace},
		"nor is a form adopted by a typo":       {[]func(*Input){recordedAs("1"), adopting("3")}, "1", grace},
		"it adopts the next one when asked":     {[]func(*Input){recordedAs("1"), adopting("2")}, "2", grace + 10},
		"and keeps that":                        {[]func(*Input){recordedAs("2")}, "2", grace + 10},
	} {
		t.Run(sentence, func(t *testing.T) {
			form, seconds := graceOf(t, anInput(append(row.options, withVolume)...))
			if form != row.form || seconds != row.grace {
				t.Errorf("got the form %s with %d s, want %s with %d s", form, seconds, row.form, row.grace)
			}
		})
	}
}

// TestWhoAdoptsAFormAdoptsTheDefaults but for the class of volumes, which no
// workload can change.
func TestWhoAdoptsAFormAdoptsTheDefaults(t *testing.T) {
	in := anInput(withVolume, recordedAs("1"), func(in *Input) { in.Recorded.Defaults = `{"storageClass":"first"}` })
	if got := placementOf(t, in).class; got != "first" {
		t.Fatalf("its class is %s", got)
	}
	adopting("2")(&in)
	withSomeDefaults(&in)
	// The image of a version stays what it was resolved to.
	want := placementOf(t, anInput(withVolume, withSomeDefaults))
	want.class, want.image = "first", "redis:2.0"
	if got := placementOf(t, in); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestTheFilesOfAFormGoWithIt keeps the ConfigMap of what exists, which the pod
// template names.
func TestTheFilesOfAFormGoWithIt(t *testing.T) {
	nameOf := func(options ...func(*Input)) string {
		desired, problem := Render(anInput(options...))
		if problem != nil {
			t.Fatal(problem)
		}
		return desired.ConfigName
	}
	former, next := configMapName("db", engine{}.Files(nil)), nameOf()
	if got := nameOf(recordedAs("1")); got != former || next == former {
		t.Errorf("a database that exists has %s, and a new one %s; want %s, and another", got, next, former)
	}
}
