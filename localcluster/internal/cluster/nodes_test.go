// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/localcluster/internal/filelock"
	"coolops.cn/database-manager/localcluster/internal/network"
	"coolops.cn/database-manager/localcluster/internal/progress"
)

func TestWhatNoClusterCanBeIsRefused(t *testing.T) {
	for sentence, row := range map[string]struct {
		options Options
		says    string
	}{
		"nothing said is fine":                     {Options{}, ""},
		"one node is":                              {Options{Nodes: 1}, ""},
		"as many as there are addresses for are":   {Options{Nodes: network.MaxNodes}, ""},
		"more are too many":                        {Options{Nodes: network.MaxNodes + 1}, "1 to 3 nodes"},
		"fewer than none are too few":              {Options{Nodes: -1}, "1 to 3 nodes"},
		"no nodes are no number of them":           {Options{ControlPlaneOnly: true, Nodes: 1}, "--control-plane-only means no nodes"},
		"nor are they lost":                        {Options{ControlPlaneOnly: true, NodeLostAfter: time.Minute}, "--control-plane-only means no nodes"},
		"nor have they pods":                       {Options{ControlPlaneOnly: true, EvictAfter: time.Minute}, "--control-plane-only means no nodes"},
		"no nodes alone are fine":                  {Options{ControlPlaneOnly: true}, ""},
		"a lease of a second leaves no second try": {Options{NodeLostAfter: 3 * time.Second}, "--node-lost-after is 3s: give 4s or more"},
		"fake nodes may be alone":                  {Options{ControlPlaneOnly: true, Fake: 1}, ""},
		"or beside real ones":                      {Options{Nodes: 3, Fake: maxFake}, ""},
		"so many that lists of them are slow":      {Options{Fake: maxFake + 1}, "--fake is 1001: a cluster has 1000 fake nodes at most"},
		"fewer fake ones than none are too few":    {Options{Fake: -1}, "--fake is -1"},
		"pods are kept for whole seconds":          {Options{EvictAfter: 1500 * time.Millisecond}, "--evict-after is 1.5s: give whole seconds"},
		"and not for a negative number of them":    {Options{EvictAfter: -time.Second}, "--evict-after is -1s"},
	} {
		t.Run(sentence, func(t *testing.T) {
			mustSay(t, row.options.validate(), row.says)
		})
	}
}

// mustSay expects no error where text is empty.
func mustSay(t *testing.T, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("it says %v, want %q", err, text)
	}
}

func TestARunningClusterIsWhatWasAskedFor(t *testing.T) {
	two := Config{Nodes: nodeNames(2), Port: 1, NodeLostAfter: DefaultNodeLostAfter, EvictAfter: DefaultEvictAfter}
	stopped := two
	stopped.Stopped = []string{"node-2"}
	for sentence, row := range map[string]struct {
		config  Config
		options Options
		says    string
	}{
		"nothing said is what there is":            {two, Options{}, ""},
		"as is the same number":                    {two, Options{Nodes: 2}, ""},
		"more are added":                           {two, Options{Nodes: 3}, ""},
		"fewer would have to be removed":           {two, Options{Nodes: 1}, "localcluster node stop --name unit node-2"},
		"none would, too":                          {two, Options{ControlPlaneOnly: true}, "localcluster down --name unit"},
		"a control plane alone gets no nodes":      {Config{Port: 1}, Options{Nodes: 1}, "localcluster down --name unit"},
		"a control plane alone stays so":           {Config{Port: 1}, Options{ControlPlaneOnly: true}, ""},
		"a node that is stopped isn't added to":    {stopped, Options{Nodes: 3}, "localcluster node start --name unit node-2"},
		"a node that is stopped is one of two":     {stopped, Options{Nodes: 2}, ""},
		"the port is another":                      {two, Options{Port: 2}, "port 1"},
		"there is no log of requests":              {two, Options{AuditLog: true}, "audit log false"},
		"nodes are lost at another time":           {two, Options{NodeLostAfter: time.Minute}, "lost after 20s"},
		"pods are evicted at another time":         {two, Options{EvictAfter: time.Minute}, "evicted after 30s"},
		"nodes are lost, and pods evicted as said": {two, Options{NodeLostAfter: DefaultNodeLostAfter, EvictAfter: DefaultEvictAfter}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			mustSay(t, open(t).checkSame(row.config, row.options), row.says)
		})
	}
}

