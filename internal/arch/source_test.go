// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source is one parsed Go file.
type source struct {
	path string // relative to the repository's root, with slashes
	set  *token.FileSet
	file *ast.File
}

// at names a place as editors and terminals understand it.
func (s source) at(pos token.Pos) string {
	return s.set.Position(pos).String()
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// parse reads one file; content may be nil, to read it from disk.
func parse(path, onDisk string, content []byte) (source, error) {
	if content == nil {
		read, err := os.ReadFile(onDisk)
		if err != nil {
			return source{}, err
		}
		content = read
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, content, parser.ParseComments|parser.SkipObjectResolution)
	return source{path: path, set: set, file: file}, err
}

// sources parses every Go file of the repository that a person wrote.
func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(onDisk string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		isHidden := onDisk != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_"))
		if entry.IsDir() && (isHidden || name == "testdata" || name == "vendor") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		relative, err := filepath.Rel(root, onDisk)
		if err != nil {
			return err
		}
		parsed, err := parse(filepath.ToSlash(relative), onDisk, nil)
		if err == nil && !ast.IsGenerated(parsed.file) {
			all = append(all, parsed)
		}
		return err
	})
	if err != nil {
		t.Fatalf("read the repository's Go files: %v", err)
	}
	return all
}

// check runs one rule over every file, and reports what it finds.
func check(t *testing.T, rule func(source) []string) {
	t.Helper()
	for _, s := range sources(t) {
		for _, violation := range rule(s) {
			t.Error(violation)
		}
	}
}

// example is a file that exists only in a test of a rule.
type example struct {
	path, code string
	// wants are parts of the violations, in order.
	wants []string
}

// checkExamples runs a rule over files made up to break it, or not to.
func checkExamples(t *testing.T, rule func(source) []string, examples map[string]example) {
	t.Helper()
	for sentence, row := range examples {
		t.Run(sentence, func(t *testing.T) {
			parsed, err := parse(row.path, "", []byte("package example\n"+row.code))
			if err != nil {
				t.Fatal(err)
			}
			got := rule(parsed)
			if len(got) != len(row.wants) {
				t.Fatalf("got %d violations, want %d: %q", len(got), len(row.wants), got)
			}
			for i, want := range row.wants {
				if !strings.Contains(got[i], want) {
					t.Errorf("violation %d is %q, want one with %q", i, got[i], want)
				}
			}
		})
	}
}
