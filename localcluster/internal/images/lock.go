// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// Lock records, for each thing made from packages, the versions that it was last made and tested with.
type Lock map[string][]Package

const lockHeader = `# Versions of the Debian packages in each image. Written by: localcluster images --update-lock
# A change here makes the image anew. When the mirror has other versions, those are taken, and it is said.
`

// ReadLock reads a lock file; a missing file is an empty lock.
func ReadLock(path string) (Lock, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Lock{}, nil
	}
	if err != nil {
		return nil, err
	}
	lock := Lock{}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: line %q isn't `image package version`", path, line)
		}
		lock[fields[0]] = append(lock[fields[0]], Package{fields[1], fields[2]})
	}
	return lock, nil
}

// Write writes the lock file.
func (l Lock) Write(path string) error {
	return os.WriteFile(path, []byte(l.String()), 0o644)
}

// String is the lock file's content.
func (l Lock) String() string {
	text := strings.Builder{}
	text.WriteString(lockHeader)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		text.WriteString("\n" + formatPackages(name, l[name]))
	}
	return text.String()
}

func formatPackages(name string, packages []Package) string {
	var text strings.Builder
	for _, p := range packages {
		fmt.Fprintf(&text, "%s %s %s\n", name, p.Name, p.Version)
	}
	return text.String()
}

// Differences lists, in words, where what was unpacked differs from what the lock says.
func (l Lock) Differences(name string, unpacked []Package) []string {
	locked := map[string]string{}
	for _, p := range l[name] {
		locked[p.Name] = p.Version
	}
	var differences []string
	for _, p := range unpacked {
		switch version, ok := locked[p.Name]; {
		case !ok:
			differences = append(differences, fmt.Sprintf("%s %s (not locked)", p.Name, p.Version))
		case version != p.Version:
			differences = append(differences, fmt.Sprintf("%s %s (locked: %s)", p.Name, p.Version, version))
		}
		delete(locked, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(locked)) {
		differences = append(differences, fmt.Sprintf("%s is absent (locked: %s)", name, locked[name]))
	}
	return differences
}
