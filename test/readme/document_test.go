// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) Document {
	t.Helper()
	// In a Go text, a line of an example begins with a bar, and ''' stands for a fence.
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, strings.TrimPrefix(strings.TrimLeft(strings.TrimRight(line, "\n"), "\t"), "|"))
	}
	document, err := Parse("a/README.md", strings.ReplaceAll(strings.Join(lines, "\n"), "'''", "```"))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestADocumentIsParsed(t *testing.T) {
	document := parse(t, `
		|# One
		|See [two](two.md), ![a drawing](three.svg "four") and [`+"`code`"+`](five.go#L6); `+"`[no](link)`"+` is code.
		|
		|## Two `+"`$ code`"+` ##
		|'''yaml
		|# a comment: [not](a-link)
		|'''
		|- in a list:
		|
		|  '''console
		|  $ ls
		|    a
		|  '''
		|
		|[six]: https://seven.example/#eight
		|#no heading`)
	headings := []Heading{{1, 1, "One"}, {4, 2, "Two `$ code`"}}
	if !slices.Equal(document.Headings, headings) {
		t.Errorf("headings are %+v", document.Headings)
	}
	if links := []string{"two.md", "three.svg", "five.go#L6", "https://seven.example/#eight"}; !slices.Equal(document.Links, links) {
		t.Errorf("links are %q", document.Links)
	}
	if len(document.Blocks) != 2 {
		t.Fatalf("blocks are %+v", document.Blocks)
	}
	yaml, console := document.Blocks[0], document.Blocks[1]
	if yaml.Info != "yaml" || yaml.Line != 5 || !slices.Equal(yaml.Lines, []string{"# a comment: [not](a-link)"}) {
		t.Errorf("the first block is %+v", yaml)
	}
	if console.Info != "console" || console.Section != "Two `$ code`" || !slices.Equal(console.Lines, []string{"$ ls", "  a"}) {
		t.Errorf("the second block is %+v", console)
	}
}

func TestABlockWithoutAnEndIsRefused(t *testing.T) {
	_, err := Parse("a/README.md", "# One\n```console\n$ ls\n")
	if err == nil || !strings.Contains(err.Error(), "a/README.md:2:") {
		t.Errorf("the error is %v", err)
	}
}

func TestCommandsAreFound(t *testing.T) {
	for sentence, row := range map[string]struct {
		block  string
		text   string
		line   int
		expect []string
	}{
		"a command has the lines after it":       {"$ ls\na\nb", "ls", 2, []string{"a", "b"}},
		"an ellipsis alone asks for nothing":     {"$ ls\n…\nb …", "ls", 2, []string{"b …"}},
		"nor does an empty line":                 {"$ ls\n\nb", "ls", 2, []string{"b"}},
		"indentation is kept":                    {"$ ls\n  b", "ls", 2, []string{"  b"}},
		"a backslash goes on":                    {"$ ls \\\n  -l \\\n  /\nbin", "ls \\\n  -l \\\n  /", 2, []string{"bin"}},
		"so does a here-document":                {"$ cat <<END\n$ x\nEND\ny", "cat <<END\n$ x\nEND", 2, []string{"y"}},
		"with a quoted end":                      {"$ cat <<'E D' | wc\nEND\nE D\n1", "cat <<'E D' | wc\nEND\nE D", 2, []string{"1"}},
		"with another quoted end":                {"$ cat <<\"END\"\nEND\n1", "cat <<\"END\"\nEND", 2, []string{"1"}},
		"with an end that tabs may stand before": {"$ cat <<-END\n\tx\n\tEND\nx", "cat <<-END\n\tx\n\tEND", 2, []string{"x"}},
		"two here-documents follow each other":   {"$ diff <(cat <<A) - <<B\nx\nA\nB\n< x", "diff <(cat <<A) - <<B\nx\nA\nB", 2, []string{"< x"}},
		"one begins in a line that goes on":      {"$ cat \\\n  <<END\nx\nEND\ny", "cat \\\n  <<END\nx\nEND", 2, []string{"y"}},
		"a here-string is none":                  {"$ cat <<<END\nEND", "cat <<<END", 2, []string{"END"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			document, err := Parse("a/README.md", "```console\n"+row.block+"\n```")
			if err != nil {
				t.Fatal(err)
			}
			commands, err := document.Commands()
			if err != nil || len(commands) != 1 {
				t.Fatalf("commands are %+v (%v)", commands, err)
			}
			var expect []string
			for _, expectation := range commands[0].Expect {
				expect = append(expect, expectation.Text)
			}
			if commands[0].Text != row.text || commands[0].Line != row.line || !slices.Equal(expect, row.expect) {
				t.Errorf("the command is %+v", commands[0])
			}
		})
	}
}

func TestCommandsThatAreNoneAreRefused(t *testing.T) {
	for sentence, block := range map[string]string{
		"a block that begins with a line that is printed": "ls\n$ ls",
		"a command that goes on after its block":          "$ ls \\",
		"a here-document without an end":                  "$ cat <<END\nx",
	} {
		t.Run(sentence, func(t *testing.T) {
			document, err := Parse("a/README.md", "# A\n```console\n"+block+"\n```")
			if err != nil {
				t.Fatal(err)
			}
			if commands, err := document.Commands(); err == nil || !strings.Contains(err.Error(), "a/README.md:3:") {
				t.Errorf("got %+v (%v)", commands, err)
			}
		})
	}
}

func TestCommandsOfSections(t *testing.T) {
	document := parse(t, `
		|## One
		|'''console
		|$ one
		|x
		|$ two
		|'''
		|## Two
		|'''sh
		|$ no
		|'''
		|'''console
		|$ three
		|'''`)
	for sentence, row := range map[string]struct{ sections, want string }{
		"of all":      {"", "3 one, 5 two, 12 three"},
		"of one":      {"One", "3 one, 5 two"},
		"of the last": {"Two", "12 three"},
		"of none":     {"Three", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			commands, err := document.Commands(strings.Fields(row.sections)...)
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, command := range commands {
				texts = append(texts, fmt.Sprint(command.Line, " ", command.Text))
			}
			if got := strings.Join(texts, ", "); got != row.want {
				t.Errorf("they are %s, not %s", got, row.want)
			}
		})
	}
}
