// SPDX-License-Identifier: Apache-2.0

package redis

// version is a line of Redis that the operator knows, and its upstream image.
type version struct {
	name  string
	image string
}

// versions returns every line that is known, oldest first. A line stays here
// as long as databases may run it.
func versions() []version {
	return []version{
		{name: "8.0", image: "redis:8.0"},
	}
}

// DefaultVersion returns what a new database runs that names no version. A
// database that exists keeps what it was created with.
func (Engine) DefaultVersion() string { return "8.0" }

// Versions lists the versions that are known, oldest first.
func (Engine) Versions() []string {
	names := make([]string, 0, len(versions()))
	for _, known := range versions() {
		names = append(names, known.name)
	}
	return names
}

// Image returns the upstream image of a version.
func (Engine) Image(name string) (string, bool) {
	for _, known := range versions() {
		if known.name == name {
			return known.image, true
		}
	}
	return "", false
}
