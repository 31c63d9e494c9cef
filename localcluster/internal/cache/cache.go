// Package cache keeps what is expensive to make in the user's cache folder, under a key that is a hash of all
// that it was made from. A fresh checkout finds it again.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Cache is a folder of entries; each is a file or a folder.
type Cache struct{ dir string }

// Open returns the cache in dir; an empty dir means localcluster's folder in the user's cache folder.
func Open(dir string) (Cache, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return Cache{}, fmt.Errorf("no cache folder: %w; set HOME or XDG_CACHE_HOME", err)
		}
		dir = filepath.Join(user, "localcluster")
	}
	return Cache{dir}, os.MkdirAll(dir, 0o755)
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
// same name are removed, but for the newest few: another checkout may use them.
func (c Cache) Ensure(name, key string, create func(path string) error) (string, error) {
	target := c.Path(name, key)
	if c.Has(name, key) {
		now := unix.NsecToTimespec(0)
		now.Nsec = unix.UTIME_NOW
		return target, unix.UtimesNanoAt(unix.AT_FDCWD, target, []unix.Timespec{now, now}, 0)
	}
	unlock, err := lock(filepath.Join(c.dir, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if c.Has(name, key) {
		return target, nil
	}
	scratch, err := os.MkdirTemp(c.dir, ".making-"+name+"-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	made := filepath.Join(scratch, "entry")
	if err := create(made); err != nil {
		return "", err
	}
	if err := os.Rename(made, target); err != nil {
		return "", err
	}
	return target, c.prune(name)
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
	slices.SortFunc(paths, func(a, b string) int { return int(min(max(used[b]-used[a], -1), 1)) })
	for _, path := range paths[kept:] {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
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
