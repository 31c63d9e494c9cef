// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePageOfFieldsSaysAllThatTheSchemaDoes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "crd.yaml")
	definition := `
spec:
  group: example.com
  names: {kind: Thing, shortNames: [th]}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: Thing is one.
        required: [spec]
        properties:
          spec:
            description: spec is what is asked for.
            type: object
            required: [name]
            properties:
              name:
                description: |-
                  name is
                  a <name>.

                  It stays.
                type: string
                maxLength: 5
                x-kubernetes-validations:
                - message: must be nice
                - messageExpression: '"was ''" + oldSelf + "'', stays"'
              size: {description: size is how much., x-kubernetes-int-or-string: true}
              count: {description: count is how many., type: integer, minimum: 1, maximum: 3, default: 2}
              kind: {description: kind is which., type: string, enum: [a, b]}
              tags: {description: tags are marks., type: object, maxProperties: 4, additionalProperties: {type: string, maxLength: 7}}
              rows:
                description: rows are all.
                type: array
                maxItems: 9
                items:
                  type: object
                  x-kubernetes-validations: [{message: must be whole, fieldPath: .x}]
                  properties: {x: {description: x is one., type: boolean}}
`
	if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	page := &strings.Builder{}
	if err := run([]string{"reference", file}, nil, page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Thing\n\n`apiVersion: example.com/v1`, `kind: Thing`, for short `th`. Thing is one.\n",
		"### Thing `spec`\n\n*object*; required\n",
		"### Thing `spec.name`\n\n*text*; required; at most 5 characters\n\nname is a &lt;name&gt;.\n\nIt stays.\n\nRefused with:\n\n- must be nice\n- was '…', stays\n",
		"### Thing `spec.size`\n\n*quantity*; optional\n",
		"*whole number*; optional; default `2`; at least 1; at most 3\n",
		"one of `a`, `b`\n",
		"*map of text to text*; optional; at most 4 entries; each value at most 7 characters\n",
		"*list of object*; optional; at most 9 entries\n\nrows are all.\n\nRefused with:\n\n- `.x` must be whole\n",
		"### Thing `spec.rows[].x`\n\n*boolean*; optional\n",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("lacks %q in\n%s", want, page)
		}
	}
}

func TestTheTablesOfEnginesAreRenewedBetweenTheirMarks(t *testing.T) {
	parts := []string{"a\n<!-- begin generated: releases -->\nold\n<!-- end generated: releases -->\nb\n<!-- begin generated: engines -->\n<!-- end generated: engines -->\nc\n"}
	for _, engine := range engines() {
		name := "parameters of " + string(engine.Type())
		parts = append(parts, "<!-- begin generated: "+name+" -->\nold\n<!-- end generated: "+name+" -->\n")
	}
	page := strings.Join(parts, "")
	renewed := &strings.Builder{}
	if err := run([]string{"engines"}, strings.NewReader(page), renewed); err != nil {
		t.Fatal(err)
	}
	got := renewed.String()
	for _, want := range []string{
		"a\n<!-- begin generated: releases -->\n| `dbtype` |", "| `valkey` | `9.1` | `valkey/valkey:9.1` | default |\n", "<!-- end generated: releases -->\nb\n",
		"| `postgresql` | 5432 | `app` | `app` | `postgresql://app:PASSWORD@HOST:5432/app` |\n", "<!-- end generated: engines -->\nc\n",
		"<!-- begin generated: parameters of mysql -->\n| parameter | a change |", "| `max_connections` | is live | a whole number, 10 to 10000 | `151` |\n",
		"| `innodb_rollback_on_timeout` | restarts | on or off | `off` |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "\nold\n") {
		t.Errorf("the old table is still there:\n%s", got)
	}
	again := &strings.Builder{}
	if err := run([]string{"engines"}, strings.NewReader(got), again); err != nil || again.String() != got {
		t.Errorf("made again, it differs (%v):\n%s", err, again)
	}
}

func TestAPageWithoutMarksAndAWrongCommandLineAreRefused(t *testing.T) {
	if err := run([]string{"engines"}, strings.NewReader("nothing\n"), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "begin generated") {
		t.Errorf("got %v", err)
	}
	for _, arguments := range [][]string{nil, {"reference"}, {"engines", "x"}, {"reference", filepath.Join(t.TempDir(), "none.yaml")}} {
		if err := run(arguments, strings.NewReader(""), &strings.Builder{}); err == nil {
			t.Errorf("%q: no error", arguments)
		}
	}
}
