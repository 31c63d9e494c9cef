// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"coolops.cn/database-manager/localcluster/internal/cgroup"
	"coolops.cn/database-manager/localcluster/internal/disk"
	"coolops.cn/database-manager/localcluster/internal/network"
	"coolops.cn/database-manager/localcluster/internal/progress"
)

const (
	// DefaultNodeLostAfter is shorter than Kubernetes' own 50 s: a test waits for it.
	DefaultNodeLostAfter = 20 * time.Second
	// DefaultEvictAfter is shorter than Kubernetes' own 300 s, too.
	DefaultEvictAfter = 30 * time.Second
	// minNodeLostAfter leaves a kubelet, whose lease counts whole seconds, several tries.
	minNodeLostAfter = 4 * time.Second
	minEvictAfter    = time.Second
	// appearTimeout is for a node's first process to come or to go.
	appearTimeout = 30 * time.Second
)

// validate refuses what no cluster can be.
func (o Options) validate() error {
	switch {
	case o.Nodes < 0 || o.Nodes > network.MaxNodes:
		return fmt.Errorf("--nodes is %d: a cluster has 1 to %d nodes, or none with --control-plane-only", o.Nodes, network.MaxNodes)
	case o.ControlPlaneOnly && (o.Nodes != 0 || o.NodeLostAfter != 0 || o.EvictAfter != 0):
		return errors.New("--control-plane-only means no nodes: leave out what is about nodes, or it")
	case o.Fake < 0 || o.Fake > maxFake:
		return fmt.Errorf("--fake is %d: a cluster has %d fake nodes at most, and one has room for all pods", o.Fake, maxFake)
	case o.NodeLostAfter != 0 && o.NodeLostAfter < minNodeLostAfter:
		return fmt.Errorf("--node-lost-after is %s: give %s or more", o.NodeLostAfter, minNodeLostAfter)
	case o.EvictAfter != 0 && (o.EvictAfter < minEvictAfter || o.EvictAfter%time.Second != 0):
		return fmt.Errorf("--evict-after is %s: give whole seconds, %s or more", o.EvictAfter, minEvictAfter)
	default:
		return nil
	}
}

// leaseSeconds has the kubelet tell eight times, in the time after which its node is taken to be lost, that it lives.
func leaseSeconds(lostAfter time.Duration) int { return int(lostAfter / 2 / time.Second) }

// nodeNames are node-1, node-2 and so on.
func nodeNames(count int) []string {
	names := make([]string, count)
	for index := range names {
		names[index] = fmt.Sprintf("node-%d", index+1)
	}
	return names
}

// runningNodes are the indices of those that are not stopped.
func (c Config) runningNodes() []int {
	var running []int
	for index, name := range c.Nodes {
		if !slices.Contains(c.Stopped, name) {
			running = append(running, index)
		}
	}
	return running
}

func (c Config) names(indices []int) []string {
	var names []string
	for _, index := range indices {
		names = append(names, c.Nodes[index])
	}
	return names
}

// configBefore is that of an earlier run, and empty if there was none.
func (c *Cluster) configBefore() (Config, error) {
	if _, err := os.Stat(c.path("cluster.json")); errors.Is(err, fs.ErrNotExist) {
		return Config{}, nil
	}
	return c.Config()
}

// checkNumber refuses a number of nodes that can't be had of the cluster.
func (c *Cluster) checkNumber(config Config, options Options) error {
	if options.Nodes > len(config.Nodes) && len(config.Stopped) > 0 {
		return fmt.Errorf("node %[1]s is stopped: start it with `localcluster node start --name %[2]s %[1]s` before nodes are added", config.Stopped[0], c.Name)
	}
	return c.checkNotSmaller(config, options)
}

func (c *Cluster) checkNotSmaller(config Config, options Options) error {
	if options.Nodes == 0 || options.Nodes >= len(config.Nodes) {
		return nil
	}
	return fmt.Errorf("cluster %q has %d nodes, and nodes aren't removed: stop one with `localcluster node stop --name %s %s`, or make a smaller cluster after `localcluster down --name %s`",
		c.Name, len(config.Nodes), c.Name, config.Nodes[len(config.Nodes)-1], c.Name)
}

