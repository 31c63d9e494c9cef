// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// documents reads a page and its translation into Chinese, which has to be there.
func documents(t *testing.T, page string) (Document, Document) {
	t.Helper()
	document, err := Read(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	translation, err := Read(filepath.Join(root, strings.TrimSuffix(page, ".md")+".zh-CN.md"))
	if err != nil {
		t.Fatal(err)
	}
	return document, translation
}

// pages are the READMEs that are there in two languages.
func pages(t *testing.T) []string {
	t.Helper()
	return append([]string{"README.md", "docs/controllers.md", "examples/README.md"}, exampleFiles(t, "README.md")...)
}

// exampleFiles are the paths of a file of every example, by their order.
func exampleFiles(t *testing.T, name string) []string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(root, "examples", "*", "main.go"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are no examples (%v)", err)
	}
	var paths []string
	for _, folder := range folders {
		paths = append(paths, "examples/"+filepath.Base(filepath.Dir(folder))+"/"+name)
	}
	return paths
}

func TestBothLanguagesSayTheSame(t *testing.T) {
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			document, translation := documents(t, page)
			for _, difference := range differences(document, translation) {
				t.Error(difference)
			}
			if slices.Equal(headingTexts(document), headingTexts(translation)) {
				t.Errorf("the headings of %s aren't translated", translation.Path)
			}
			if name := filepath.Base(translation.Path); !slices.Contains(document.Links, name) {
				t.Errorf("%s has no link to %s", document.Path, name)
			}
			if name := filepath.Base(document.Path); !slices.Contains(translation.Links, name) {
				t.Errorf("%s has no link to %s", translation.Path, name)
			}
		})
	}
}

func headingTexts(document Document) []string {
	var texts []string
	for _, heading := range document.Headings {
		texts = append(texts, heading.Text)
	}
	return texts
}

// Sections of README.md that are played, each in a session of its own.
const (
	seeItWork = "See it work"
	installIt = "Install it on a cluster"
)

func TestEveryCommandOfTheReadmeIsPlayed(t *testing.T) {
	document, _ := documents(t, "README.md")
	for _, block := range document.Blocks {
		if block.Info != "yaml" && (block.Info != "console" || block.Section != seeItWork && block.Section != installIt) {
			t.Errorf("%s:%d: nothing plays a block of %q in the section %q", document.Path, block.Line, block.Info, block.Section)
		}
	}
}

func TestAnExampleIsAsLongAsOneReads(t *testing.T) {
	const most = 150
	for _, path := range exampleFiles(t, "main.go") {
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(content, []byte("\n")); lines > most {
			t.Errorf("%s has %d lines; at most %d are allowed", path, lines, most)
		}
		sources, err := filepath.Glob(filepath.Join(root, filepath.Dir(path), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			if name := filepath.Base(source); name != "main.go" && !strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s: an example is one file", source)
			}
		}
	}
}

func TestAStepEndsWithWhatTheNextOneMends(t *testing.T) {
	all := exampleFiles(t, "README.md")
	for index, page := range all {
		document, translation := documents(t, page)
		for _, row := range []struct {
			document Document
			want     string
		}{{document, "What this step gets wrong"}, {translation, "这一步的不足"}} {
			texts := headingTexts(row.document)
			isLast := index == len(all)-1
			if len(texts) == 0 || (texts[len(texts)-1] == row.want) == isLast {
				t.Errorf("the last heading of %s is %q; all steps but the last end with %q", row.document.Path, at(texts, len(texts)-1), row.want)
			}
		}
	}
}

func TestDifferencesAreFound(t *testing.T) {
	const page = "[中文](README.zh-CN.md)\n# One\n## Run `a`\n```console\n$ a\nb\n```\n```mermaid\none\n```\n[x](x.md) [y](../y.zh-CN.md#z)\n"
	const same = "[English](README.md)\n# 一\n## 运行 `a`\n```console\n$ a\nb\n```\n```mermaid\n一\n```\n[x](x.zh-CN.md) [y](../y.md#zz)\n"
	for sentence, row := range map[string]struct{ old, changed, want string }{
		"there are none":                  {"", "", ""},
		"a heading is missing":            {"## 运行 `a`\n", "", `zh:1: the heading "Run `},
		"a heading is of another level":   {"## 运行", "### 运行", "zh:3: the heading"},
		"a heading has other code":        {"行 `a`", "行 `b`", "zh:3: the heading"},
		"there is a heading more":         {"[x]", "## 二\n[x]", `zh:11: en has no heading for "二"`},
		"a command is another":            {"$ a", "$ b", `zh:5: here is "$ b", and at en:5 "$ a"`},
		"what it prints is another":       {"\nb\n", "\nc\n", `zh:6: here is "c"`},
		"a line is missing":               {"\nb\n", "\n", `zh:6: here is "nothing"`},
		"a block is missing":              {"```console\n$ a\nb\n```\n", "", `zh:4: this block is of "mermaid"`},
		"a block of another kind":         {"mermaid", "text", `zh:8: this block is of "text"`},
		"the last block is missing":       {"```mermaid\n一\n```\n", "", "zh:1: the block of en:8 is missing"},
		"there is a block more":           {"[x]", "```sh\n```\n[x]", "zh:11: en hasn't this block"},
		"a link leads elsewhere":          {"](x.zh-CN.md)", "](../x.md)", "link 1 leads to ../x.md, and in en to x.md"},
		"a link is missing":               {" [y](../y.md#zz)", "", "link 2 leads to nothing"},
		"there is a link more":            {"[y]", "[w](w.md) [y]", "link 2 leads to w.md"},
		"the way to a page may be longer": {"](x.zh-CN.md)", "](./x.md)", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			if !strings.Contains(same, row.old) {
				t.Fatalf("%q isn't there to be changed", row.old)
			}
			document, err := Parse("en", page)
			if err != nil {
				t.Fatal(err)
			}
			translation, err := Parse("zh", strings.Replace(same, row.old, row.changed, 1))
			if err != nil {
				t.Fatal(err)
			}
			found := differences(document, translation)
			if row.want == "" && len(found) > 0 || row.want != "" && (len(found) != 1 || !strings.Contains(found[0], row.want)) {
				t.Errorf("found %q, not %q", found, row.want)
			}
		})
	}
}
