package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"coolops.cn/database-manager/localcluster/internal/cache"
	"coolops.cn/database-manager/localcluster/internal/progress"
)

// Maker makes images and the node's root file system into the cache.
type Maker struct {
	Cache   cache.Cache
	Lock    Lock
	Printer *progress.Printer
}

// Made is what a Maker made, or found in the cache.
type Made struct {
	// Path is an archive or, for the node, a folder.
	Path string
	// Packages are what it consists of.
	Packages []Package
}

const (
	packagesFile = "packages"
	archiveFile  = "image.tar"
	rootFile     = "rootfs.tar"
	rootFolder   = "rootfs"
	// format changes when the making itself does.
	format = "1"
)

// Image returns the archive of an image.
func (m Maker) Image(ctx context.Context, definition Definition) (Made, error) {
	key, err := m.key(definition.Name, definition)
	if err != nil {
		return Made{}, err
	}
	base, err := m.base(ctx, definition.Suite)
	if err != nil {
		return Made{}, err
	}
	return m.make(definition.Name, "image-"+definition.Name, key, archiveFile, func(dir string) ([]Package, error) {
		packages, err := unpack(ctx, definition.Suite, append(basePackages(), definition.Packages...), filepath.Join(dir, rootFile))
		if err != nil {
			return nil, err
		}
		if err := definition.check(packages); err != nil {
			return nil, err
		}
		return packages, definition.assemble(dir, base.Path)
	})
}

// check refuses a reference that would lie about the version.
func (d Definition) check(packages []Package) error {
	for _, p := range packages {
		if p.Name == d.Main && !strings.HasPrefix(upstreamVersion(p.Version), d.Version) {
			return fmt.Errorf("image %s is defined for %s %s*, and Debian %s has %s now: change the definition, and the operator's table of versions with it",
				d.References[0], d.Main, d.Version, d.Suite, p.Version)
		}
	}
	return nil
}

func (d Definition) assemble(dir, base string) error {
	root, layer := filepath.Join(dir, rootFile), filepath.Join(dir, "layer.tar")
	if err := writeLayer(layer, root, base, append(commonFiles(), d.Files...)); err != nil {
		return err
	}
	config := v1.Config{Cmd: d.Command, Env: []string{defaultPath}, User: d.User, WorkingDir: d.WorkingDir}
	if err := WriteArchive(filepath.Join(dir, archiveFile), d.References, config, base, layer); err != nil {
		return err
	}
	for _, scratch := range []string{root, layer} {
		if err := os.Remove(scratch); err != nil {
			return err
		}
	}
	return nil
}

// base returns the archive of a suite's shared layer.
func (m Maker) base(ctx context.Context, suite string) (Made, error) {
	name := "base-" + suite
	key, err := m.key(name, basePackages())
	if err != nil {
		return Made{}, err
	}
	return m.make(name, "image-"+name, key, rootFile, func(dir string) ([]Package, error) {
		return unpack(ctx, suite, basePackages(), filepath.Join(dir, rootFile))
	})
}

// NodeRoot returns the folder of a node's root file system.
func (m Maker) NodeRoot(ctx context.Context) (Made, error) {
	key, err := m.key("node", nodePackages())
	if err != nil {
		return Made{}, err
	}
	return m.make("node", "node", key, rootFolder, func(dir string) ([]Package, error) {
		return unpack(ctx, nodeSuite, nodePackages(), filepath.Join(dir, rootFolder))
	})
}

func (m Maker) key(name string, definition any) (string, error) {
	return cache.Key(func(h cache.Hash) error {
		h.String(format, fmt.Sprintf("%+v %v %v", definition, commonFiles(), basePackages()), formatPackages(name, m.Lock[name]))
		return nil
	})
}

// make returns a cached entry, or has it made, and says where its packages differ from the lock file.
func (m Maker) make(name, entry, key, result string, create func(dir string) ([]Package, error)) (Made, error) {
	dir, err := m.Cache.Ensure(entry, key, func(dir string) error {
		step := m.Printer.Start("making image " + name + " from Debian packages")
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		packages, err := create(dir)
		if err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
		step.Done("%d packages", len(packages))
		return os.WriteFile(filepath.Join(dir, packagesFile), []byte(formatPackages(name, packages)), 0o644)
	})
	if err != nil {
		return Made{}, err
	}
	contents, err := ReadLock(filepath.Join(dir, packagesFile))
	if err != nil {
		return Made{}, err
	}
	if differences := m.Lock.Differences(name, contents[name]); m.Lock != nil && len(differences) > 0 {
		shown := differences[:min(len(differences), 5)]
		m.Printer.Printf("image %s differs from the lock file in %d packages: %s …; `localcluster images --update-lock` records what the mirror has", name, len(differences), strings.Join(shown, ", "))
	}
	return Made{filepath.Join(dir, result), contents[name]}, nil
}

// Has tells whether the node's root file system and all images are in the cache.
func (m Maker) Has() (bool, error) {
	entries := map[string]any{"node": nodePackages()}
	for _, definition := range Images() {
		entries["image-"+definition.Name] = definition
	}
	for entry, definition := range entries {
		key, err := m.key(strings.TrimPrefix(entry, "image-"), definition)
		if err != nil || !m.Cache.Has(entry, key) {
			return false, err
		}
	}
	return true, nil
}

// Binary returns the archive of an image that holds one static binary.
func (m Maker) Binary(image BinaryImage) (string, error) {
	key, err := cache.Key(func(h cache.Hash) error {
		h.String(format, image.Reference, image.Command, image.User)
		return h.Files(func(string) bool { return true }, image.Binary)
	})
	if err != nil {
		return "", err
	}
	return m.Cache.Ensure("image-binary-"+image.Command, key, image.WriteArchive)
}

// Current returns the packages of everything that is made from packages: as cached, or as the mirror has them today.
func (m Maker) Current(ctx context.Context, anew bool) (Lock, error) {
	if err := EnsureTools(ctx); err != nil {
		return nil, err
	}
	if anew {
		// Without a lock the keys differ from all others; and the mirror may have moved since the last time.
		scratch, err := os.MkdirTemp(m.Cache.Dir(), ".lock-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(scratch) }()
		if m.Cache, err = cache.Open(scratch); err != nil {
			return nil, err
		}
		m.Lock = nil
	}
	lock := Lock{}
	root, err := m.NodeRoot(ctx)
	if err != nil {
		return nil, err
	}
	lock["node"] = root.Packages
	for _, definition := range Images() {
		base, err := m.base(ctx, definition.Suite)
		if err != nil {
			return nil, err
		}
		image, err := m.Image(ctx, definition)
		if err != nil {
			return nil, err
		}
		lock["base-"+definition.Suite], lock[definition.Name] = base.Packages, image.Packages
	}
	return lock, nil
}
