// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Root returns the folder of an image's root file system, for running its
// programs without a container.
func (m *Maker) Root(ctx context.Context, name string) (Made, error) {
	all := Images()
	index := slices.IndexFunc(all, func(d Definition) bool { return d.Name == name })
	if index < 0 {
		var names []string
		for _, definition := range all {
			names = append(names, definition.Name)
		}
		return Made{}, fmt.Errorf("no image %q: there are %s", name, strings.Join(names, ", "))
	}
	definition := all[index]
	key, err := m.imageKey(definition)
	if err != nil {
		return Made{}, err
	}
	return m.make(ctx, name, "root-"+name, key, rootFolder, func(dir string) ([]Package, error) {
		return m.unpack(ctx, definition.Suite, append(basePackages(), definition.Packages...), filepath.Join(dir, rootFolder))
	})
}
