// SPDX-License-Identifier: Apache-2.0

// Command report makes tables and plots of what test/bench has measured.
//
//	report FOLDER                prints the tables of the raw results in a folder
//	report FOLDER PAGE PICTURES  writes them into a page, between its markers, and the
//	                             plots into a folder beside it
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The markers between which a page's figures stand.
const (
	begin = "<!-- figures: what make bench-docs writes begins here -->\n"
	end   = "<!-- figures: and ends here -->\n"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 && len(arguments) != 3 {
		return errors.New("usage: report FOLDER [PAGE PICTURES]")
	}
	raw, err := read(arguments[0])
	if err != nil {
		return err
	}
	if len(arguments) == 1 {
		_, err := os.Stdout.WriteString(raw.machines() + raw.tables())
		return err
	}
	page, pictures := arguments[1], arguments[2]
	drawn, err := raw.draw(pictures)
	if err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString(raw.machines())
	for _, picture := range drawn {
		path, err := filepath.Rel(filepath.Dir(page), filepath.Join(pictures, picture.file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "![%s](%s)\n\n", picture.title, filepath.ToSlash(path))
	}
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	written, err := between(content, text.String()+raw.tables())
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, written, 0o644)
}

// between replaces what stands between the markers.
func between(page []byte, text string) ([]byte, error) {
	before, rest, hasBegin := bytes.Cut(page, []byte(begin))
	_, after, hasEnd := bytes.Cut(rest, []byte(end))
	if !hasBegin || !hasEnd {
		return nil, fmt.Errorf("the markers %q and %q don't stand in it", begin, end)
	}
	return bytes.Join([][]byte{before, []byte(begin + "\n"), []byte(text), []byte(end), after}, nil), nil
}
