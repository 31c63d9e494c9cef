// SPDX-License-Identifier: Apache-2.0

package bugs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// bug is an entry of the list in doc.go.
type bug struct {
	section, title string
	answers        []string
}

// test is one that an answer names.
type test struct {
	folder, name, row string
}

// testPattern is how an answer names a test.
var testPattern = regexp.MustCompile(`^([a-z0-9/]+) ((?:Test|Fuzz)\w+)(?: (".*"))?$`)

// TestTheListNamesTestsThatExist needs no cluster.
func TestTheListNamesTestsThatExist(t *testing.T) {
	folders := map[string]contents{}
	for _, b := range list(t) {
		for _, answer := range b.answers {
			named, isTest, err := read(answer)
			switch {
			case err != "":
				t.Errorf("%s: %s", b.title, err)
				continue
			case !isTest:
				continue
			}
			if _, isRead := folders[named.folder]; !isRead {
				folders[named.folder] = readTests(t, named.folder)
			}
			if missing := folders[named.folder].lacks(named); missing != "" {
				t.Errorf("%s: %s", b.title, missing)
			}
		}
	}
}

func TestTheListIsWhole(t *testing.T) {
	var sections []string
	seen := map[string]bool{}
	for _, b := range list(t) {
		if !slices.Contains(sections, b.section) {
			sections = append(sections, b.section)
		}
		if len(b.answers) == 0 {
			t.Errorf("%s: nothing shows that it isn't here", b.title)
		}
		references, _, _ := strings.Cut(b.title, ": ")
		if seen[references] {
			t.Errorf("%s: it is listed twice", references)
		}
		seen[references] = true
	}
	if got := strings.Join(sections, ""); got != "ABCDEFG" || len(seen) < 60 {
		t.Errorf("the sections are %s, with %d entries", got, len(seen))
	}
}

// TestWhatTheListMustntSayIsFound keeps the tests above able to fail.
func TestWhatTheListMustntSayIsFound(t *testing.T) {
	here := readTests(t, "test/bugs")
	for sentence, row := range map[string]struct {
		answer string
		isGood bool
	}{
		"a test":                        {"test/bugs TestTheListIsWhole", true},
		"a row of a test":               {`test/bugs TestTheListIsWhole "a row of a test"`, true},
		"a step of a test":              {`test/bugs TestTheListIsWhole "readTests"`, true},
		"a reason":                      {"never, because there is none", true},
		"a condition":                   {"waits for another field", true},
		"a test that doesn't exist":     {"test/bugs TestTheListIs", false},
		"a function that is no test":    {"test/bugs readTests", false},
		"a row that doesn't exist":      {`test/bugs TestTheListIsWhole "no ` + `such row"`, false},
		"a test without a folder":       {"TestTheListIsWhole", false},
		"a reason that is none":         {"never", false},
		"a condition that isn't spelt":  {"waits for ", false},
		"something else than an answer": {"it is fine", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			named, isTest, err := read(row.answer)
			isGood := err == "" && (!isTest || here.lacks(named) == "")
			if isGood != row.isGood {
				t.Errorf("%q is good: %t, want %t", row.answer, isGood, row.isGood)
			}
		})
	}
}

// list reads the list from the package's documentation: a heading begins a
// section, an indented line is a bug, and one that is indented further answers it.
func list(t *testing.T) []bug {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var bugs []bug
	section := ""
	for line := range strings.Lines(file.Doc.Text()) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "# "):
			section, _, _ = strings.Cut(strings.TrimPrefix(line, "# "), ".")
		case section == "" || line == "":
		case strings.HasPrefix(line, "\t\t") && len(bugs) > 0:
			last := &bugs[len(bugs)-1]
			last.answers = append(last.answers, strings.TrimPrefix(line, "\t\t"))
		case strings.HasPrefix(line, "\t"):
			bugs = append(bugs, bug{section: section, title: strings.TrimPrefix(line, "\t")})
		default:
			t.Errorf("doc.go: %q is neither a heading nor a bug nor an answer", line)
		}
	}
	return bugs
}

// read tells which test an answer names, if any, or what is wrong with it.
func read(answer string) (named test, isTest bool, wrong string) {
	for _, beginning := range []string{"never, because ", "waits for "} {
		if why, isReason := strings.CutPrefix(answer, beginning); isReason && why != "" {
			return test{}, false, ""
		}
	}
	parts := testPattern.FindStringSubmatch(answer)
	if parts == nil {
		return test{}, false, answer + " is neither a test nor a reason nor a condition"
	}
	named = test{folder: parts[1], name: parts[2]}
	if parts[3] == "" {
		return named, true, ""
	}
	row, err := strconv.Unquote(parts[3])
	if err != nil {
		return test{}, false, parts[3] + " isn't quoted as in Go"
	}
	named.row = row
	return named, true, ""
}

// contents are the functions in the test files of a folder, and all their texts.
type contents struct{ functions, texts map[string]bool }

func (c contents) lacks(named test) string {
	switch {
	case !c.functions[named.name]:
		return named.folder + " has no test " + named.name
	case named.row != "" && !c.texts[named.row] && !c.functions[named.row]:
		return named.folder + " has no row or step " + strconv.Quote(named.row)
	default:
		return ""
	}
}

// readTests reads the test files of a folder, whatever their build tags.
func readTests(t *testing.T, folder string) contents {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := contents{functions: map[string]bool{}, texts: map[string]bool{}}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				found.functions[node.Name.Name] = true
			case *ast.BasicLit:
				if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING {
					found.texts[text] = true
				}
			}
			return true
		})
	}
	return found
}
