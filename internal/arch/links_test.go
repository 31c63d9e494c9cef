// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// TestLinksLeadSomewhere reads every Markdown file of the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".md" {
			return nil
		}
		for _, violation := range deadLinks(root, name) {
			t.Error(violation)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// deadLinks finds links of a Markdown file to what isn't in the repository: files,
// and headings in Markdown files.
func deadLinks(root fs.FS, name string) []string {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	content, err := fs.ReadFile(root, name)
	if err != nil {
		return []string{err.Error()}
	}
	var violations []string
	for number, line := range prose(string(content)) {
		for _, found := range link.FindAllStringSubmatch(line, -1) {
			target, fragment, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, ":") {
				continue // of another site
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := fs.Stat(root, file); err != nil {
				violations = append(violations, fmt.Sprintf("%s:%d: the link to %s leads nowhere", name, number, found[1]))
			} else if fragment != "" && path.Ext(file) == ".md" && !hasHeading(root, file, fragment) {
				violations = append(violations, fmt.Sprintf("%s:%d: %s has no heading #%s", name, number, file, fragment))
			}
		}
	}
	return violations
}

// prose returns the lines outside of blocks of code, by their numbers.
func prose(content string) map[int]string {
	lines, isCode := map[int]string{}, false
	for index, line := range strings.Split(content, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			isCode = !isCode
		} else if !isCode {
			lines[index+1] = line
		}
	}
	return lines
}

// hasHeading tells whether a Markdown file has a heading that a fragment names:
// in lower case, with hyphens for blanks, and without punctuation.
func hasHeading(root fs.FS, file, fragment string) bool {
	content, err := fs.ReadFile(root, file)
	if err != nil {
		return false
	}
	for _, line := range prose(string(content)) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, strings.TrimSpace(strings.TrimLeft(line, "#")))
		if anchor == fragment {
			return true
		}
	}
	return false
}

func TestTheLinkRuleFindsDeadLinks(t *testing.T) {
	root := fstest.MapFS{
		"README.md":   {Data: []byte("# The title\n\n## What's next, then?\n")},
		"docs/a.md":   {Data: nil},
		"src/main.go": {Data: nil},
	}
	for sentence, row := range map[string]struct{ text, wants string }{
		"a file that exists":              {"see [main](../src/main.go) and [it](a.md)", ""},
		"a line of a file":                {"[main](../src/main.go#L12)", ""},
		"a folder":                        {"[src](../src)", ""},
		"another site":                    {"[it](https://example.com/nothing.md)", ""},
		"a heading":                       {"[next](../README.md#whats-next-then)", ""},
		"code that looks like a link":     {"```\n[it](nothing.md)\n```", ""},
		"a file that doesn't exist":       {"\nsee [it](nothing.md)", "docs/a.md:2: the link to nothing.md"},
		"a heading that doesn't exist":    {"[next](../README.md#nothing)", "README.md has no heading #nothing"},
		"a file outside of the folder":    {"[it](../../README.md)", "leads nowhere"},
		"a heading of the same file":      {"# Here\n[here](#here)", ""},
		"none such":                       {"# Here\n[there](#there)", "docs/a.md has no heading #there"},
		"the second of two on a line too": {"[it](a.md) [it](nothing.md)", "nothing.md"},
	} {
		t.Run(sentence, func(t *testing.T) {
			root["docs/a.md"].Data = []byte(row.text)
			got := strings.Join(deadLinks(root, "docs/a.md"), "\n")
			if got == "" != (row.wants == "") || !strings.Contains(got, row.wants) {
				t.Errorf("got %q, want %q", got, row.wants)
			}
		})
	}
}
