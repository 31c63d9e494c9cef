// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// The texts of the licences that are accepted. <who> stands for a name, or
// several, and <maybe-not> for a word or none.
//
//go:embed templates
var templateFiles embed.FS

// template recognises one licence, in the form that normalise gives a text.
type template struct {
	license string
	pattern *regexp.Regexp
}

// readTemplates returns the licences that are known, the longer ones of a family
// before those that are a part of them.
func readTemplates() ([]template, error) {
	var known []template
	for _, file := range []struct{ name, license string }{
		{"Apache-2.0", "Apache-2.0"},
		{"Apache-2.0-appendix", "Apache-2.0"},
		{"Apache-2.0-notice", "Apache-2.0"},
		{"MPL-2.0", "MPL-2.0"},
		{"MPL-2.0-exhibits", "MPL-2.0"},
		{"BSD-3-Clause", "BSD-3-Clause"},
		{"BSD-2-Clause", "BSD-2-Clause"},
		{"MIT", "MIT"},
		{"ISC", "ISC"},
	} {
		text, err := templateFiles.ReadFile(path.Join("templates", file.name+".txt"))
		if err != nil {
			return nil, fmt.Errorf("read the licence %s: %w", file.name, err)
		}
		pattern := regexp.QuoteMeta(normalise(strings.NewReplacer("<who>", "0who0", "<maybe-not>", "0not0").Replace(string(text))))
		pattern = strings.NewReplacer("0who0", `(?:[a-z0-9]+ ){0,30}?[a-z0-9]+`, "0not0 ", `(?:not )?`).Replace(pattern)
		compiled, err := regexp.Compile(`\b` + pattern + `\b`)
		if err != nil {
			return nil, fmt.Errorf("read the licence %s: %w", file.name, err)
		}
		known = append(known, template{file.license, compiled})
	}
	return known, nil
}

// Lines that say whose a work is and no more.
var copyrightLine = regexp.MustCompile(`(?im)^[ \t#/*]*((portions )?copyright[ \t]*(\(c\)|©|[0-9]{4}).*|\(c\) [0-9]{4}.*)$`)

// Marks at the beginning of a line of a list.
var listMark = regexp.MustCompile(`(?m)^[ \t]*([-*•]|\(?[0-9a-z][.)]|[0-9]+(\.[0-9]+)*\.)[ \t]+`)

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// normalise makes texts the same that differ in line breaks, capitals, signs and
// the marks of lists.
func normalise(text string) string {
	text = listMark.ReplaceAllString(text, "")
	return strings.TrimSpace(notWord.ReplaceAllString(strings.ToLower(text), " "))
}

// What may stand beside a licence in its file without changing it, in normalised
// form: titles, how to apply it, and which files it is of. A person has read them.
var harmless = []*regexp.Regexp{
	regexp.MustCompile(`\bcopyright yyyy name of copyright owner\b`),
	// Of Go's YAML library, and of what was taken from it.
	regexp.MustCompile(`\b(this project|the forked go yaml v3 library under this project) is covered by two different licenses mit and apache\b`),
	regexp.MustCompile(`\bthe following files were ported to go from c files of libyaml and thus are still covered by their original ` +
		`(mit license with the additional copyright staring in 2011 when the project was ported over|copyright and license) ` +
		`apic go emitterc go parserc go readerc go scannerc go writerc go yamlh go yamlprivateh go\b`),
	regexp.MustCompile(`\bthe forked go yaml v2 library under the project is covered by an\b`),
	regexp.MustCompile(`\ball the remaining project files are covered by the apache license\b`),
	regexp.MustCompile(`\b(files other than internal golang|internal golang files) licensed under\b`),
	regexp.MustCompile(`\bapache license( version 2 0 january 2004 http www apache org licenses)?\b`),
	// Its last line, which some leave out.
	regexp.MustCompile(`\bend of terms and conditions\b`),
	regexp.MustCompile(`\bmozilla public license version 2 0\b`),
	regexp.MustCompile(`\b(the )?mit license( mit)?\b`),
	regexp.MustCompile(`\bisc license\b`),
	regexp.MustCompile(`\b(authors )?all rights reserved\b`),
}

var errUnknown = errors.New("the licence isn't known")

// recognise returns the identifiers of the licences in a file. All of the file
// has to be understood.
func recognise(text string, known []template) ([]string, error) {
	rest := normalise(copyrightLine.ReplaceAllString(text, ""))
	var found []string
	for _, template := range known {
		if without := template.pattern.ReplaceAllString(rest, " "); without != rest {
			rest = without
			found = append(found, template.license)
		}
	}
	for _, pattern := range harmless {
		rest = pattern.ReplaceAllString(rest, " ")
	}
	if rest = strings.TrimSpace(notWord.ReplaceAllString(rest, " ")); rest != "" || len(found) == 0 {
		return found, fmt.Errorf("%w: not understood is %q. Read it; if it is acceptable, add it to hack/licenses", errUnknown, rest)
	}
	return found, nil
}
