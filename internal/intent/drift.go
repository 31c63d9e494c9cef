// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// mergeKeys names, for a list that several managers may add to, the fields that
// tell its elements apart, as the API server's own merge does. The elements of
// any other list are compared in order, and none may be added.
//
// For example: a container that somebody else added beside ours is no drift,
// an argument added to our container's command is.
func mergeKeys(list string) []string {
	switch list {
	case "containers", "initContainers", "volumes", "env", "imagePullSecrets":
		return []string{"name"}
	case "volumeMounts":
		return []string{"mountPath"}
	case "topologySpreadConstraints":
		return []string{"topologyKey", "whenUnsatisfiable"}
	case "ports":
		return []string{"containerPort", "port", "protocol"}
	case "ownerReferences":
		return []string{"uid"}
	default:
		return nil
	}
}

// Drift returns the path of the first field, in the order of the paths, in which
// object differs from what fields asks for, for example "spec.template.spec.containers[0].image", or ""
// if it says all of it. Fields that the intent doesn't name are nobody's
// business here. A field that is asked to be zero may also be absent, since the
// API server leaves out many a zero.
func Drift(fields map[string]any, object any) (string, error) {
	actual, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", fmt.Errorf("read the fields of %T: %w", object, err)
	}
	first := ""
	for name, want := range fields {
		// A typed object out of a cache doesn't carry its own kind.
		if name == "kind" || name == "apiVersion" {
			continue
		}
		first = earlier(first, drift(name, name, want, actual[name]))
	}
	return first, nil
}

// earlier returns the one of two paths that comes first; empty is none. Maps have
// no order, and the same objects have to give the same answer.
func earlier(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return min(a, b)
}

func drift(path, name string, want, have any) string {
	if isZero(want) && have == nil {
		return ""
	}
	switch want := want.(type) {
	case map[string]any:
		return driftOfMap(path, want, have)
	case []any:
		return driftOfList(path, name, want, have)
	default:
		if reflect.DeepEqual(want, have) {
			return ""
		}
		return path
	}
}

func driftOfMap(path string, want map[string]any, have any) string {
	actual, isMap := have.(map[string]any)
	if !isMap {
		return path
	}
	first := ""
	for name, value := range want {
		first = earlier(first, drift(path+"."+name, name, value, actual[name]))
	}
	return first
}

func driftOfList(path, name string, want []any, have any) string {
	actual, isList := have.([]any)
	if !isList {
		return path
	}
	keys := mergeKeys(name)
	if keys == nil && len(actual) != len(want) {
		return path
	}
	for i, value := range want {
		at := fmt.Sprintf("%s[%d]", path, i)
		var element any
		if keys != nil {
			element = find(actual, value, keys)
		} else {
			element = actual[i]
		}
		if element == nil {
			return at
		}
		if differing := drift(at, "", value, element); differing != "" {
			return differing
		}
	}
	return ""
}

// find returns the element of list that agrees with want on keys, as far as
// want sets them; nil if there is none.
func find(list []any, want any, keys []string) any {
	wanted, isMap := want.(map[string]any)
	if !isMap {
		return nil
	}
	for _, element := range list {
		candidate, isMap := element.(map[string]any)
		if isMap && agree(wanted, candidate, keys) {
			return candidate
		}
	}
	return nil
}

func agree(wanted, candidate map[string]any, keys []string) bool {
	for _, key := range keys {
		if value, isSet := wanted[key]; isSet && !reflect.DeepEqual(value, candidate[key]) {
			return false
		}
	}
	return true
}

func isZero(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return reflect.ValueOf(value).IsZero()
	}
}
