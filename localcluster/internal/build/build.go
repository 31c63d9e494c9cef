// SPDX-License-Identifier: Apache-2.0

// Package build builds the programs of a cluster from Go modules into the cache.
package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"coolops.cn/database-manager/localcluster/internal/cache"
	"coolops.cn/database-manager/localcluster/internal/progress"
)

// Builder builds components from the source folder of this module.
type Builder struct {
	Source  string
	Cache   cache.Cache
	Printer *progress.Printer
}

// FindSource returns the folder of this module's go.mod: the one given, else ./localcluster, else the working folder.
func FindSource(given string) (string, error) {
	candidates := []string{"localcluster", "."}
	if given != "" {
		candidates = []string{given}
	}
	for _, dir := range candidates {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte("module coolops.cn/database-manager/localcluster\n")) {
			return filepath.Abs(dir)
		}
	}
	return "", fmt.Errorf("no source of localcluster in %s: run it in the repository, or name the folder with --source", strings.Join(candidates, " or "))
}

// Ensure returns the path of each component's binary, by name, building those that the cache lacks.
func (b Builder) Ensure(ctx context.Context, components []Component) (map[string]string, error) {
	paths := map[string]string{}
	for _, component := range components {
		key, err := b.key(component)
		if err != nil {
			return nil, err
		}
		paths[component.Name], err = b.Cache.Ensure(ctx, component.Name, key, func(path string) error {
			return b.build(ctx, component, path)
		})
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", component.Name, err)
		}
	}
	return paths, nil
}

func (b Builder) key(component Component) (string, error) {
	module := filepath.Join(b.Source, component.Module)
	return cache.Key(func(h cache.Hash) error {
		h.String(runtime.Version(), runtime.GOARCH, component.Package, ldflags())
		paths := []string{filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum")}
		for _, source := range component.Sources {
			paths = append(paths, filepath.Join(module, source))
		}
		return h.Files(isGoSource, paths...)
	})
}

func isGoSource(path string) bool {
	return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
}

// ldflags strips debug information and sets the version, which would read v0.0.0-master otherwise.
func ldflags() string {
	const version = "k8s.io/component-base/version."
	parts := strings.Split(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s",
		version, KubernetesVersion, version, parts[0], version, parts[1])
}

func (b Builder) build(ctx context.Context, component Component, path string) (err error) {
	step := b.Printer.Start("building " + component.Name)
	defer func() { step.End(err, "built") }()
	packages, err := b.countPackages(ctx, component)
	if err != nil {
		return err
	}
	command := b.goCommand(ctx, component, "build", "-v", "-trimpath", "-ldflags="+ldflags(), "-o", path, component.Package)
	output, err := command.StderrPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	messages := follow(output, step, packages)
	if err := command.Wait(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("%w:\n%s", err, messages))
	}
	return nil
}

// follow counts the packages that the go command names as it compiles them, and returns its other output.
func follow(output io.Reader, step *progress.Step, packages int) string {
	var messages strings.Builder
	compiled := 0
	for reader := bufio.NewReader(output); ; {
		line, err := reader.ReadString('\n')
		switch {
		case strings.ContainsAny(line, " :"):
			messages.WriteString(line)
		case line != "":
			compiled++
			step.Update("%d of at most %d packages compiled", compiled, packages)
		}
		if err != nil {
			return messages.String()
		}
	}
}

func (b Builder) countPackages(ctx context.Context, component Component) (int, error) {
	output, err := b.goCommand(ctx, component, "list", "-deps", component.Package).Output()
	if err != nil {
		return 0, fmt.Errorf("go list: %w", withStderr(err))
	}
	return bytes.Count(output, []byte("\n")), nil
}

func (b Builder) goCommand(ctx context.Context, component Component, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = filepath.Join(b.Source, component.Module)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	// Interrupted, not killed, it takes its compilers with it.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	return command
}

func withStderr(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}

// Has tells whether all components are in the cache.
func (b Builder) Has(components []Component) (bool, error) {
	for _, component := range components {
		key, err := b.key(component)
		if err != nil || !b.Cache.Has(component.Name, key) {
			return false, err
		}
	}
	return true, nil
}
