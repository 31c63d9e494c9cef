// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Document is what of a Markdown file is used here.
type Document struct {
	// Path is where it was read from.
	Path     string
	Headings []Heading
	Blocks   []Block
	// Links are the targets of all links and images, in their order.
	Links []string
}

// Heading is a line that begins with number signs.
type Heading struct {
	Line  int
	Level int
	Text  string
}

// Block is a fenced block of code.
type Block struct {
	// Line is that of the opening fence.
	Line int
	// Section is the text of the heading above it.
	Section string
	// Info is what stands after the opening fence, such as console.
	Info  string
	Lines []string
}

// Read parses the Markdown file at path.
func Read(path string) (Document, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Document{}, err
	}
	return Parse(path, string(content))
}

// Parse parses a Markdown text; path is for messages.
func Parse(path, text string) (Document, error) {
	heading := regexp.MustCompile(`^(#{1,6}) +(.*?)[ #]*$`)
	fence := regexp.MustCompile("^( *)(```+|~~~+) *([^`]*?) *$")
	document := Document{Path: path}
	section, end, indent := "", "", ""
	var prose strings.Builder
	for index, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if end != "" {
			block := &document.Blocks[len(document.Blocks)-1]
			if strings.TrimSpace(line) == end {
				end = ""
			} else {
				block.Lines = append(block.Lines, strings.TrimPrefix(line, indent))
			}
			continue
		}
		if found := fence.FindStringSubmatch(line); found != nil {
			indent, end = found[1], found[2]
			document.Blocks = append(document.Blocks, Block{Line: index + 1, Section: section, Info: found[3]})
			continue
		}
		if found := heading.FindStringSubmatch(line); found != nil {
			section = found[2]
			document.Headings = append(document.Headings, Heading{Line: index + 1, Level: len(found[1]), Text: section})
		}
		prose.WriteString(line + "\n")
	}
	if end != "" {
		return document, fmt.Errorf("%s:%d: this block of code has no end", path, document.Blocks[len(document.Blocks)-1].Line)
	}
	document.Links = links(prose.String())
	return document, nil
}

// links finds the targets of [text](target), ![text](target) and [text]: target, outside of code.
func links(prose string) []string {
	code := regexp.MustCompile("(`+)[^`]+(`+)")
	link := regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?[^)]*\)|(?m)^ {0,3}\[[^\]]+\]:\s+(\S+)`)
	var targets []string
	// A span of code may be a link's text, so only what is in it goes.
	for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(prose, "$1$2"), -1) {
		targets = append(targets, found[1]+found[2])
	}
	return targets
}

// Command is a command of a console block, with what it has to print.
type Command struct {
	Path string
	Line int
	// Text is the command as a shell reads it.
	Text string
	// Section is the text of the heading above it.
	Section string
	Expect  []Expectation
}

// Expectation is a line that has to be printed.
type Expectation struct {
	Line int
	Text string
}

// Commands are the commands in the console blocks, of the sections named or of all.
func (d Document) Commands(sections ...string) ([]Command, error) {
	wanted := map[string]bool{}
	for _, section := range sections {
		wanted[section] = true
	}
	var commands []Command
	for _, block := range d.Blocks {
		if block.Info != "console" || len(wanted) > 0 && !wanted[block.Section] {
			continue
		}
		found, err := block.commands(d.Path)
		if err != nil {
			return nil, err
		}
		commands = append(commands, found...)
	}
	return commands, nil
}

func (b Block) commands(path string) ([]Command, error) {
	var commands []Command
	for index := 0; index < len(b.Lines); index++ {
		line := b.Lines[index]
		number := b.Line + 1 + index
		if text, isCommand := strings.CutPrefix(line, "$ "); isCommand {
			length, ok := commandLength(text, b.Lines[index+1:])
			if !ok {
				return nil, fmt.Errorf("%s:%d: the command isn't at its end where the block is", path, number)
			}
			lines := append([]string{text}, b.Lines[index+1:index+1+length]...)
			commands = append(commands, Command{Path: path, Line: number, Text: strings.Join(lines, "\n"), Section: b.Section})
			index += length
			continue
		}
		if len(commands) == 0 {
			return nil, fmt.Errorf("%s:%d: a block named console begins with a command: \"$ …\"", path, number)
		}
		// A line that says nothing asks for nothing.
		if strings.Trim(line, " \t…") != "" {
			last := &commands[len(commands)-1]
			last.Expect = append(last.Expect, Expectation{Line: number, Text: line})
		}
	}
	return commands, nil
}

// commandLength counts the lines after a command's first that belong to it.
func commandLength(first string, rest []string) (int, bool) {
	hereDocument := regexp.MustCompile(`(?:^|[^<])<<(-?)\s*(?:'([^']+)'|"([^"]+)"|\\?([A-Za-z_][A-Za-z0-9_]*))`)
	length := 0
	for line := first; ; {
		for _, found := range hereDocument.FindAllStringSubmatch(line, -1) {
			end := found[2] + found[3] + found[4]
			for isEnd := false; !isEnd; length++ {
				if length == len(rest) {
					return length, false
				}
				text := rest[length]
				if found[1] != "" {
					text = strings.TrimLeft(text, "\t")
				}
				isEnd = text == end
			}
		}
		if !strings.HasSuffix(line, `\`) {
			return length, true
		}
		if length == len(rest) {
			return length, false
		}
		line = rest[length]
		length++
	}
}
