// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"coolops.cn/database-manager/localcluster/internal/build"
)

// Env are the lines that make the cluster that of a shell which evaluates them: its kubectl, and every other client.
func (c *Cluster) Env() (string, error) {
	config, err := c.runningConfig()
	if err != nil {
		return "", err
	}
	bin := c.path("bin")
	if strings.ContainsRune(bin, filepath.ListSeparator) {
		return "", fmt.Errorf("the path of the state folder, %s, has a %q in it, which PATH can't hold: choose another --state-dir", c.Dir, filepath.ListSeparator)
	}
	if err := linkTo(config.Binaries[build.Kubectl.Name], filepath.Join(bin, build.Kubectl.Name)); err != nil {
		return "", fmt.Errorf("put kubectl where PATH can point to: %w", err)
	}
	var lines strings.Builder
	for _, variable := range c.kubectlEnv() {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&lines, "export %s=%s\n", name, quote(value))
	}
	fmt.Fprintf(&lines, "export PATH=%s%c\"$PATH\"\n", quote(bin), filepath.ListSeparator)
	return lines.String(), nil
}

// linkTo makes a symbolic link, in place of one that points elsewhere.
func linkTo(target, link string) error {
	if current, err := os.Readlink(link); err == nil && current == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return err
	}
	// Made beside it and renamed: whoever runs it meanwhile finds the one or the other.
	next := fmt.Sprintf("%s.%d", link, os.Getpid())
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	if err := os.Rename(next, link); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return nil
}

// quote makes one word of a shell of any text.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
