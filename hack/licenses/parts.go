// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// part is one module that a program is made of, or Go's own library.
type part struct {
	name, version string
	// licenses are the SPDX identifiers of its licences, sorted.
	licenses []string
	// files are the texts that go with it, by their names within the module.
	files map[string]string
}

// goPackage is the part of what go list prints that is needed here.
type goPackage struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// partsOf lists what a package is linked with: other modules, by name, and
// Go's own library first.
func partsOf(program string) ([]part, error) {
	goRoot, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	library := part{name: "Go's standard library and runtime", files: map[string]string{}}
	if err := library.addFiles(strings.TrimSpace(goRoot), "."); err != nil {
		return nil, err
	}
	listed, err := output("go", "list", "-deps", "-json=Dir,Standard,Module", program)
	if err != nil {
		return nil, err
	}
	modules := map[string]*part{}
	for decoder := json.NewDecoder(strings.NewReader(listed)); ; {
		var pkg goPackage
		switch err := decoder.Decode(&pkg); {
		case errors.Is(err, io.EOF):
			parts := []part{library}
			for _, name := range slices.Sorted(maps.Keys(modules)) {
				parts = append(parts, *modules[name])
			}
			return parts, nil
		case err != nil:
			return nil, fmt.Errorf("read what go list prints: %w", err)
		case pkg.Standard || pkg.Module == nil || pkg.Module.Main:
			continue
		}
		name := pkg.Module.Path
		if modules[name] == nil {
			modules[name] = &part{name: name, version: pkg.Module.Version, files: map[string]string{}}
		}
		if err := modules[name].addFilesAbove(pkg.Module.Dir, pkg.Dir); err != nil {
			return nil, err
		}
	}
}

func output(name string, arguments ...string) (string, error) {
	command := exec.Command(name, arguments...)
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(arguments, " "), err)
	}
	return string(printed), nil
}

// addFilesAbove adds the texts of a package's folder and of all folders above
// it: what was taken from elsewhere lies in a folder of its own, with its licence.
func (p *part) addFilesAbove(module, dir string) error {
	folder, err := filepath.Rel(module, dir)
	if err != nil {
		return fmt.Errorf("find the package %s in its module: %w", dir, err)
	}
	for folder = filepath.ToSlash(folder); ; folder = path.Dir(folder) {
		if err := p.addFiles(module, folder); err != nil || folder == "." {
			return err
		}
	}
}

// textFile is how files are called that a licence, or what it asks to be passed
// on, is in.
var textFile = regexp.MustCompile(`^(?i:LICEN[CS]E|COPYING|NOTICE|PATENTS|COPYRIGHT)([-.].*)?$`)

func (p *part) addFiles(module, folder string) error {
	entries, err := fs.ReadDir(os.DirFS(module), folder)
	if err != nil {
		return fmt.Errorf("read the folder %s of %s: %w", folder, p.name, err)
	}
	for _, entry := range entries {
		if entry.IsDir() || !textFile.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		name := path.Join(folder, entry.Name())
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return fmt.Errorf("read a licence of %s: %w", p.name, err)
		}
		p.files[name] = string(content)
	}
	return nil
}

// isAddition tells whether a file is no licence, but comes beside one: what an
// Apache licence asks to be passed on, or a grant of patents.
func isAddition(name string) bool {
	base := strings.ToUpper(path.Base(name))
	return strings.HasPrefix(base, "NOTICE") || strings.HasPrefix(base, "PATENTS")
}

// classify recognises the licences of a part.
func (p *part) classify(known []template) error {
	found := map[string]bool{}
	var unknown error
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		if isAddition(name) {
			continue
		}
		licenses, err := recognise(p.files[name], known)
		if err != nil {
			unknown = errors.Join(unknown, fmt.Errorf("%s, file %s: %w", p, name, err))
		}
		for _, license := range licenses {
			found[license] = true
		}
	}
	p.licenses = slices.Sorted(maps.Keys(found))
	if len(p.licenses) == 0 && unknown == nil {
		unknown = fmt.Errorf("%s has no licence: look for it, and say here where it is, or do without the module", p)
	}
	return unknown
}

func (p part) String() string { return strings.TrimSpace(p.name + " " + cmp.Or(p.version, "")) }
