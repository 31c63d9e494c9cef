//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"coolops.cn/database-manager/internal/crdschema"
)

// exempt are the values of fields that no row can have, by why.
var exempt = map[string]string{
	"networkPolicy.from.ipBlock.except with an element of the greatest length": "no range has as many characters: the longest has 49",
}

// longAmount is 1 of a unit, in as many digits as an amount may have.
func longAmount(unit string) string {
	return strings.Repeat("0", 18) + "1." + strings.Repeat("0", 9) + unit
}

// narrower are the bounds that rules draw within those of the schema, as values
// at the bound.
func narrower() map[string][]string {
	bounds := map[string][]string{
		"deploymentName": {"a", strings.Repeat("a", 40)},
		"version":        {"8", "9999.9999.9999"},
		"storage.size":   {"64Mi", longAmount("Gi")},
		// The most addresses and the longest text; the fewest are in the exceptions.
		"networkPolicy.from.ipBlock.cidr": {"0.0.0.0/0", "::/0", longestRange},
	}
	for _, part := range []string{"requests", "limits"} {
		bounds["resources."+part+".cpu"] = []string{"0", longAmount("m")}
		bounds["resources."+part+".memory"] = []string{"0", longAmount("Gi")}
		bounds["resources."+part+".ephemeral-storage"] = []string{"0", longAmount("Gi")}
	}
	return bounds
}

const longestRange = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128"

// acceptedNetworkFields are values of spec.networkPolicy, up to their bounds.
func acceptedNetworkFields() map[string]string {
	most := `{` + manyLabels(15) + longKey(253) + `: ` + strings.Repeat("a", 63) + `}`
	specs := map[string]string{
		"no more clients":        withField(`networkPolicy: {from: []}`),
		"nothing about clients":  withField(`networkPolicy: {}`),
		"clients that are null":  withField(`networkPolicy: null`),
		"16 groups of clients":   withField(`networkPolicy: {from: [` + strings.Repeat("{podSelector: {}}, ", 16) + `]}`),
		"clients of all kinds":   withField(`networkPolicy: {from: [{podSelector: {}}, {namespaceSelector: {}}, {ipBlock: {cidr: 192.0.2.0/24}}]}`),
		"a client in both words": withField(`networkPolicy: {from: [{podSelector: {matchLabels: {app: shop}}, namespaceSelector: {matchLabels: {team: ""}}}]}`),
	}
	for what, peer := range map[string]string{
		"pods by 16 labels":          `{podSelector: {matchLabels: ` + most + `}}`,
		"pods by no label":           `{podSelector: {matchLabels: {}}}`,
		"namespaces by 16 labels":    `{namespaceSelector: {matchLabels: ` + most + `}}`,
		"namespaces by no label":     `{namespaceSelector: {matchLabels: {}}}`,
		"every address":              `{ipBlock: {cidr: 0.0.0.0/0, except: [192.0.2.1/32]}}`,
		"every address of version 6": `{ipBlock: {cidr: "::/0", except: []}}`,
		"one address of version 6":   `{ipBlock: {cidr: "` + longestRange + `"}}`,
		"16 exceptions":              `{ipBlock: {cidr: 192.0.2.0/24, except: [` + strings.Repeat("192.0.2.1/32, ", 16) + `]}}`,
	} {
		specs["clients: "+what] = withField(`networkPolicy: {from: [` + peer + `]}`)
	}
	return specs
}

// acceptedAmounts are amounts at their bounds, and each beside none of the others.
func acceptedAmounts() map[string]string {
	specs := map[string]string{}
	for path, amounts := range narrower() {
		words := strings.Split(path, ".")
		for _, amount := range amounts {
			switch words[0] {
			case "storage":
				specs["a volume of "+amount] = withField(fmt.Sprintf(`storage: {size: %q}`, amount))
			case "resources":
				specs[words[1]+" of "+words[2]+" of "+amount] = withField(fmt.Sprintf(`resources: {%s: {%s: %q}}`, words[1], words[2], amount))
			}
		}
	}
	return specs
}

