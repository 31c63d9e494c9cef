// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status writes what the cluster is and whether it works. It returns an error when it doesn't.
func (c *Cluster) Status(ctx context.Context, out io.Writer) error {
	config, err := c.runningConfig()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(key, value string) { _, _ = fmt.Fprintf(table, "%s\t%s\n", key, value) } // Flush reports what fails
	row("cluster", c.Name)
	row("state", c.Dir)
	row("kubeconfig", c.Kubeconfig())
	row("API server", fmt.Sprintf("https://127.0.0.1:%d", config.Port))
	client, err := c.Client()
	if err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return errors.Join(table.Flush(), fmt.Errorf("cluster %q runs and its API server doesn't answer: %w; see %s", c.Name, err, c.LogDir()))
	}
	row("version", version.GitVersion)
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.path(completeFile)); err != nil {
		row("start", fmt.Sprintf("not complete: `localcluster up --name %s` goes on with it", c.Name))
	}
	fake, fakeReady := 0, 0
	for _, node := range nodes.Items {
		if isFake(node) {
			fake++
			if isReady(node) {
				fakeReady++
			}
			continue
		}
		state := "not ready"
		if isReady(node) {
			state = "ready"
		}
		if slices.Contains(config.Stopped, node.Name) {
			state = "stopped, for Kubernetes " + state
		}
		row("node "+node.Name, state)
	}
	if fake > 0 {
		row("fake nodes", fmt.Sprintf("%d of %d ready", fakeReady, fake))
	}
	return table.Flush()
}

// Logs are the components whose logs can be read, by name.
func (c *Cluster) Logs() ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(c.LogDir(), "*.log"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".log"))
	}
	return names, nil
}

// WriteLog copies a component's log. With follow it goes on with what is added, until ctx ends or the log is removed.
func (c *Cluster) WriteLog(ctx context.Context, component string, follow bool, out io.Writer) error {
	names, err := c.Logs()
	if err != nil {
		return err
	}
	if !slices.Contains(names, component) {
		return fmt.Errorf("no log of %q: there are %s", component, strings.Join(names, ", "))
	}
	path := filepath.Join(c.LogDir(), component+".log")
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for {
		if _, err := io.Copy(out, file); err != nil || !follow || !sameFile(file, path) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

const followInterval = 200 * time.Millisecond
