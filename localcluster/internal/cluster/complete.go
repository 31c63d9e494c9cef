// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"coolops.cn/database-manager/localcluster/internal/addons"
	"coolops.cn/database-manager/localcluster/internal/build"
	"coolops.cn/database-manager/localcluster/internal/images"
	"coolops.cn/database-manager/localcluster/internal/node"
	"coolops.cn/database-manager/localcluster/internal/process"
)

const (
	readyTimeout = 3 * time.Minute
	pollInterval = 100 * time.Millisecond
)

// systemImages are the images of the cluster's own programs.
func systemImages(binaries map[string]string) []images.BinaryImage {
	return []images.BinaryImage{
		{Reference: node.PauseImage, Binary: binaries[build.Pause.Name], Command: build.Pause.Name, User: "65535"},
		{Reference: addons.CoreDNSImage, Binary: binaries[build.CoreDNS.Name], Command: build.CoreDNS.Name, User: "65532"},
	}
}

// Client returns a client for the cluster's administrator.
func (c *Cluster) Client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the server has fairness
	return kubernetes.NewForConfig(config)
}

// waitForAPI waits until the API server is ready, or the cluster's process has ended.
func (c *Cluster) waitForAPI(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		running, err := c.Running()
		if err == nil && !running {
			err = errors.New("its process ended")
		}
		if err != nil {
			return false, err
		}
		_, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("the API server wasn't ready within %s", readyTimeout)
	}
	return err
}

// complete gives the cluster what its nodes need, real and fake, and waits until all of it is ready. Run again, it
// changes nothing.
func (c *Cluster) complete(ctx context.Context, prepared Prepared) error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	if len(config.Nodes) > 0 {
		if err := c.completeNodes(ctx, config, prepared); err != nil {
			return err
		}
	}
	return c.completeFake(ctx, config)
}

// completeNodes gives the nodes their images and the cluster its DNS and storage.
func (c *Cluster) completeNodes(ctx context.Context, config Config, prepared Prepared) error {
	nodes := config.runningNodes()
	if err := c.waitForNodes(ctx, config.names(nodes), time.Time{}); err != nil {
		return err
	}
	for _, index := range nodes {
		if err := c.importOnce(ctx, c.nodeSpec(config, index), prepared.Archives); err != nil {
			return err
		}
	}
	if err := c.kubectl(ctx, config, addons.ForNodes(), "apply", "--server-side", "--filename=-"); err != nil {
		return fmt.Errorf("apply DNS and storage: %w", err)
	}
	return c.waitForDNS(ctx, config.names(nodes), time.Time{})
}

// importOnce imports the archives that the node hasn't got yet. The cache's path of an archive names its content.
func (c *Cluster) importOnce(ctx context.Context, spec node.Spec, archives []string) error {
	imported := filepath.Join(spec.Dir, "imported")
	if err := os.MkdirAll(imported, 0o700); err != nil {
		return err
	}
	for _, archive := range archives {
		marker := filepath.Join(imported, filepath.Base(filepath.Dir(archive))+"-"+filepath.Base(archive))
		if _, err := os.Stat(marker); err == nil {
			continue
		}
		if err := importImage(ctx, spec, archive); err != nil {
			return err
		}
		if err := os.WriteFile(marker, nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// LoadImage imports an image archive into every node.
func (c *Cluster) LoadImage(ctx context.Context, archive string) error {
	config, err := c.runningConfig()
	if err != nil {
		return err
	}
	if len(config.Nodes) == 0 {
		return fmt.Errorf("cluster %q has no node to load an image into", c.Name)
	}
	if len(config.Stopped) > 0 {
		return fmt.Errorf("node %[1]s is stopped, and an image is for every node: start it with `localcluster node start --name %[2]s %[1]s` first", config.Stopped[0], c.Name)
	}
	for index := range config.Nodes {
		if err := importImage(ctx, c.nodeSpec(config, index), archive); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) runningConfig() (Config, error) {
	config, err := c.Config()
	if err != nil {
		return config, err
	}
	running, err := c.Running()
	if err == nil && !running {
		err = fmt.Errorf("cluster %q isn't running: start it with `localcluster up --name %s`", c.Name, c.Name)
	}
	return config, err
}

// importImage runs the node's own ctr, in the node's root.
func importImage(ctx context.Context, spec node.Spec, archive string) error {
	handles, err := process.HoldingLock(spec.AliveFile())
	if err != nil {
		return err
	}
	if len(handles) == 0 {
		return fmt.Errorf("node %s isn't running", spec.Name)
	}
	for _, handle := range handles {
		defer handle.Close()
	}
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	command := exec.CommandContext(ctx, "/usr/bin/ctr", "--namespace=k8s.io", "images", "import", "-")
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: fmt.Sprintf("/proc/%d/root", handles[0].PID)}
	command.Dir, command.Stdin = "/", file
	command.Env = []string{"CONTAINERD_SNAPSHOTTER=" + spec.Snapshotter}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("import %s into node %s: %w: %s", archive, spec.Name, err, bytes.TrimSpace(output))
	}
	return nil
}

func (c *Cluster) kubectl(ctx context.Context, config Config, input []byte, args ...string) error {
	command := exec.CommandContext(ctx, config.Binaries[build.Kubectl.Name], args...)
	command.Env = append(os.Environ(), c.kubectlEnv()...)
	command.Stdin = bytes.NewReader(input)
	if output, err := command.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(bytes.TrimSpace(output))))
	}
	return nil
}

// Kubectl replaces this process by kubectl for this cluster.
func (c *Cluster) Kubectl(args []string) error {
	config, err := c.runningConfig()
	if err != nil {
		return err
	}
	path := config.Binaries[build.Kubectl.Name]
	return syscall.Exec(path, append([]string{build.Kubectl.Name}, args...), append(os.Environ(), c.kubectlEnv()...))
}

// kubectlEnv also keeps what kubectl remembers of the API in the state folder: under the user's home it would stay,
// and mislead kubectl about a later cluster on the same port.
func (c *Cluster) kubectlEnv() []string {
	return []string{"KUBECONFIG=" + c.Kubeconfig(), "KUBECACHEDIR=" + c.path("kubectl")}
}