// TestEveryFieldIsTriedWithinItsBoundsAtThemBeyondThemAndUnset holds the specs of
// TestAcceptedSpecs and TestRefusals to the schema: each leaf of it has a value
// that is accepted, each of its bounds is accepted, something is refused with its
// name in the message, and it is left out of what it stands in, which is accepted
// unless it is required.
func TestEveryFieldIsTriedWithinItsBoundsAtThemBeyondThemAndUnset(t *testing.T) {
	fields, err := crdschema.Spec(filepath.Join(repository, "config", "crd", "coolops.cn_databasemanagers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := parsed(t, acceptedSpecs()), parsed(t, allRefusedSpecs())
	blamed := blamedFields(t)
	missing := map[string]string{}
	for path, field := range fields {
		tried := valuesAt(accepted, path)
		for what, bound := range boundsOf(field) {
			if !slices.ContainsFunc(tried, bound) {
				missing[path+" "+what] = "no spec that is accepted has it"
			}
		}
		if !field.IsLeaf {
			continue
		}
		if len(tried) == 0 {
			missing[path+" valid"] = "no spec that is accepted has it"
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(refused)), func(sentence string) bool {
			return blamed["create: "+sentence][path] && len(valuesAt(map[string]any{"": refused[sentence]}, path)) > 0
		}) {
			missing[path+" invalid"] = "no spec that has it is refused with its name"
		}
		switch {
		case !field.IsRequired && !isUnset(accepted, path):
			missing[path+" unset"] = "no spec that is accepted has what it stands in without it"
		case field.IsRequired && !slices.ContainsFunc(slices.Collect(maps.Keys(refused)), func(sentence string) bool {
			return blamed["create: "+sentence][path] && isUnset(map[string]any{"": refused[sentence]}, path)
		}):
			missing[path+" unset"] = "no spec without it is refused with its name"
		}
	}
	for what, why := range missing {
		if exempt[what] == "" {
			t.Errorf("%s: %s", what, why)
		}
	}
	for what := range exempt {
		if missing[what] == "" {
			t.Errorf("%s: it has a row, and needs no excuse", what)
		}
	}
}

// parsed reads the specs that can be read.
func parsed(t *testing.T, specs map[string]string) map[string]any {
	t.Helper()
	read := map[string]any{}
	for sentence, spec := range specs {
		var fields any
		if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
			t.Fatalf("read the spec %s: %v", spec, err)
		}
		read[sentence] = fields
	}
	return read
}

// valuesAt returns the values that specs have at a path, null left out.
func valuesAt(specs map[string]any, path string) []any {
	var found []any
	for _, spec := range specs {
		for _, holder := range holdersOf(spec, path) {
			if value := holder[lastOf(path)]; value != nil {
				found = append(found, value)
			}
		}
	}
	return found
}

// isUnset tells whether a spec has what a field stands in, and not the field.
func isUnset(specs map[string]any, path string) bool {
	for _, spec := range specs {
		for _, holder := range holdersOf(spec, path) {
			if holder[lastOf(path)] == nil {
				return true
			}
		}
	}
	return false
}