func TestAClusterStartsAsItWasAskedForOrAsItWas(t *testing.T) {
	before := Config{Nodes: nodeNames(2), Stopped: []string{"node-2"}, NodeLostAfter: time.Minute, EvictAfter: time.Hour}
	for sentence, row := range map[string]struct {
		before  Config
		options Options
		want    Config
	}{
		"the first start has one node": {
			Config{}, Options{}, Config{Nodes: []string{"node-1"}, NodeLostAfter: DefaultNodeLostAfter, EvictAfter: DefaultEvictAfter},
		},
		"after a crash all nodes start": {
			before, Options{}, Config{Nodes: nodeNames(2), NodeLostAfter: time.Minute, EvictAfter: time.Hour},
		},
		"and more, if asked for": {
			before, Options{Nodes: 3, NodeLostAfter: time.Second}, Config{Nodes: nodeNames(3), NodeLostAfter: time.Second, EvictAfter: time.Hour},
		},
		"fake nodes alone are no others": {
			Config{}, Options{ControlPlaneOnly: true, Fake: 2}, Config{Fake: 2},
		},
		"a control plane alone has nothing about nodes": {
			Config{}, Options{ControlPlaneOnly: true, AuditLog: true}, Config{AuditLog: true},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := row.options.config(row.before); !reflect.DeepEqual(got, row.want) {
				t.Errorf("it is %+v", got)
			}
		})
	}
}

func TestLeasesAreRenewedSeveralTimesBeforeANodeIsLost(t *testing.T) {
	for _, after := range []time.Duration{minNodeLostAfter, DefaultNodeLostAfter, 50 * time.Second} {
		// The kubelet renews its lease in a quarter of its time, and a lease has whole seconds.
		if lease := leaseSeconds(after); lease < 1 || time.Duration(lease)*time.Second/4*8 > after {
			t.Errorf("lost after %s, a lease of %d s", after, lease)
		}
	}
}

func TestANodeIsStoppedOnlyInAClusterThatHasIt(t *testing.T) {
	printer := progress.NewPrinter(os.Stderr)
	mustSay(t, open(t).StopNode(t.Context(), "node-1", printer), "localcluster up --name unit")
	c := openRunning(t, t.TempDir())
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.Nodes = nil
	if err := c.writeConfig(config); err != nil {
		t.Fatal(err)
	}
	mustSay(t, c.StopNode(t.Context(), "node-1", printer), "has no nodes")
	config.Nodes = nodeNames(2)
	if err := c.writeConfig(config); err != nil {
		t.Fatal(err)
	}
	mustSay(t, c.StopNode(t.Context(), "node-3", printer), "its nodes are node-1, node-2")
	mustSay(t, c.StartNode(t.Context(), "node-2", printer), "isn't complete")
}

func TestAFleetIgnoresTheEndOfANodeThatWasStopped(t *testing.T) {
	f := newFleet(open(t))
	crash := errors.New("it ended")
	node := &started{name: "node-1", err: crash}
	f.running["node-1"] = node
	if err := f.lost(node); !errors.Is(err, crash) {
		t.Errorf("of a crash it says %v", err)
	}
	f.running["node-1"] = &started{name: "node-1"} // it was stopped, and started again
	if err := f.lost(node); err != nil {
		t.Errorf("of the one before it says %v", err)
	}
	delete(f.running, "node-1")
	if err := f.lost(node); err != nil {
		t.Errorf("of a stopped one it says %v", err)
	}
}

func TestStoppedNodesAreAmongTheNodes(t *testing.T) {
	config := Config{Nodes: nodeNames(3), Stopped: []string{"node-2"}}
	if names := config.names(config.runningNodes()); !slices.Equal(names, []string{"node-1", "node-3"}) {
		t.Errorf("there run %v", names)
	}
}

func TestANodeIsGoneWhenItsLockIsFree(t *testing.T) {
	c := openRunning(t, t.TempDir())
	config := Config{Nodes: nodeNames(1)}
	spec := c.nodeSpec(config, 0)
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	alive, err := filelock.Lock(t.Context(), spec.AliveFile(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.awaitGone(t.Context(), config, 0) }()
	select {
	case err := <-ended:
		t.Errorf("it was gone while it lived (%v)", err)
	case <-time.After(3 * pollInterval):
	}
	if err := alive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAddressesToIsolateFrom(t *testing.T) {
	got, err := parseAddresses([]string{"10.244.1.7", "10.244.0.3", "10.244.1.7"})
	if err != nil || len(got) != 2 || got[0].String() != "10.244.0.3" || got[1].String() != "10.244.1.7" {
		t.Errorf("they are %v (%v)", got, err)
	}
	for _, text := range []string{"", "orders-db-0", "10.244.0.0/24", "fd00::1", "10.244.0.3; flush ruleset"} {
		if _, err := parseAddresses([]string{text}); err == nil {
			t.Errorf("%q is taken for an address", text)
		}
	}
}

func TestAPodIsNamedWithItsNamespace(t *testing.T) {
	for _, pod := range []string{"orders-db-0", "/orders-db-0", "default/"} {
		mustSay(t, open(t).Isolate(t.Context(), pod, nil), "NAMESPACE/POD")
	}
}
