// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// differences are the ways in which a document and its translation aren't equal, beyond what a language changes: the
// number, levels and code of headings, all blocks of code, and where links lead to.
func differences(document, translation Document) []string {
	var found []string
	report := func(place Document, line int, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: ", place.Path, line)+fmt.Sprintf(format, args...))
	}
	for index, heading := range document.Headings {
		if index >= len(translation.Headings) {
			report(translation, 1, "the heading %q of %s:%d is missing", heading.Text, document.Path, heading.Line)
			break
		}
		other := translation.Headings[index]
		if other.Level != heading.Level || !slices.Equal(codeSpans(other.Text), codeSpans(heading.Text)) {
			report(translation, other.Line, "the heading %q stands for %q of %s:%d, which has another level or other code", other.Text, heading.Text, document.Path, heading.Line)
			break
		}
	}
	if len(translation.Headings) > len(document.Headings) {
		other := translation.Headings[len(document.Headings)]
		report(translation, other.Line, "%s has no heading for %q", document.Path, other.Text)
	}
	if line, problem := differentBlock(document, translation); problem != "" {
		report(translation, line, "%s", problem)
	}
	links, others := linksToCompare(document), linksToCompare(translation)
	for index := range max(len(links), len(others)) {
		if index >= len(links) || index >= len(others) || links[index] != others[index] {
			report(translation, 1, "link %d leads to %s, and in %s to %s", index+1, at(others, index), document.Path, at(links, index))
			break
		}
	}
	return found
}

// differentBlock finds the first block that isn't the same in both. Drawings have words in them, which are translated.
func differentBlock(document, translation Document) (int, string) {
	for index, block := range document.Blocks {
		if index >= len(translation.Blocks) {
			return 1, fmt.Sprintf("the block of %s:%d is missing", document.Path, block.Line)
		}
		other := translation.Blocks[index]
		if other.Info != block.Info {
			return other.Line, fmt.Sprintf("this block is of %q, and that of %s:%d of %q", other.Info, document.Path, block.Line, block.Info)
		}
		if block.Info == "mermaid" || block.Info == "text" {
			continue
		}
		for line := range max(len(block.Lines), len(other.Lines)) {
			if got, want := at(other.Lines, line), at(block.Lines, line); got != want {
				return other.Line + 1 + line, fmt.Sprintf("here is %q, and at %s:%d %q", got, document.Path, block.Line+1+line, want)
			}
		}
	}
	if len(translation.Blocks) > len(document.Blocks) {
		return translation.Blocks[len(document.Blocks)].Line, document.Path + " hasn't this block"
	}
	return 0, ""
}

// linksToCompare are the links without those to a page in another language, and without fragments: those of headings are
// translated. A link to a translated page is one to the page.
func linksToCompare(document Document) []string {
	var targets []string
	for _, link := range document.Links {
		target, _, _ := strings.Cut(link, "#")
		target = strings.Replace(target, ".zh-CN.md", ".md", 1)
		if target != "" && !strings.Contains(target, "://") {
			target = path.Clean(target)
		}
		if target == "README.md" {
			continue // the other language's page
		}
		targets = append(targets, target)
	}
	return targets
}

func at(list []string, index int) string {
	if index < len(list) {
		return list[index]
	}
	return "nothing"
}

// codeSpans are the texts between backquotes.
func codeSpans(text string) []string {
	return regexp.MustCompile("`[^`]+`").FindAllString(text, -1)
}
