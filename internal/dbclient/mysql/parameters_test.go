//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

// forEachVersion runs a test with each version of each engine.
func forEachVersion(t *testing.T, test func(*testing.T, product)) {
	for _, p := range []product{mysqlProduct(), mariaDBProduct()} {
		for _, version := range p.engine.Versions() {
			p.image, _ = p.engine.Image(version)
			t.Run(p.image, func(t *testing.T) { test(t, p) })
		}
	}
}

// forEachVersionInFull is forEachVersion, and forEach where a run is to be short.
func forEachVersionInFull(t *testing.T, test func(*testing.T, product)) {
	if testing.Short() {
		forEach(t, test)
		return
	}
	forEachVersion(t, test)
}

// samples are values of a parameter in the form in which the server shows them,
// as what is told of its values says: the default, the least and the greatest
// one, and each word, or none of them and all.
func samples(t *testing.T, known plan.Parameter) []string {
	t.Helper()
	values := []string{known.Default}
	words, isSet := strings.CutPrefix(known.Allowed, "any of ")
	words, _, _ = strings.Cut(words, ";")
	bounds := regexp.MustCompile(`([-+\w.:]*\d[-+\w.:]*) to ([-+\w.:]+)`).FindStringSubmatch(known.Allowed)
	switch oneOf, isOne := strings.CutPrefix(known.Allowed, "one of "); {
	case isOne:
		values = append(values, strings.Split(oneOf, ", ")...)
	case isSet:
		values = append(values, "", strings.ReplaceAll(words, ", ", ","))
	case known.Allowed == "on or off":
		values = append(values, "on", "off")
	case bounds != nil:
		values = append(values, bounds[1], greatest(known.Name, bounds[2]))
	default:
		t.Fatalf("%s: nothing follows from %q", known.Name, known.Allowed)
	}
	if known.Name == "time_zone" {
		values = append(values, "+8:00", "-00:30")
	}
	if strings.Contains(known.Allowed, "decimals") {
		values = append(values, "12.345678", "10.000001", "11.5")
	}
	for i, value := range values {
		shown, isAllowed := known.Read(value)
		if !isAllowed {
			t.Fatalf("%s: %q isn't allowed, and %q says it is", known.Name, value, known.Allowed)
		}
		values[i] = shown
	}
	return values
}

// greatest is the greatest value of a parameter that this machine has room for.
func greatest(name, told string) string {
	switch name {
	case "innodb_redo_log_capacity", "innodb_log_file_size":
		return "512M"
	case "innodb_buffer_pool_size":
		return "3G"
	case "table_open_cache":
		// Each takes two files, of those that a process may open.
		return "4500"
	default:
		return told
	}
}

// sampled are settings that have the nth sample of each parameter.
func sampled(t *testing.T, parameters []plan.Parameter, n int) plan.Settings {
	t.Helper()
	settings := plan.Settings{}
	for _, known := range parameters {
		values := samples(t, known)
		settings[known.Name] = values[n%len(values)]
	}
	return settings
}

func split(parameters []plan.Parameter) (live, fixed []plan.Parameter) {
	for _, known := range parameters {
		if known.IsLive {
			live = append(live, known)
		} else {
			fixed = append(fixed, known)
		}
	}
	return live, fixed
}

func TestARunningServerTakesEachValueAndShowsItAsItWasRead(t *testing.T) {
	forEachVersion(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(""))
		connection := member.operator(t, adminPassword)
		live, _ := split(p.engine.Parameters())
		want := plan.LiveDefaults(live)
		for _, known := range live {
			for _, value := range append(samples(t, known), known.Default) {
				want[known.Name] = value
				if err := connection.Configure(t.Context(), plan.Settings{known.Name: value}); err != nil {
					t.Errorf("%s = %q: %v", known.Name, value, err)
				}
				state, err := connection.State(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				shown := plan.ParseSettings(state.Settings)
				if different := shown.Without(want); len(different) > 0 {
					t.Errorf("%s = %q: it shows %v", known.Name, value, different)
					want = shown
				}
			}
		}
	})
}

func TestAServerStartsWithEachValueAndShowsItAsItWasRead(t *testing.T) {
	forEachVersion(t, func(t *testing.T, p product) {
		live, fixed := split(p.engine.Parameters())
		rounds := 0
		for _, known := range append(live, fixed...) {
			rounds = max(rounds, len(samples(t, known)))
		}
		if testing.Short() {
			rounds = 3
		}
		made := p.member(filepath.Join(t.TempDir(), "data"))
		for n := range rounds {
			want := sampled(t, live, n)
			maps.Copy(want, sampled(t, fixed, n))
			made.Files, made.LiveFiles = p.engine.Files(sampled(t, fixed, n)), p.engine.LiveFiles(sampled(t, live, n))
			member := p.start(t, made)
			target := member.target()
			target.Parameters = strings.Join(slices.Sorted(maps.Keys(want)), ",")
			state, err := member.dial(t, target).State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if different := plan.ParseSettings(state.Settings).Without(want); len(different) > 0 {
				for name, value := range different {
					t.Errorf("%s: it shows %q, and was given %q", name, value, want[name])
				}
				t.Log(member.Output())
			}
			if strings.Contains(member.Output(), "stay in use") {
				t.Errorf("the live parameters aren't taken:\n%s", member.Output())
			}
			member.Stop()
		}
	})
}

// TestAServerThatLacksAParameterIsAskedWithoutAny is about an image of another
// version than the parameters are of.
func TestAServerThatLacksAParameterIsAskedWithoutAny(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(""))
		connection := member.operator(t, adminPassword)
		connection.askFor([]string{"max_connections", "no_such_variable"})
		for range 2 {
			state, err := connection.State(t.Context())
			if err != nil || state.Version == "" || state.Settings != "" || state.Password != plan.PasswordSet {
				t.Errorf("the state is %+v (%v)", state, err)
			}
		}
	})
}
