// SPDX-License-Identifier: Apache-2.0

package images

import (
	"slices"
	"strings"
	"testing"
)

func TestParsePackageFiles(t *testing.T) {
	for sentence, row := range map[string]struct {
		listing string
		want    []Package
		refused string
	}{
		"packages come sorted by name":             {"zlib1g_1.3_amd64.deb\nbash_5.2-1_amd64.deb\n", []Package{{"bash", "5.2-1"}, {"zlib1g", "1.3"}}, ""},
		"an epoch's colon is written as %3a":       {"redis-server_5%3a8.0.2-3_amd64.deb\n", []Package{{"redis-server", "5:8.0.2-3"}}, ""},
		"what isn't a package is left out":         {"lock\npartial\nbash_5.2_all.deb\n", []Package{{"bash", "5.2"}}, ""},
		"a name of two parts is refused":           {"bash_5.2.deb\n", nil, "bash_5.2.deb"},
		"a broken escape is refused":               {"bash_5%3_all.deb\n", nil, "bash_5%3_all.deb"},
		"the revision of a rebuild keeps its plus": {"libcap2_1%3a2.75-10+deb13u1+b3_amd64.deb\n", []Package{{"libcap2", "1:2.75-10+deb13u1+b3"}}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := parsePackageFiles(row.listing)
			if row.refused != "" {
				if err == nil || !strings.Contains(err.Error(), row.refused) {
					t.Errorf("error is %v", err)
				}
				return
			}
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("got %v (%v), want %v", got, err, row.want)
			}
		})
	}
}

func TestParseMirror(t *testing.T) {
	for sentence, row := range map[string]struct{ lines, want string }{
		"before apt's first update there is none": {"", ""},
		"the first of Debian's own is taken":      {"Debian Debian http://a.test/debian/\nDebian Debian http://b.test/debian/\n", "http://a.test/debian/"},
		"that of security updates holds no suite": {"Debian Debian-Security http://s.test/\nDebian Debian http://a.test/\n", "http://a.test/"},
		"another vendor's isn't one":              {"Docker Docker CE http://d.test/\n", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := parseMirror(row.lines); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestCheckRefusesAReferenceThatLies(t *testing.T) {
	definition := Definition{References: []string{"redis:8.0"}, Suite: "trixie", Main: "redis-server", Version: "8.0."}
	for sentence, row := range map[string]struct {
		version string
		refused bool
	}{
		"the version is as the reference says": {"8.0.2-3", false},
		"an epoch is none of upstream's":       {"5:8.0.2-3", false},
		"a newer minor is refused":             {"5:8.1.0-1", true},
		"8.00 isn't 8.0":                       {"8.00-1", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := definition.check([]Package{{"libc6", "2.41"}, {"redis-server", row.version}})
			if (err != nil) != row.refused {
				t.Errorf("error is %v", err)
			}
		})
	}
	t.Run("an image without its main package is refused", func(t *testing.T) {
		if err := definition.check([]Package{{"libc6", "2.41"}}); err == nil {
			t.Error("it is accepted")
		}
	})
}

func TestDefinitions(t *testing.T) {
	names, references := map[string]bool{}, map[string]bool{}
	for _, definition := range Images() {
		if names[definition.Name] || definition.Name == nodeName {
			t.Errorf("the name %s is taken", definition.Name)
		}
		names[definition.Name] = true
		for _, reference := range definition.References {
			if references[reference] {
				t.Errorf("%s is defined twice", reference)
			}
			references[reference] = true
		}
		if !slices.Contains(definition.Packages, definition.Main) {
			t.Errorf("%s: its version is that of %s, which it doesn't unpack", definition.Name, definition.Main)
		}
	}
}

func TestAnImageIsFoundByNameAndByReference(t *testing.T) {
	for asked, want := range map[string]string{"valkey-9.1": "valkey-9.1", "valkey/valkey:9.1": "valkey-9.1", "nginx:latest": "nginx"} {
		if found, err := Find(asked); err != nil || found.Name != want {
			t.Errorf("%s is %q (%v)", asked, found.Name, err)
		}
	}
	if _, err := Find("redis:6"); err == nil || !strings.Contains(err.Error(), "redis:8.0") {
		t.Errorf("error is %v", err)
	}
}
