// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

// goodMachine can run anything.
func goodMachine() Machine {
	return Machine{
		OS: "linux", HasApt: true, HasGo: true, MayIsolate: true, HasCgroups: true, MemoryKiB: 16 << 20,
		FreeBytes: func(string) (uint64, error) { return 100 * gib, nil },
		PortFree:  func(int) error { return nil },
	}
}

// everything is a first start with a node.
func everything() Needs {
	return Needs{Nodes: true, CacheDir: "/cache", StateDir: "/state", Port: 6443}
}

func freeIn(free map[string]uint64) func(string) (uint64, error) {
	return func(dir string) (uint64, error) {
		bytes, ok := free[dir]
		if !ok {
			return 0, fmt.Errorf("no folder %s", dir)
		}
		return bytes, nil
	}
}

// refusals are what a machine and a start have to be like, by what is in the way.
func refusals() map[string]func(*Machine, *Needs) {
	return map[string]func(*Machine, *Needs){
		"not Linux":              func(m *Machine, _ *Needs) { m.OS = "darwin" },
		"not root":               func(m *Machine, _ *Needs) { m.UID = 1000 },
		"root without rights":    func(m *Machine, _ *Needs) { m.MayIsolate = false },
		"no cgroups":             func(m *Machine, _ *Needs) { m.HasCgroups = false },
		"no apt":                 func(m *Machine, _ *Needs) { m.HasApt = false },
		"no Go":                  func(m *Machine, _ *Needs) { m.HasGo = false },
		"little memory to build": func(m *Machine, _ *Needs) { m.MemoryKiB = 3 << 20 },
		"little memory to run":   func(m *Machine, n *Needs) { m.MemoryKiB, n.Built = 1<<19, true },
		"little disk to build": func(m *Machine, _ *Needs) {
			m.FreeBytes = freeIn(map[string]uint64{"/cache": 5 * gib, "/state": 5 * gib})
		},
		"little disk for a cache": func(m *Machine, n *Needs) {
			n.Built = true
			m.FreeBytes = freeIn(map[string]uint64{"/cache": gib / 2, "/state": 5 * gib})
		},
		"little disk for a state": func(m *Machine, n *Needs) {
			n.Built = true
			m.FreeBytes = freeIn(map[string]uint64{"/cache": 5 * gib, "/state": gib / 4})
		},
		"unknown disk": func(m *Machine, _ *Needs) { m.FreeBytes = freeIn(nil) },
		"a port taken": func(m *Machine, _ *Needs) { m.PortFree = func(int) error { return errors.New("in use") } },
	}
}

func TestRefusals(t *testing.T) {
	all := refusals()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		machine, needs := goodMachine(), everything()
		all[name](&machine, &needs)
		err := machine.Check(needs)
		if err == nil {
			t.Errorf("%s: it isn't refused", name)
			continue
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than a sentence: %v", name, err)
		}
		fmt.Fprintf(&text, "%s:\n  %v\n", name, err)
	}
	golden(t, "refusals.txt", text.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (write it anew with -update); got\n%s", path, got)
	}
}

func TestAccepted(t *testing.T) {
	for sentence, change := range map[string]func(*Machine, *Needs){
		"a good machine is": func(*Machine, *Needs) {},
		"a control plane needs neither root, apt, rights nor cgroups": func(m *Machine, n *Needs) {
			n.Nodes = false
			m.UID, m.HasApt, m.MayIsolate, m.HasCgroups = 1000, false, false, false
		},
		"what is in the cache needs neither apt nor Go": func(m *Machine, n *Needs) {
			n.Built, n.Unpacked = true, true
			m.HasApt, m.HasGo = false, false
			m.MemoryKiB = 2 << 20
			m.FreeBytes = freeIn(map[string]uint64{"/cache": 2 * gib, "/state": 2 * gib})
		},
		"where nothing is started, neither state nor port matter": func(m *Machine, n *Needs) {
			n.StateDir, n.Port = "", 0
			m.FreeBytes = freeIn(map[string]uint64{"/cache": 20 * gib})
			m.PortFree = func(int) error { return errors.New("in use") }
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			machine, needs := goodMachine(), everything()
			change(&machine, &needs)
			if err := machine.Check(needs); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestThisMachineIsLookedAt(t *testing.T) {
	machine := ThisMachine()
	if machine.MemoryKiB <= 0 {
		t.Errorf("memory is %d KiB", machine.MemoryKiB)
	}
	if !machine.HasGo {
		t.Error("go, which runs this test, isn't found")
	}
	dir := t.TempDir()
	here, err := machine.FreeBytes(dir)
	below, errBelow := machine.FreeBytes(filepath.Join(dir, "not", "yet"))
	if err := errors.Join(err, errBelow); err != nil || here == 0 || below == 0 {
		t.Errorf("%d bytes are free, and %d where a folder would be made (%v)", here, below, err)
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if err := machine.PortFree(portOf(listener)); err == nil {
		t.Error("a port that is listened on is free")
	}
}
