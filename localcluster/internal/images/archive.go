// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// defaultPath is the PATH of upstream images.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// WriteArchive writes an image archive, which `docker load`, `ctr images import` and localcluster load-image read.
func WriteArchive(target string, references []string, config v1.Config, layers ...string) error {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", Created: v1.Time{Time: epoch()}, Config: config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return err
	}
	for _, path := range layers {
		layer, err := tarball.LayerFromFile(path)
		if err != nil {
			return fmt.Errorf("layer %s: %w", path, err)
		}
		image, err = mutate.AppendLayers(image, layer)
		if err != nil {
			return err
		}
	}
	tags := map[name.Tag]v1.Image{}
	for _, reference := range references {
		tag, err := name.NewTag(reference)
		if err != nil {
			return fmt.Errorf("image reference %q: %w", reference, err)
		}
		tags[tag] = image
	}
	return tarball.MultiWriteToFile(target, tags)
}

// BinaryImage is an image of one static binary, which is its entry point.
type BinaryImage struct {
	// Reference is the image's name.
	Reference string
	// Binary is the path of the static binary on this machine; Command is its name in the image.
	Binary, Command string
	// User is the numeric user that it runs as; empty means root.
	User string
}

// WriteArchive writes the image's archive.
func (i BinaryImage) WriteArchive(target string) error {
	content, err := os.ReadFile(i.Binary)
	if err != nil {
		return err
	}
	layer := target + ".layer"
	defer func() { _ = os.Remove(layer) }()
	if err := writeFiles(layer, []File{
		{Path: i.Command, Mode: 0o755, Content: string(content)},
		{Path: "tmp", Mode: 0o1777, Folder: true},
	}); err != nil {
		return err
	}
	config := v1.Config{Entrypoint: []string{"/" + i.Command}, Env: []string{defaultPath}, User: i.User, WorkingDir: "/"}
	return WriteArchive(target, []string{i.Reference}, config, layer)
}
