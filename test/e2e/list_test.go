//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// listNames returns the names of the objects in the list that list returns.
func listNames(list func() (any, error)) ([]string, error) {
	listed, err := list()
	if err != nil {
		return nil, err
	}
	object, ok := listed.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no API object", listed)
	}
	var names []string
	err = meta.EachListItem(object, func(item runtime.Object) error {
		accessor, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		names = append(names, accessor.GetName())
		return nil
	})
	return names, err
}
