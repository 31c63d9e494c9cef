// SPDX-License-Identifier: Apache-2.0

// Package cache keeps what is expensive to make in the user's cache folder, under a key that is a hash of all
// that it was made from. A fresh checkout finds it again.
package cache

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/filelock"
)

// Cache is a folder of entries; each is a file or a folder.
type Cache struct {
	dir string
	// waiting is told the name of an entry that another process makes.
	waiting func(name string)
}

// Open returns the cache in dir, which is made when something is put in it; an empty dir means localcluster's folder
// in the user's cache folder. waiting, unless nil, is called when another process makes an entry that is wanted here.
func Open(dir string, waiting func(name string)) (Cache, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return Cache{}, fmt.Errorf("no cache folder: %w; set HOME or XDG_CACHE_HOME, or name a folder with --cache-dir", err)
		}
		dir = filepath.Join(user, "localcluster")
	}
	dir, err := filepath.Abs(dir)
	if waiting == nil {
		waiting = func(string) {}
	}
	return Cache{dir, waiting}, err
}

// Dir is the cache's folder.
func (c Cache) Dir() string { return c.dir }

// Path is where the entry is, or would be.
func (c Cache) Path(name, key string) string { return filepath.Join(c.dir, name+"-"+key) }

// Has tells whether the entry exists.
func (c Cache) Has(name, key string) bool {
	_, err := os.Lstat(c.Path(name, key))
	return err == nil
}

// Ensure returns the entry's path. Where it is missing, create makes it at the temporary path that it is given; it
// appears in the cache only when whole. Two processes that want the same entry make it once. Older entries of the
// same name are removed, but for the newest few, which another checkout may use, and those that are held.
func (c Cache) Ensure(ctx context.Context, name, key string, create func(path string) error) (string, error) {
	target := c.Path(name, key)
	if c.Has(name, key) {
		now := time.Now()
		_ = os.Chtimes(target, now, now) // only says what was used last; a cache of another user can't be told
		return target, nil
	}
	unlock, err := c.Lock(ctx, name)
	if err != nil {
		return "", err
	}
	defer unlock()
	if c.Has(name, key) {
		return target, nil
	}
	// One name, not a random one: what a killed process left there goes now.
	scratch := filepath.Join(c.dir, ".making-"+name)
	if err := os.RemoveAll(scratch); err != nil {
		return "", err
	}
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // as above, if it can't be now
	made := filepath.Join(scratch, "entry")
	if err := create(made); err != nil {
		return "", err
	}
	if err := os.Rename(made, target); err != nil {
		return "", err
	}
	return target, c.prune(name)
}

// Lock keeps other processes from making what has that name.
func (c Cache) Lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, err
	}
	file, err := filelock.Lock(ctx, filepath.Join(c.dir, name+".lock"), func() { c.waiting(name) })
	if err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// Hold keeps the entry at path from being removed, for as long as the file that it returns is open in any process.
func Hold(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	held, err := filelock.Try(file, unix.LOCK_SH)
	if err == nil && !held {
		err = fmt.Errorf("%s is being removed from the cache: try again", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// kept is how many entries of one name stay.
const kept = 4

func (c Cache) prune(name string) error {
	paths, err := filepath.Glob(filepath.Join(c.dir, name+"-"+keyPattern))
	if err != nil || len(paths) <= kept {
		return err
	}
	used := map[string]int64{}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil {
			used[path] = info.ModTime().UnixNano()
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(used[b], used[a]) })
	for _, path := range paths[kept:] {
		err = errors.Join(err, removeUnheld(path))
	}
	return err
}

func removeUnheld(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if free, err := filelock.Try(file, unix.LOCK_EX); err != nil || !free {
		return err
	}
	return os.RemoveAll(path)
}

// keyPattern matches a Key, so that `kube` doesn't prune `kube-proxy`.
const keyPattern = "[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]"

// Hash collects what an entry is made from.
type Hash struct{ sum io.Writer }

// Key is a short hash, in hexadecimal, of all that add writes.
func Key(add func(h Hash) error) (string, error) {
	sum := sha256.New()
	if err := add(Hash{sum}); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// String adds strings.
func (h Hash) String(values ...string) {
	for _, value := range values {
		_, _ = fmt.Fprintf(h.sum, "%d:%s\n", len(value), value) // a hash never fails
	}
}

// Files adds the named files' contents, and for a folder those of the files below it that want accepts.
func (h Hash) Files(want func(path string) bool, paths ...string) error {
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || (path != root && !want(path)) {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(filepath.Dir(root), path)
			if err != nil {
				return err
			}
			h.String(relative, string(content))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
