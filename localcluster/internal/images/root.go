// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Find returns the definition of the image that has that name or reference.
func Find(nameOrReference string) (Definition, error) {
	all := Images()
	index := slices.IndexFunc(all, func(d Definition) bool {
		return d.Name == nameOrReference || slices.Contains(d.References, nameOrReference)
	})
	if index < 0 {
		var names []string
		for _, definition := range all {
			names = append(names, definition.References...)
		}
		return Definition{}, fmt.Errorf("no image %q: there are %s", nameOrReference, strings.Join(names, ", "))
	}
	return all[index], nil
}

// Root returns the folder of an image's root file system, for running its
// programs without a container.
func (m *Maker) Root(ctx context.Context, nameOrReference string) (Made, error) {
	definition, err := Find(nameOrReference)
	if err != nil {
		return Made{}, err
	}
	key, err := m.imageKey(definition)
	if err != nil {
		return Made{}, err
	}
	image, err := m.Image(ctx, definition)
	if err != nil {
		return Made{}, err
	}
	root, err := m.cache.Ensure(ctx, "root-"+definition.Name, key, func(dir string) error {
		return extract(ctx, image.Path, definition.References[0], dir)
	})
	return Made{root, image.Packages}, err
}

// extract unpacks an image of an archive into a folder, which it makes. Owners and modes are the image's.
func extract(ctx context.Context, archive, reference, dir string) error {
	if os.Geteuid() != 0 {
		return errors.New("unpacking an image needs root, to give the files their owners: run it as root")
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("image reference %q: %w", reference, err)
	}
	image, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	flat := mutate.Extract(image)
	defer func() { _ = flat.Close() }() // it was only read
	command := exec.CommandContext(ctx, "tar", "--extract", "--directory="+dir, "--numeric-owner", "--preserve-permissions")
	command.Stdin = flat
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", filepath.Base(archive), err, bytes.TrimSpace(output))
	}
	return nil
}
