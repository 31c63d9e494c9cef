// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/network"
)

// changedSignal tells the cluster's first process that the configuration has changed: nodes were added, stopped or
// started. It reads all of it then, so that signals may come together, or in vain.
const changedSignal = unix.SIGHUP

// supervise goes on until ctx or a member ends, but for a control plane that `restart` ended, which is started again,
// and for nodes that are to be stopped.
func (c *Cluster) supervise(ctx context.Context, controlPlane *started, nodes *fleet, changed <-chan os.Signal) error {
	for {
		var ended bool
		var err error
		select {
		case <-ctx.Done():
			return controlPlane.terminate()
		case node := <-nodes.ended:
			err = nodes.lost(node)
		case <-changed:
			err = nodes.followNow()
		case <-controlPlane.ended:
			ended = true
		}
		if err != nil {
			return errors.Join(err, controlPlane.terminate())
		}
		if !ended {
			continue
		}
		if controlPlane, err = c.startAgain(ctx, controlPlane); err != nil {
			return err
		}
	}
}

// startAgain starts a control plane in the place of one that has ended, where that one is wanted back.
func (c *Cluster) startAgain(ctx context.Context, before *started) (*started, error) {
	again, err := c.awaitReturn(ctx)
	if !again || err != nil {
		return nil, errors.Join(before.err, err)
	}
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	return c.startControlPlaneMember(config)
}

// fleet are the nodes that run.
type fleet struct {
	cluster *Cluster
	running map[string]*started
	// ended has each node that ended, for whatever reason.
	ended chan *started
}

func newFleet(c *Cluster) *fleet {
	return &fleet{cluster: c, running: map[string]*started{}, ended: make(chan *started)}
}

// lost tells how a node ended, unless it was to.
func (f *fleet) lost(node *started) error {
	if f.running[node.name] != node {
		return nil // it was stopped
	}
	return node.err
}

func (f *fleet) followNow() error {
	config, err := f.cluster.Config()
	if err != nil {
		return err
	}
	return f.follow(config)
}

// follow stops and starts nodes, so that those run which are to.
func (f *fleet) follow(config Config) error {
	for _, name := range config.Stopped {
		if err := f.stop(name); err != nil {
			return err
		}
	}
	for index, name := range config.Nodes {
		if f.running[name] != nil || slices.Contains(config.Stopped, name) {
			continue
		}
		if err := f.start(config, index); err != nil {
			return err
		}
	}
	return nil
}

// stop ends a node as the loss of its power would: without its first process the kernel ends all the others at once.
func (f *fleet) stop(name string) error {
	node := f.running[name]
	if node == nil {
		return nil
	}
	delete(f.running, name)
	if err := node.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	select {
	case <-node.ended:
		return nil
	case <-time.After(killTimeout):
		return fmt.Errorf("stop %s: it still runs %s after SIGKILL", name, killTimeout)
	}
}

func (f *fleet) start(config Config, index int) error {
	spec := f.cluster.nodeSpec(config, index)
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return err
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	node, err := f.cluster.startMember(member{
		name: spec.Name, args: []string{NodeCommand, string(encoded)},
		flags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS,
		ip:    spec.IP, routes: network.PodRoutes(index),
	})
	if err != nil {
		return err
	}
	f.running[spec.Name] = node
	go func() {
		<-node.ended
		f.ended <- node
	}()
	return nil
}
