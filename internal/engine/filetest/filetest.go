// SPDX-License-Identifier: Apache-2.0

// Package filetest holds an engine to what every engine promises about its files
// and its parameters. It is for the tests of the engines' packages.
package filetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

// Engine is the part of an engine that is looked at.
type Engine interface {
	Files(fixed plan.Settings) map[string]string
	LiveFiles(live plan.Settings) map[string]string
	Parameters() []plan.Parameter
}

// Golden is a folder of files that an engine is known to render.
type Golden struct {
	// Dir is the folder, relative to the engine's package.
	Dir string
	// IsRenewed is true if the files are written anew instead of read.
	IsRenewed bool
}

// Check compares a file with the one of its name in the folder.
func (g Golden) Check(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(g.Dir, name)
	if g.IsRenewed {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if content != string(want) {
		t.Errorf("it is\n%s\nwant (go test -update renews it; databases that exist would be restarted)\n%s", content, want)
	}
}

// CheckFiles compares all files of an engine, with nothing set, with those in the
// folder. The live parameters are one file.
func (g Golden) CheckFiles(t *testing.T, engine Engine) {
	t.Helper()
	for name, content := range engine.Files(nil) {
		t.Run(name, func(t *testing.T) { g.Check(t, name, content) })
	}
	live := engine.LiveFiles(plan.LiveDefaults(engine.Parameters()))
	if len(live) != 1 {
		t.Errorf("the live parameters are %d files", len(live))
	}
	for name, content := range live {
		t.Run(name, func(t *testing.T) { g.Check(t, name, content) })
	}
}

// CheckFixed has a parameter that members are restarted for change one file, to
// the one in the folder, and no other.
func (g Golden) CheckFixed(t *testing.T, engine Engine, fixed plan.Settings, file string) {
	t.Helper()
	files := engine.Files(fixed)
	g.Check(t, file, files[file])
	for name, content := range engine.Files(nil) {
		if (files[name] != content) != (name == file) {
			t.Errorf("%s is\n%s\nand without the parameter\n%s", name, files[name], content)
		}
	}
}

// CheckParameters has the parameters in order, each once, say what is allowed,
// and read their own defaults as they are.
func CheckParameters(t *testing.T, engine Engine) {
	t.Helper()
	var names []string
	for _, known := range engine.Parameters() {
		names = append(names, known.Name)
		if read, isAllowed := known.Read(known.Default); !isAllowed || read != known.Default {
			t.Errorf("the default of %s, %q, is read as %q (%t)", known.Name, known.Default, read, isAllowed)
		}
		if known.Allowed == "" {
			t.Errorf("%s doesn't say what is allowed", known.Name)
		}
	}
	if len(names) == 0 || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("they are %v", names)
	}
}

// CheckOptions has no parameter be among what an option file says for the
// operator's own reasons, unless as its default. An option's name has dashes where
// the parameter's, of small letters, has underscores.
func CheckOptions(t *testing.T, engine Engine, file string) {
	t.Helper()
	content := engine.Files(nil)[file]
	if content == "" {
		t.Fatalf("there is no file %s", file)
	}
	for _, known := range engine.Parameters() {
		if strings.Trim(known.Name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("%q isn't in small letters", known.Name)
		}
		option := "\n" + strings.ReplaceAll(known.Name, "_", "-") + "="
		if strings.Contains(content, option) && !strings.Contains(content, option+known.Default+"\n") {
			t.Errorf("the configuration has another %s than the default, %s", known.Name, known.Default)
		}
	}
}

// CheckLines has a file, with nothing set, say each of these once, by what rests on
// it: the folder of files alone is renewed with any change.
func CheckLines(t *testing.T, engine Engine, file string, lines map[string]string) {
	t.Helper()
	content := "\n" + engine.Files(nil)[file]
	for sentence, line := range lines {
		name := line[:strings.IndexAny(line, " =")+1]
		if strings.Count(content, "\n"+line+"\n") != 1 || strings.Count(content, "\n"+name) != 1 {
			t.Errorf("%s: %s doesn't say %q, or something else of it, too", sentence, file, line)
		}
	}
}

// CheckOutOfReach has none of the names be a parameter.
func CheckOutOfReach(t *testing.T, engine Engine, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, isKnown := plan.FindParameter(engine.Parameters(), name); isKnown {
			t.Errorf("%s is a parameter", name)
		}
	}
}

// Reading is a value of a parameter as a user writes it, and as the server shows
// it.
type Reading struct {
	Name, Value, Want string
	IsRefused         bool
}

// CheckReadings reads values, by what is special about them.
func CheckReadings(t *testing.T, engine Engine, readings map[string]Reading) {
	t.Helper()
	for sentence, row := range readings {
		t.Run(sentence, func(t *testing.T) {
			known, isKnown := plan.FindParameter(engine.Parameters(), row.Name)
			if !isKnown {
				t.Fatalf("%s is no parameter", row.Name)
			}
			got, isAllowed := known.Read(row.Value)
			if isAllowed == row.IsRefused || isAllowed && got != row.Want {
				t.Errorf("%q is read as %q (%t), want %q", row.Value, got, isAllowed, row.Want)
			}
		})
	}
}

// CheckAnyValue gives every parameter a value: what is allowed is in a form that
// stays what it is when it is read again, and fits into one line.
func CheckAnyValue(t *testing.T, engine Engine, value string) {
	t.Helper()
	for _, known := range engine.Parameters() {
		read, isAllowed := known.Read(value)
		if again, isStill := known.Read(read); isAllowed && (!isStill || again != read || strings.ContainsAny(read, "\r\n\x00")) {
			t.Errorf("%s: %q is read as %q, and that as %q", known.Name, value, read, again)
		}
	}
}

// CheckLiveFile gives one live parameter a value, and has the server's own reading
// of the file find that, and all the others as they were.
func CheckLiveFile(t *testing.T, engine Engine, name, value string, read func(file string) plan.Settings) {
	t.Helper()
	live := plan.LiveDefaults(engine.Parameters())
	live[name] = value
	for _, content := range engine.LiveFiles(live) {
		if got := read(content); len(got.Without(live)) > 0 || len(live.Without(got)) > 0 {
			t.Errorf("%q becomes %q", value, got[name])
		}
	}
}