// grow adds the nodes, real and fake, that a running cluster lacks.
func (c *Cluster) grow(options Options) error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	if options.Nodes > len(config.Nodes) || options.Fake > config.Fake {
		if err := os.Remove(c.path(completeFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if options.Nodes > len(config.Nodes) {
			config.Nodes = nodeNames(options.Nodes)
		}
		config.Fake = max(config.Fake, options.Fake)
		if err := errors.Join(c.writePKI(config), c.writeConfig(config)); err != nil {
			return err
		}
	}
	if len(config.Nodes) == 0 {
		return nil
	}
	return c.tellChanged() // also if an earlier command wrote the change and was killed
}

// tellChanged has the cluster's first process read the configuration.
func (c *Cluster) tellChanged() error {
	holders, err := c.holders()
	if err != nil {
		return err
	}
	for _, holder := range holders {
		defer holder.Close()
		if err := holder.Signal(changedSignal); err != nil {
			return fmt.Errorf("tell process %d of a change: %w", holder.PID, err)
		}
	}
	return nil
}

// StopNode takes a node away at once, as the loss of its power would. Nothing in Kubernetes is told of it. A node that is
// stopped stays so.
func (c *Cluster) StopNode(ctx context.Context, name string, printer *progress.Printer) error {
	return c.changeNode(ctx, name, "stopping", "stopped", printer, func(config Config, index int) error {
		if !slices.Contains(config.Stopped, name) {
			config.Stopped = append(config.Stopped, name)
		}
		if err := errors.Join(c.writeConfig(config), c.tellChanged()); err != nil {
			return err
		}
		return c.awaitGone(ctx, config, index)
	})
}

// StartNode brings a node that was stopped back, with its volumes, and waits until it can be used. On one that runs it
// changes nothing.
func (c *Cluster) StartNode(ctx context.Context, name string, printer *progress.Printer) error {
	return c.changeNode(ctx, name, "starting", "ready", printer, func(config Config, index int) error {
		now, since := time.Now(), time.Time{}
		if stopped := slices.Index(config.Stopped, name); stopped >= 0 {
			// A stop that was killed has to be brought to its end.
			if err := errors.Join(c.tellChanged(), c.awaitGone(ctx, config, index)); err != nil {
				return err
			}
			config.Stopped = slices.Delete(config.Stopped, stopped, stopped+1)
			since = now
		}
		if err := errors.Join(c.writeConfig(config), c.tellChanged()); err != nil {
			return err
		}
		if err := c.waitForNodes(ctx, []string{name}, now); err != nil {
			return err
		}
		return c.waitForDNS(ctx, []string{name}, since)
	})
}

// changeNode finds the node and does something to it, while no other command changes the cluster.
func (c *Cluster) changeNode(ctx context.Context, name, doing, done string, printer *progress.Printer, do func(config Config, index int) error) error {
	unlock, err := c.lock(ctx, printer.Printf)
	if err != nil {
		return err
	}
	defer unlock()
	config, err := c.runningConfig()
	if err != nil {
		return err
	}
	if len(config.Nodes) == 0 {
		return fmt.Errorf("cluster %q has no nodes", c.Name)
	}
	index := slices.Index(config.Nodes, name)
	if index < 0 {
		return fmt.Errorf("cluster %q has no node %q: its nodes are %s", c.Name, name, strings.Join(config.Nodes, ", "))
	}
	if _, err := os.Stat(c.path(completeFile)); err != nil {
		return fmt.Errorf("the start of cluster %q isn't complete: `localcluster up --name %s` goes on with it", c.Name, c.Name)
	}
	step := printer.Start(doing + " " + name + " of cluster " + c.Name)
	err = do(config, index)
	step.End(err, "%s", done)
	if err != nil {
		return fmt.Errorf("%s %s: %w; the command may be repeated, and the logs are in %s", doing, name, err, c.LogDir())
	}
	return nil
}

// awaitGone waits until nothing of a node that is to be stopped is left but its files.
func (c *Cluster) awaitGone(ctx context.Context, config Config, index int) error {
	spec := c.nodeSpec(config, index)
	err := wait.PollUntilContextTimeout(ctx, pollInterval, appearTimeout, true, func(context.Context) (bool, error) {
		if running, err := c.Running(); err != nil || !running {
			return false, errors.Join(err, errors.New("the cluster's process ended"))
		}
		held, err := isHeld(spec.AliveFile())
		return !held, err
	})
	if err != nil {
		return fmt.Errorf("its first process hasn't ended: %w", err)
	}
	files, err := disk.Files(filepath.Clean(spec.Disks))
	if err != nil {
		return err
	}
	return errors.Join(disk.Detach(files, loopTimeout), cgroup.Remove(spec.Cgroup, cgroupTimeout))
}
