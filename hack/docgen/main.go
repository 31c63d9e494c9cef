// SPDX-License-Identifier: Apache-2.0

// Command docgen makes the parts of docs that follow from the code:
//
//	docgen reference CRD…   prints the page of every field of the resources
//	docgen engines          copies a page, with the tables of engines renewed
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run(arguments []string, in io.Reader, out io.Writer) error {
	switch {
	case len(arguments) > 1 && arguments[0] == "reference":
		return writeReference(out, arguments[1:])
	case len(arguments) == 1 && arguments[0] == "engines":
		return renewEngines(in, out)
	default:
		return errors.New("usage: docgen reference CRD… | docgen engines <PAGE")
	}
}
