// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestALicenceIsRecognisedWholeOrNotAtAll(t *testing.T) {
	known, err := readTemplates()
	if err != nil {
		t.Fatal(err)
	}
	mit, bsd3, bsd2, isc := licenseText(t, "MIT"), licenseText(t, "BSD-3-Clause"), licenseText(t, "BSD-2-Clause"), licenseText(t, "ISC")
	for sentence, row := range map[string]struct {
		text string
		want []string // nil: unknown
	}{
		"a text as it stands":                    {mit, []string{"MIT"}},
		"with a title and whose it is":           {"The MIT License (MIT)\n\nCopyright (c) 2014 A. B.\n\n" + mit, []string{"MIT"}},
		"with other line breaks and capitals":    {strings.ToUpper(strings.Join(strings.Fields(mit), "\n")), []string{"MIT"}},
		"with numbers for the marks of a list":   {"Copyright 2009 The Go Authors.\n" + strings.ReplaceAll(bsd3, "* ", "   2. "), []string{"BSD-3-Clause"}},
		"without the third clause":               {bsd2, []string{"BSD-2-Clause"}},
		"two of them in one file":                {mit + "\n\nCopyright (c) 2012 C. D. All rights reserved.\n" + isc, []string{"ISC", "MIT"}},
		"nothing":                                {"", nil},
		"something else":                         {"All of this is in the public domain.", nil},
		"with a condition more":                  {mit + "\nThe Software shall be used for Good, not Evil.", nil},
		"with a condition before it":             {"Not for use on Mondays.\n" + mit, nil},
		"with a word less":                       {strings.Replace(mit, "free of charge, ", "", 1), nil},
		"with a word more":                       {strings.Replace(mit, "subject to the following conditions", "subject to payment and the following conditions", 1), nil},
		"one that is known, and one that isn't":  {mit + "\nGNU AFFERO GENERAL PUBLIC LICENSE, Version 3", nil},
		"a copyright line that says more beside": {"Copyright owners may ask for money.\n" + mit, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := recognise(row.text, known)
			slices.Sort(got)
			if (row.want == nil) != errors.Is(err, errUnknown) || row.want != nil && !slices.Equal(got, row.want) {
				t.Errorf("got %v and %v, want %v", got, err, row.want)
			}
		})
	}
}

// licenseText returns the text of a licence with names put in.
func licenseText(t *testing.T, license string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("templates", license+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	named := strings.NewReplacer("* <who> may <maybe-not>", "* Neither the name of A. B. nor the names of its contributors may", "<who>", "THE COPYRIGHT HOLDERS AND CONTRIBUTORS")
	return named.Replace(string(text))
}

func TestWhatIsInTheOperatorIsKnownWithTheTextsOfFoldersBelow(t *testing.T) {
	var table, texts strings.Builder
	if err := run([]string{"table", "coolops.cn/database-manager/cmd/database-manager"}, &table); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"texts", "coolops.cn/database-manager/cmd/database-manager"}, &texts); err != nil {
		t.Fatal(err)
	}
	for text, wants := range map[string][]string{
		table.String(): {"| github.com/go-sql-driver/mysql | v", "| MPL-2.0 |", "| k8s.io/apimachinery | v", "| Apache-2.0, BSD-3-Clause |", "Go's standard library"},
		texts.String(): {", third_party/forked/golang/LICENSE\n", ", NOTICE\n", ", PATENTS\n", ", LICENSE.libyaml\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("lacks %q", want)
			}
		}
	}
}

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, arguments := range [][]string{nil, {"table"}, {"list", "."}} {
		if err := run(arguments, &strings.Builder{}); err == nil {
			t.Errorf("%q: no error", arguments)
		}
	}
}
