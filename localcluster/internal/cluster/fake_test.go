// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"coolops.cn/database-manager/localcluster/internal/addons"
	"coolops.cn/database-manager/localcluster/internal/build"
)

func TestFakeNodesTakeAllPodsOnlyWhereTheyAreAlone(t *testing.T) {
	if alone := fakeNode(0, true); len(alone.Spec.Taints) > 0 || !takesPods(*alone) {
		t.Errorf("alone it has the taints %v", alone.Spec.Taints)
	}
	beside := fakeNode(0, false)
	want := corev1.Taint{Key: "kwok.x-k8s.io/node", Value: "fake", Effect: corev1.TaintEffectNoSchedule}
	if len(beside.Spec.Taints) != 1 || beside.Spec.Taints[0] != want || !takesPods(*beside) {
		t.Errorf("beside real ones it has the taints %v", beside.Spec.Taints)
	}
	for _, node := range []*corev1.Node{fakeNode(0, true), beside} {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
		if takesPods(*node) {
			t.Errorf("with %v it takes pods", node.Spec.Taints)
		}
	}
}

func TestFakeNodesAreToldFromOthers(t *testing.T) {
	addresses := map[string]bool{}
	reserved := netip.MustParsePrefix("248.0.0.0/5") // the half of 240.0.0.0/4 that no pod is in
	for index := range maxFake {
		node := fakeNode(index, true)
		if !isFake(*node) || node.Annotations[addons.FakeNodeKey] != addons.FakeNodeValue {
			t.Fatalf("nobody plays %s: %v, %v", node.Name, node.Labels, node.Annotations)
		}
		if node.Labels[corev1.LabelHostname] != node.Name {
			t.Errorf("volumes of %s would be on %q", node.Name, node.Labels[corev1.LabelHostname])
		}
		address := node.Status.Addresses[0].Address
		if parsed, err := netip.ParseAddr(address); err != nil || addresses[address] || !reserved.Contains(parsed) {
			t.Fatalf("%s has %q (%v)", node.Name, address, err)
		}
		addresses[address] = true
	}
	if isFake(corev1.Node{}) {
		t.Error("a real node is taken for a fake one")
	}
	if names := fakeNodeNames(2); !slices.Equal(names, []string{"fake-1", "fake-2"}) {
		t.Errorf("they are called %q", names)
	}
}

func TestAFakeNodeHasRoomForAllPods(t *testing.T) {
	// Those of a large test, each with what a database asks for.
	const pods, cpuMillis, memory = 100_000, 500, 1 << 30
	room := fakeNode(0, true).Status.Allocatable
	if room.Pods().Value() < pods || room.Cpu().MilliValue() < pods*cpuMillis || room.Memory().Value() < pods*memory {
		t.Errorf("it has %v", room)
	}
}

func TestFakeNodesOfAClusterThatHasSome(t *testing.T) {
	alone, beside := Config{Fake: 3, Port: 1}, Config{Fake: 3, Port: 1, Nodes: nodeNames(1), NodeLostAfter: DefaultNodeLostAfter, EvictAfter: DefaultEvictAfter}
	for sentence, row := range map[string]struct {
		config  Config
		options Options
		says    string
	}{
		"nothing said is what there is":         {alone, Options{ControlPlaneOnly: true}, ""},
		"as is the same number":                 {beside, Options{Fake: 3}, ""},
		"more are added":                        {alone, Options{ControlPlaneOnly: true, Fake: 4}, ""},
		"also beside real ones":                 {beside, Options{Fake: 4}, ""},
		"fewer would have to be removed":        {alone, Options{ControlPlaneOnly: true, Fake: 2}, "has 3 fake nodes, and they aren't removed"},
		"the first come with the control plane": {Config{Port: 1}, Options{ControlPlaneOnly: true, Fake: 1}, "with nodes [] and 0 fake ones"},
		"without fake nodes there is no word":   {Config{Port: 1}, Options{ControlPlaneOnly: true}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			mustSay(t, open(t).checkSame(row.config, row.options), row.says)
		})
	}
	// After a crash, real nodes would have them take other pods than before.
	mustSay(t, open(t).checkFake(alone, Options{}), "localcluster down --name unit")
	mustSay(t, open(t).checkFake(beside, Options{ControlPlaneOnly: true}), "localcluster down --name unit")
	mustSay(t, open(t).checkFake(Config{}, Options{Fake: 5}), "")
}

func TestKwokIsBuiltAndStartedForFakeNodesOnly(t *testing.T) {
	isKwok := func(component build.Component) bool { return component.Name == build.Kwok.Name }
	for _, options := range []Options{{}, {ControlPlaneOnly: true}} {
		if slices.ContainsFunc(options.components(), isKwok) {
			t.Errorf("it is built for %+v", options)
		}
		options.Fake = 1
		if !slices.ContainsFunc(options.components(), isKwok) {
			t.Errorf("it isn't built for %+v", options)
		}
	}
	const program, volumes = "--kwok=/cache/kwok", "--volumes-dir="
	config := Config{Binaries: map[string]string{build.Kwok.Name: "/cache/kwok"}}
	c := open(t)
	if args := c.controlPlaneArgs(config, "127.0.0.1", 1); slices.Contains(args, program) || slices.Contains(args, volumes+c.path("volumes")) {
		t.Errorf("without fake nodes the control plane is started by %q", args)
	}
	config.Fake = 1
	if args := c.controlPlaneArgs(config, "127.0.0.1", 1); !slices.Contains(args, program) || !slices.Contains(args, volumes+c.path("volumes")) {
		t.Errorf("with fake nodes the control plane is started by %q", args)
	}
}
