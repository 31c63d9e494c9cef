// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func withConfig(name, value string) func(*Input) {
	return func(in *Input) {
		in.Database.Spec.Config = map[string]v1alpha1.ConfigValue{name: v1alpha1.ConfigValue(value)}
	}
}

func TestOnlyAParameterThatIsFixedChangesTheWorkload(t *testing.T) {
	before, problem := Render(anInput())
	if problem != nil {
		t.Fatal(problem)
	}
	for name, changesWorkload := range map[string]bool{"databases": true, "timeout": false} {
		after, problem := Render(anInput(withConfig(name, "7")))
		if problem != nil {
			t.Fatal(problem)
		}
		if (before.Workload().Hash != after.Workload().Hash) != changesWorkload || (before.ConfigName != after.ConfigName) != changesWorkload {
			t.Errorf("%s: the workload goes from %s with %s to %s with %s", name,
				before.Workload().Hash, before.ConfigName, after.Workload().Hash, after.ConfigName)
		}
		if live := after.Live["timeout"]; changesWorkload != (live == "0") {
			t.Errorf("%s: the live timeout is %q", name, live)
		}
		if len(after.Parameters) != 1 || after.Parameters[0].Name != name {
			t.Errorf("%s: the parameters that the spec sets are %v", name, after.Parameters)
		}
	}
}

func TestAParameterThatIsNotAllowedChangesNothingAndSaysWhatIs(t *testing.T) {
	for sentence, row := range map[string]struct{ name, value, message string }{
		"an unknown name": {"rename-command", "1", `spec.config has "rename-command", which isn't a parameter of redis that may be set: take it out. Those that may be set are databases, timeout`},
		"a wrong value":   {"timeout", "soon", `spec.config.timeout is "soon"; allowed is a digit: correct it, or take it out for the default, 0`},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, problem := Render(anInput(withConfig(row.name, row.value)))
			if problem == nil || problem.Reason != v1alpha1.ReasonInvalidSpec || problem.Message != row.message {
				t.Errorf("got %+v, want %s", problem, row.message)
			}
		})
	}
}

func TestEveryEngineTakesItsOwnDefaultsForWhatTheyAre(t *testing.T) {
	for _, engine := range allEngines() {
		before, problem := Render(anInput(func(in *Input) { in.Engine = engine }))
		if problem != nil {
			t.Fatal(problem)
		}
		config := map[string]v1alpha1.ConfigValue{}
		for _, parameter := range engine.Parameters() {
			if value, isAllowed := parameter.Read(parameter.Default); !isAllowed || value != parameter.Default {
				t.Errorf("%s: the default %q of %s is read as %q, %t", engine.Type(), parameter.Default, parameter.Name, value, isAllowed)
			}
			if parameter.IsLive {
				config[parameter.Name] = v1alpha1.ConfigValue(parameter.Default)
			}
		}
		after, problem := Render(anInput(func(in *Input) { in.Engine, in.Database.Spec.Config = engine, config }))
		if problem != nil {
			t.Fatal(problem)
		}
		if before.Live.String() != after.Live.String() || encode(t, before) != encode(t, plan.Desired{
			Stem: after.Stem, Children: after.Children, Claims: after.Claims, Topology: after.Topology, Members: after.Members,
			Live: after.Live, ConfigName: after.ConfigName,
		}) {
			t.Errorf("%s: the defaults, where the spec says them, change something", engine.Type())
		}
	}
}

func TestNoParameterHasTwoNamesOrALineBreak(t *testing.T) {
	for _, engine := range allEngines() {
		last := ""
		for _, parameter := range engine.Parameters() {
			if parameter.Name <= last {
				t.Errorf("%s: %s comes after %s", engine.Type(), parameter.Name, last)
			}
			last = parameter.Name
			if strings.ContainsAny(parameter.Name+parameter.Default, "=\n\r") || parameter.Allowed == "" {
				t.Errorf("%s: %+v", engine.Type(), parameter)
			}
			for _, hostile := range []string{"1\n1", "1\r", "\x00", "on\nport=1", "'", `"`, "1;1", "1 1"} {
				if value, isAllowed := parameter.Read(hostile); isAllowed && strings.ContainsAny(value, "\n\r\x00") {
					t.Errorf("%s: %s takes %q", engine.Type(), parameter.Name, hostile)
				}
			}
		}
	}
}
