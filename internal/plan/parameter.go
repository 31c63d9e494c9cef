// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strings"
)

// Parameter is a parameter of an engine that spec.config may set. What isn't
// one, because it could reach out of the pod or the data folder, or belongs to
// replication or to the accounts, is the operator's own.
type Parameter struct {
	// Name is the engine's own name of it.
	Name string
	// IsLive tells whether a running server takes another value; one that doesn't
	// is restarted for it.
	IsLive bool
	// Default is the value where the spec sets none, in the form that
	// Values.Read returns.
	Default string
	// Values are those that it may have.
	Values
}

// Values are the values that a parameter may have.
type Values struct {
	// Allowed says which, for whoever wrote another one: "on or off", "1 to 100".
	Allowed string
	// Read returns a value in the one form in which the engine itself shows it, so
	// that two forms of the same value compare equal; false if it isn't allowed.
	Read func(value string) (string, bool)
}

// FindParameter returns the parameter of a name; false if there is none.
func FindParameter(parameters []Parameter, name string) (Parameter, bool) {
	at := slices.IndexFunc(parameters, func(known Parameter) bool { return known.Name == name })
	if at < 0 {
		return Parameter{}, false
	}
	return parameters[at], true
}

// LiveDefaults are the values of the parameters that are live, where the spec
// sets none.
func LiveDefaults(parameters []Parameter) Settings {
	defaults := Settings{}
	for _, known := range parameters {
		if known.IsLive {
			defaults[known.Name] = known.Default
		}
	}
	return defaults
}

// Settings are values of parameters by their names, in the engine's own form.
type Settings map[string]string

// String has a line "name=value" for each, ordered by name. No value holds a
// line break.
func (s Settings) String() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s)) {
		text.WriteString(name + "=" + s[name] + "\n")
	}
	return text.String()
}

// ParseSettings reads what Settings.String has written.
func ParseSettings(text string) Settings {
	settings := Settings{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		settings[name] = value
	}
	return settings
}

// Without returns what has another value in others, or none.
func (s Settings) Without(others Settings) Settings {
	different := Settings{}
	for name, value := range s {
		if other, exists := others[name]; !exists || other != value {
			different[name] = value
		}
	}
	return different
}
