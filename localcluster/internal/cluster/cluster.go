// SPDX-License-Identifier: Apache-2.0

// Package cluster starts, inspects and removes local clusters. All that a cluster has lies in its state folder and
// in namespaces that end with its processes; cgroups, which don't, carry its name. Loop devices end a little later.
package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/filelock"
	"coolops.cn/database-manager/localcluster/internal/process"
)

// Cluster is a named cluster, running or not.
type Cluster struct {
	Name string
	// Dir is the state folder.
	Dir string
}

// Config is what a cluster was started with; it lies in the state folder.
type Config struct {
	// Nodes are the nodes' names; none means a control plane only.
	Nodes []string `json:"nodes,omitempty"`
	// Stopped are the names of those that were stopped and not started since.
	Stopped []string `json:"stopped,omitempty"`
	// NodeLostAfter and EvictAfter are as in Options.
	NodeLostAfter time.Duration `json:"nodeLostAfter,omitempty"`
	EvictAfter    time.Duration `json:"evictAfter,omitempty"`
	// Fake is the number of fake nodes.
	Fake int `json:"fake,omitempty"`
	// Port is the API server's port on 127.0.0.1.
	Port int `json:"port"`
	// AuditLog tells whether every request is noted, in LogDir/audit.log.
	AuditLog bool `json:"auditLog,omitempty"`
	// Binaries are the paths of the components in the cache, by name.
	Binaries map[string]string `json:"binaries"`
	// NodeRoot is the folder of the nodes' root file system in the cache.
	NodeRoot string `json:"nodeRoot,omitempty"`
	// Images are the paths of the archives in the cache that nodes pull from, by reference.
	Images map[string]string `json:"images,omitempty"`
}

// cached are the paths in the cache that a running cluster needs.
func (c Config) cached() []string {
	paths := slices.Sorted(maps.Values(c.Binaries))
	if c.NodeRoot != "" {
		paths = append(paths, filepath.Dir(c.NodeRoot))
	}
	for _, archive := range c.Images {
		paths = append(paths, filepath.Dir(archive))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$`)

// Open returns the cluster of that name. States are kept below base; an empty base means localcluster's folder in
// XDG_STATE_HOME or ~/.local/state.
func Open(name, base string) (*Cluster, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("cluster name %q: it must be 1 to 30 lower-case letters, digits and dashes, and begin and end with a letter or digit", name)
	}
	if base == "" {
		base = os.Getenv("XDG_STATE_HOME")
		if base == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, fmt.Errorf("no place for the cluster's state: %w; set HOME or name a folder with --state-dir", err)
			}
			base = filepath.Join(home, ".local", "state")
		}
		base = filepath.Join(base, "localcluster")
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, err
	}
	return &Cluster{Name: name, Dir: filepath.Join(base, name)}, nil
}

func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.Dir}, elements...)...)
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.path("pki", adminIdentity+".kubeconfig") }

// LogDir is the folder of the components' logs.
func (c *Cluster) LogDir() string { return c.path("logs") }

// Cgroup is the name of the cluster's group below each cgroup mount. Clusters of one name in different state folders
// are different clusters.
func (c *Cluster) Cgroup() string {
	sum := sha256.Sum256([]byte(c.Dir))
	return fmt.Sprintf("localcluster-%s-%x", c.Name, sum[:4])
}

// Config reads what the cluster was started with.
func (c *Cluster) Config() (Config, error) {
	var config Config
	content, err := os.ReadFile(c.path("cluster.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return config, fmt.Errorf("there is no cluster %q: make one with `localcluster up --name %s`", c.Name, c.Name)
	}
	if err != nil {
		return config, err
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return config, fmt.Errorf("%s: %w; remove the cluster with `localcluster down --name %s`", c.path("cluster.json"), err, c.Name)
	}
	return config, nil
}

// writeConfig leaves a whole file whenever it is killed: that of a cluster that runs is written anew.
func (c *Cluster) writeConfig(config Config) error {
	content, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	unfinished := c.path("cluster.json.new")
	if err := os.WriteFile(unfinished, append(content, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, c.path("cluster.json"))
}

// Running tells whether the cluster's process lives: it holds a lock on a file from before it starts to its end.
func (c *Cluster) Running() (bool, error) { return isHeld(c.path(aliveFile)) }

// isHeld tells whether a process has the lock on the file.
func isHeld(path string) (bool, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	free, err := filelock.Try(file, unix.LOCK_SH)
	return err == nil && !free, err
}

// disksFolder has the volumes with a size, in one folder a node.
const disksFolder = "disks"

const (
	// aliveFile is locked by the cluster's process for as long as it lives, whatever ends it.
	aliveFile = "alive"
	// completeFile tells that the start of the running process went through to its end.
	completeFile = "complete"
)

// takeAlive locks the file for the process that is about to be started. Others may look at the lock meanwhile,
// which takes it for a moment.
func (c *Cluster) takeAlive(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	file, err := filelock.Lock(ctx, c.path(aliveFile), nil)
	if err != nil {
		return nil, fmt.Errorf("cluster %q is already running: %w", c.Name, err)
	}
	return file, nil
}

// holders are the processes that hold the alive file's lock: the cluster's own, found without trusting a recorded id,
// also when somebody removed the state folder.
func (c *Cluster) holders() ([]process.Handle, error) { return process.HoldingLock(c.path(aliveFile)) }

// lock keeps other commands from starting or removing this cluster meanwhile. tell is called when it has to wait.
func (c *Cluster) lock(ctx context.Context, tell func(format string, args ...any)) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return nil, err
		}
		file, err := filelock.Lock(ctx, c.path("lock"), func() {
			tell("another command is starting, restarting or removing cluster %s: waiting for it", c.Name)
		})
		if err != nil {
			return nil, err
		}
		// A `down` that held the lock has removed the file with its folder: take the new one.
		if sameFile(file, c.path("lock")) {
			return func() { _ = file.Close() }, nil
		}
		_ = file.Close() // nothing was written
	}
}

func sameFile(open *os.File, path string) bool {
	a, errA := open.Stat()
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}