func lastOf(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// holdersOf returns the objects in which the last field of a path stands, or could.
func holdersOf(value any, path string) []map[string]any {
	if list, isList := value.([]any); isList {
		var holders []map[string]any
		for _, element := range list {
			holders = append(holders, holdersOf(element, path)...)
		}
		return holders
	}
	object, isObject := value.(map[string]any)
	first, rest, isNested := strings.Cut(path, ".")
	switch {
	case !isObject:
		return nil
	case !isNested:
		return []map[string]any{object}
	default:
		return holdersOf(object[first], rest)
	}
}

// boundsOf returns, by what they are, tells for the values that are at a bound of
// a field.
func boundsOf(field crdschema.Field) map[string]func(any) bool {
	bounds := map[string]func(any) bool{}
	add := func(what string, isSet bool, isAt func(any) bool) {
		if isSet {
			bounds[what] = isAt
		}
	}
	schema := field.Schema
	if values := narrower()[field.Path]; len(values) > 0 {
		for _, value := range values {
			add(fmt.Sprintf("at its bound %.40q", value), true, func(tried any) bool { return fmt.Sprint(tried) == value })
		}
	} else {
		add("of the greatest length", schema.MaxLength != nil, func(tried any) bool { return len([]rune(fmt.Sprint(tried))) == *schema.MaxLength })
		add("at its least", schema.Minimum != nil, func(tried any) bool { return fmt.Sprint(tried) == number(*schema.Minimum) })
		add("at its greatest", schema.Maximum != nil, func(tried any) bool { return fmt.Sprint(tried) == number(*schema.Maximum) })
	}
	for _, word := range schema.Enum {
		add(fmt.Sprintf("with the word %v", word), true, func(tried any) bool { return tried == word })
	}
	add("set", schema.Type == "boolean", func(tried any) bool { return tried == true })
	add("set to false", schema.Type == "boolean", func(tried any) bool { return tried == false })
	add("with the most elements", schema.MaxItems != nil, func(tried any) bool { return lengthOf(tried) == *schema.MaxItems })
	add("with no element", schema.MaxItems != nil && schema.MinItems == nil, func(tried any) bool { return lengthOf(tried) == 0 })
	add("with the most keys", schema.MaxProperties != nil, func(tried any) bool { return lengthOf(tried) == *schema.MaxProperties })
	add("with no key", schema.MaxProperties != nil, func(tried any) bool { return lengthOf(tried) == 0 })
	if of := schema.AdditionalProperties; of != nil && of.MaxLength != nil {
		bounds["with a value of the greatest length"] = func(tried any) bool {
			values, _ := tried.(map[string]any)
			return slices.ContainsFunc(slices.Collect(maps.Values(values)), func(value any) bool { return len([]rune(fmt.Sprint(value))) == *of.MaxLength })
		}
	}
	if of := schema.Items; of != nil && of.MaxLength != nil {
		bounds["with an element of the greatest length"] = func(tried any) bool {
			elements, _ := tried.([]any)
			return slices.ContainsFunc(elements, func(element any) bool { return len([]rune(fmt.Sprint(element))) == *of.MaxLength })
		}
	}
	return bounds
}

func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

// lengthOf is how many elements or keys a value has; -1 if it is neither a list
// nor a map.
func lengthOf(value any) int {
	switch of := reflect.ValueOf(value); of.Kind() {
	case reflect.Map, reflect.Slice:
		return of.Len()
	default:
		return -1
	}
}

// place is where a message of the API server begins: the field in question.
var place = regexp.MustCompile(`^spec\.([^: ]+): `)

// blamedFields returns the fields that each of the messages in admission.golden
// names, without the numbers of elements; a key of a map names the map, too.
func blamedFields(t *testing.T) map[string]map[string]bool {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "admission.golden"))
	if err != nil {
		t.Fatalf("read the golden file: %v", err)
	}
	index := regexp.MustCompile(`\[\d+\]`)
	blamed := map[string]map[string]bool{}
	var title string
	for line := range strings.Lines(string(content)) {
		if sentence, isTitle := strings.CutPrefix(line, "# "); isTitle {
			title = strings.TrimSpace(sentence)
			blamed[title] = map[string]bool{}
			continue
		}
		if match := place.FindStringSubmatch(line); match != nil {
			path := index.ReplaceAllString(match[1], "")
			blamed[title][path] = true
			if cut := strings.LastIndexAny(path, ".["); cut > 0 {
				blamed[title][path[:cut]] = true
			}
		}
	}
	return blamed
}
