// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"coolops.cn/database-manager/localcluster/internal/cache"
	"coolops.cn/database-manager/localcluster/internal/progress"
)

// Maker makes images and the node's root file system into the cache.
type Maker struct {
	cache   cache.Cache
	lock    Lock
	printer *progress.Printer
	// told are the names of which it was said that they differ from the lock file; once is enough.
	told map[string]bool
}

// NewMaker returns a Maker for the versions that lock names. It must not be used by two goroutines at once.
func NewMaker(store cache.Cache, lock Lock, printer *progress.Printer) *Maker {
	return &Maker{cache: store, lock: lock, printer: printer, told: map[string]bool{}}
}

// Made is what a Maker made, or found in the cache.
type Made struct {
	// Path is an archive or, for the node, a folder.
	Path string
	// Packages are what it consists of.
	Packages []Package
}

const (
	nodeName     = "node"
	packagesFile = "packages"
	archiveFile  = "image.tar"
	rootFile     = "rootfs.tar"
	rootFolder   = "rootfs"
	// format changes when the making itself does.
	format = "3"
)

// Image returns the archive of an image.
func (m *Maker) Image(ctx context.Context, definition Definition) (Made, error) {
	key, err := m.imageKey(definition)
	if err != nil {
		return Made{}, err
	}
	base, err := m.base(ctx, definition.Suite)
	if err != nil {
		return Made{}, err
	}
	return m.make(ctx, definition.Name, "image-"+definition.Name, key, archiveFile, func(dir string) ([]Package, error) {
		packages, err := m.unpack(ctx, definition.Suite, append(basePackages(), definition.Packages...), filepath.Join(dir, rootFile))
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
	index := slices.IndexFunc(packages, func(p Package) bool { return p.Name == d.Main })
	if index < 0 {
		return fmt.Errorf("image %s is defined by package %s, which isn't among those that Debian %s gives for it: change the definition", d.References[0], d.Main, d.Suite)
	}
	if version := packages[index].Version; !strings.HasPrefix(upstreamVersion(version), d.Version) {
		return fmt.Errorf("image %s is defined for %s %s*, and Debian %s has %s now: change the definition, and the operator's table of versions with it",
			d.References[0], d.Main, d.Version, d.Suite, version)
	}
	return nil
}

func (d Definition) assemble(dir, base string) error {
	root, layer := filepath.Join(dir, rootFile), filepath.Join(dir, "layer.tar")
	change := layerChange{without: append(unneeded(), d.Without...), files: append(commonFiles(d.UserName), d.Files...)}
	if err := writeLayer(layer, root, base, change); err != nil {
		return err
	}
	config := v1.Config{Cmd: d.Command, Env: []string{defaultPath}, User: d.User, WorkingDir: d.WorkingDir, StopSignal: d.StopSignal}
	if d.Path != "" {
		config.Env = []string{defaultPath + ":" + d.Path}
	}
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
func (m *Maker) base(ctx context.Context, suite string) (Made, error) {
	name := baseName(suite)
	key, err := m.key(name, basePackages())
	if err != nil {
		return Made{}, err
	}
	return m.make(ctx, name, "image-"+name, key, rootFile, func(dir string) ([]Package, error) {
		unpacked := filepath.Join(dir, "unpacked.tar")
		packages, err := m.unpack(ctx, suite, basePackages(), unpacked)
		if err != nil {
			return nil, err
		}
		if err := writeLayer(filepath.Join(dir, rootFile), unpacked, "", layerChange{without: unneeded()}); err != nil {
			return nil, err
		}
		return packages, os.Remove(unpacked)
	})
}

// NodeRoot returns the folder of a node's root file system.
func (m *Maker) NodeRoot(ctx context.Context) (Made, error) {
	key, err := m.key(nodeName, nodePackages())
	if err != nil {
		return Made{}, err
	}
	return m.make(ctx, nodeName, nodeName, key, rootFolder, func(dir string) ([]Package, error) {
		return m.unpack(ctx, nodeSuite, nodePackages(), filepath.Join(dir, rootFolder))
	})
}

func baseName(suite string) string { return "base-" + suite }

// key is the cache's key of what is made of the locked packages of those names.
func (m *Maker) key(name string, definition any, others ...string) (string, error) {
	return cache.Key(func(h cache.Hash) error {
		h.String(format, fmt.Sprintf("%+v %+v %v %v", definition, commonFiles(""), basePackages(), unneeded()), formatPackages(name, m.lock[name]))
		for _, other := range others {
			h.String(formatPackages(other, m.lock[other]))
		}
		return nil
	})
}

// imageKey covers the base too, which is the image's first layer.
func (m *Maker) imageKey(definition Definition) (string, error) {
	return m.key(definition.Name, definition, baseName(definition.Suite))
}

// make returns a cached entry, or has it made, and says where its packages differ from the lock file.
func (m *Maker) make(ctx context.Context, name, entry, key, result string, create func(dir string) ([]Package, error)) (Made, error) {
	dir, err := m.cache.Ensure(ctx, entry, key, func(dir string) (err error) {
		var packages []Package
		step := m.printer.Start("making image " + name + " from Debian packages")
		defer func() { step.End(err, "%d packages", len(packages)) }()
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if packages, err = create(dir); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
		return os.WriteFile(filepath.Join(dir, packagesFile), []byte(formatPackages(name, packages)), 0o644)
	})
	if err != nil {
		return Made{}, err
	}
	contents, err := ReadLock(filepath.Join(dir, packagesFile))
	if err != nil {
		return Made{}, err
	}
	m.tellDifferences(name, contents[name])
	return Made{filepath.Join(dir, result), contents[name]}, nil
}

func (m *Maker) tellDifferences(name string, packages []Package) {
	differences := m.lock.Differences(name, packages)
	if m.lock == nil || len(differences) == 0 || m.told[name] {
		return
	}
	m.told[name] = true
	shown := strings.Join(differences[:min(len(differences), 5)], ", ")
	if more := len(differences) - 5; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	m.printer.Printf("image %s differs from the lock file: %s; `localcluster images --update-lock` records what the mirror has", name, shown)
}

// entry is a name and key in the cache.
type entry struct{ name, key string }

// entries are what is made for a cluster with nodes, in the cache's terms.
func (m *Maker) entries() ([]entry, error) {
	key, err := m.key(nodeName, nodePackages())
	if err != nil {
		return nil, err
	}
	all := []entry{{nodeName, key}}
	bases := map[string]bool{}
	for _, definition := range Images() {
		key, err := m.imageKey(definition)
		if err != nil {
			return nil, err
		}
		all = append(all, entry{"image-" + definition.Name, key})
		base := baseName(definition.Suite)
		if bases[base] {
			continue
		}
		bases[base] = true
		if key, err = m.key(base, basePackages()); err != nil {
			return nil, err
		}
		all = append(all, entry{"image-" + base, key})
	}
	return all, nil
}

// Has tells whether the node's root file system and all images are in the cache.
func (m *Maker) Has() (bool, error) {
	all, err := m.entries()
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(all, func(e entry) bool { return !m.cache.Has(e.name, e.key) }), nil
}

// Binary returns the archive of an image that holds one static binary.
func (m *Maker) Binary(ctx context.Context, image BinaryImage) (string, error) {
	key, err := cache.Key(func(h cache.Hash) error {
		h.String(format, image.Reference, image.Command, image.User)
		return h.Files(func(string) bool { return true }, image.Binary)
	})
	if err != nil {
		return "", err
	}
	return m.cache.Ensure(ctx, "image-binary-"+image.Command, key, image.WriteArchive)
}

// Current returns the packages of all that is made from packages, as it is in the cache; what is missing is made.
func (m *Maker) Current(ctx context.Context) (Lock, error) {
	lock := Lock{}
	root, err := m.NodeRoot(ctx)
	if err != nil {
		return nil, err
	}
	lock[nodeName] = root.Packages
	for _, definition := range Images() {
		base, err := m.base(ctx, definition.Suite)
		if err != nil {
			return nil, err
		}
		image, err := m.Image(ctx, definition)
		if err != nil {
			return nil, err
		}
		lock[baseName(definition.Suite)], lock[definition.Name] = base.Packages, image.Packages
	}
	return lock, nil
}

// Renew makes everything of the versions that the mirror has today, and returns them. What it made is then in the
// cache as what that lock names, so that nothing is made twice.
func (m *Maker) Renew(ctx context.Context) (Lock, error) {
	unlock, err := m.cache.Lock(ctx, "renew")
	if err != nil {
		return nil, err
	}
	defer unlock()
	scratch := filepath.Join(m.cache.Dir(), ".renewing")
	if err := os.RemoveAll(scratch); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the next one removes it otherwise
	store, err := cache.Open(scratch, nil)
	if err != nil {
		return nil, err
	}
	fresh := NewMaker(store, nil, m.printer)
	lock, err := fresh.Current(ctx)
	if err != nil {
		return nil, err
	}
	return lock, NewMaker(m.cache, lock, m.printer).adopt(ctx, fresh)
}

// adopt moves what other made into this Maker's cache, under this Maker's keys.
func (m *Maker) adopt(ctx context.Context, other *Maker) error {
	theirs, err := other.entries()
	if err != nil {
		return err
	}
	ours, err := m.entries()
	if err != nil {
		return err
	}
	for i, e := range ours {
		_, err := m.cache.Ensure(ctx, e.name, e.key, func(path string) error {
			return os.Rename(other.cache.Path(theirs[i].name, theirs[i].key), path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
