// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Package is a Debian package of some version.
type Package struct{ Name, Version string }

// ErrNoApt says that Debian packages can't be had on this machine.
var ErrNoApt = errors.New("apt-get isn't installed: container runtime and images come from Debian packages; run this on Debian, or on a machine with apt")

// ensureTools installs mmdebstrap, which unpacks packages, where it is missing.
func ensureTools(ctx context.Context) error {
	if _, err := exec.LookPath("mmdebstrap"); err == nil {
		return nil
	}
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return aptGet(ctx, "install", "--yes", "--no-install-recommends", "mmdebstrap")
}

func aptGet(ctx context.Context, args ...string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return ErrNoApt
	}
	command := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet=2", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w:\n%s", args[0], err, lastLines(output, 20))
	}
	return nil
}

// mirror returns the address of the Debian mirror that this machine's apt is configured with.
func mirror(ctx context.Context) (string, error) {
	address, err := knownMirror(ctx)
	if err != nil || address != "" {
		return address, err
	}
	// Before the first update, as in a fresh container, apt tells nothing of its sources.
	if err := aptGet(ctx, "update"); err != nil {
		return "", err
	}
	address, err = knownMirror(ctx)
	if err == nil && address == "" {
		err = errors.New("apt's sources name no Debian mirror, and the images are made from Debian packages: add one to /etc/apt/sources.list")
	}
	return address, err
}

func knownMirror(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("ask apt for its sources: %w", err)
	}
	return parseMirror(string(output)), nil
}

// parseMirror finds the address in lines of origin, label and address; security updates have another label.
func parseMirror(lines string) string {
	for line := range strings.Lines(lines) {
		if address, ok := strings.CutPrefix(strings.TrimSpace(line), "Debian Debian "); ok {
			return address
		}
	}
	return ""
}

// unpack unpacks packages. Only one process at a time asks apt, whose own locks make others fail.
func (m *Maker) unpack(ctx context.Context, suite string, packages []string, target string) ([]Package, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("unpacking Debian packages needs root, to give the files their owners: run it as root")
	}
	unlock, err := m.cache.Lock(ctx, "apt")
	if err != nil {
		return nil, err
	}
	err = ensureTools(ctx)
	var address string
	if err == nil {
		address, err = mirror(ctx)
	}
	unlock()
	if err != nil {
		return nil, err
	}
	return unpackFrom(ctx, address, suite, packages, target)
}

// unpackFrom makes target, a folder or, when its name ends in .tar, a tar archive, from packages of a suite and what
// they depend on. Nothing of the machine's own package state is read but the mirror's address.
func unpackFrom(ctx context.Context, address, suite string, packages []string, target string) ([]Package, error) {
	scratch, err := os.MkdirTemp(filepath.Dir(target), ".packages-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	list := filepath.Join(scratch, "list")
	command := exec.CommandContext(ctx, "mmdebstrap", "--mode=root", "--variant=extract",
		"--include="+strings.Join(packages, ","),
		"--dpkgopt=force-unsafe-io",
		"--aptopt=APT::Install-Recommends \"false\"",
		"--aptopt=Acquire::Languages \"none\"",
		"--aptopt=Acquire::Check-Valid-Until \"false\"",
		"--extract-hook=ls \"$1\"/var/cache/apt/archives >"+list,
		suite, target, fmt.Sprintf("deb %s %s main", address, suite))
	command.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=0", "TMPDIR="+scratch)
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("unpack %s from Debian %s: %w:\n%s", strings.Join(packages, ", "), suite, err, lastLines(output, 20))
	}
	content, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	return parsePackageFiles(string(content))
}

// parsePackageFiles reads names as apt stores packages: name_version_architecture.deb, with %3a for a colon.
func parsePackageFiles(listing string) ([]Package, error) {
	var packages []Package
	for line := range strings.Lines(listing) {
		name, ok := strings.CutSuffix(strings.TrimSpace(line), ".deb")
		if !ok {
			continue
		}
		parts := strings.Split(name, "_")
		if len(parts) != 3 {
			return nil, fmt.Errorf("unexpected package file %q", line)
		}
		version, err := url.PathUnescape(parts[1])
		if err != nil {
			return nil, fmt.Errorf("unexpected package file %q: %w", line, err)
		}
		packages = append(packages, Package{parts[0], version})
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return packages, nil
}

// upstreamVersion is a Debian version without epoch: 5:8.0.2-3 gives 8.0.2-3.
func upstreamVersion(version string) string {
	if _, rest, found := strings.Cut(version, ":"); found {
		return rest
	}
	return version
}

func lastLines(output []byte, n int) []byte {
	lines := bytes.SplitAfter(bytes.TrimSpace(output), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], nil)
}
