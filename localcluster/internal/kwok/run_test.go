// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestFakeNodesHaveLeasesWhereNodesCanBeLost(t *testing.T) {
	if args := (Kwok{Kubeconfig: "/k"}).args(); !slices.Equal(args, []string{"--kubeconfig=/k"}) {
		t.Errorf("alone they are asked for by %q", args)
	}
	want := []string{"--kubeconfig=/k", "--lease-seconds=40"} // renewed every 10 s
	if args := (Kwok{Kubeconfig: "/k", NodeLostAfter: 20 * time.Second}).args(); !slices.Equal(args, want) {
		t.Errorf("beside real ones they are asked for by %q", args)
	}
}

func TestItIsStartedAgainAndEnds(t *testing.T) {
	dir := t.TempDir()
	program, log := filepath.Join(dir, "kwok"), filepath.Join(dir, "log")
	// The first ends by itself, the second waits.
	script := "#!/bin/sh\necho started\n[ -e " + dir + "/again ] || { : >" + dir + "/again; exit 1; }\nexec sleep 1000\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Kwok{Program: program, Kubeconfig: "/k", Log: log}.Run(ctx) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); ; {
		output, err := os.ReadFile(log)
		if bytes.Count(output, []byte("started\n")) == 2 {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("it was started as often as it says: %q (%v)", output, err)
		case err := <-ended:
			t.Fatalf("it isn't kept running: %v", err)
		case <-tick.C:
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}
