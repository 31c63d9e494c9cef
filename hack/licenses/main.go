// SPDX-License-Identifier: Apache-2.0

// Command licenses tells which licences the modules have that a program is made
// of. It fails where it doesn't recognise one.
//
//	licenses table PACKAGE   prints docs/licenses.md
//	licenses texts PACKAGE   prints the texts themselves, each once
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	if len(arguments) != 2 || arguments[0] != "table" && arguments[0] != "texts" {
		return errors.New("usage: licenses table|texts PACKAGE")
	}
	known, err := readTemplates()
	if err != nil {
		return err
	}
	parts, err := partsOf(arguments[1])
	if err != nil {
		return err
	}
	var unknown error
	for i := range parts {
		unknown = errors.Join(unknown, parts[i].classify(known))
	}
	if unknown != nil {
		return unknown
	}
	if arguments[0] == "table" {
		return writeTable(out, parts)
	}
	return writeTexts(out, parts)
}
