// SPDX-License-Identifier: Apache-2.0

package sizedvolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
)

var errKilled = errors.New("killed")

// fakeDisks has the sizes of disks, and the names of those that are mounted.
type fakeDisks struct {
	sizes   map[string]int64
	mounted []string
	// refuse is asked before each change.
	refuse func() error
}

func newDisks() *fakeDisks {
	return &fakeDisks{sizes: map[string]int64{"pv-1": 64 << 20}, refuse: func() error { return nil }}
}

func (d *fakeDisks) Make(_ context.Context, name string, size int64) error {
	if err := d.refuse(); err != nil {
		return err
	}
	d.sizes[name] = size
	return nil
}

func (d *fakeDisks) Mount(_ context.Context, name string) error {
	if d.sizes[name] == 0 {
		return fs.ErrNotExist
	}
	if !slices.Contains(d.mounted, name) {
		d.mounted = append(d.mounted, name)
	}
	return nil
}

func (d *fakeDisks) Grow(_ context.Context, name string, size int64) error {
	if err := d.refuse(); err != nil {
		return err
	}
	d.sizes[name] = size
	return nil
}

func (d *fakeDisks) Remove(_ context.Context, name string) error {
	delete(d.sizes, name)
	return nil
}

func (d *fakeDisks) DataPath(name string) string { return "/disks/" + name }

// mustBeGrown looks for a disk, volume and claim of that size, of which nothing says any more that it is resized.
func mustBeGrown(t *testing.T, client *fake.Clientset, disks *fakeDisks, want string) {
	t.Helper()
	volume, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pv-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim, err := client.CoreV1().PersistentVolumeClaims("shop").Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	size := fmt.Sprintf("%dMi", disks.sizes["pv-1"]>>20)
	if volume.Spec.Capacity.Storage().String() != want || claim.Status.Capacity.Storage().String() != want || size != want || isResizing(claim) {
		t.Errorf("the disk has %s, the volume %s and the claim is %+v, want %s", size, volume.Spec.Capacity.Storage(), claim.Status, want)
	}
}

// TestGrowthIsTakenUp has the resizer die at each of the changes that it makes.
func TestGrowthIsTakenUp(t *testing.T) {
	for steps := 0; ; steps++ {
		volume, claim := pair(requesting)
		client, disks := fake.NewClientset(volume, claim), newDisks()
		left := steps
		disks.refuse = func() error {
			if left == 0 {
				return errKilled
			}
			left--
			return nil
		}
		client.PrependReactor("update", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			err := disks.refuse()
			return err != nil, nil, err
		})
		killed := newResizer("node-1", client, disks, events.NewFakeRecorder(10)).sync(t.Context(), "pv-1")
		if killed != nil && !errors.Is(killed, errKilled) {
			t.Fatal(killed)
		}
		left = -1
		if err := newResizer("node-1", client, disks, events.NewFakeRecorder(10)).sync(t.Context(), "pv-1"); err != nil {
			t.Fatalf("killed after %d steps: %v", steps, err)
		}
		mustBeGrown(t, client, disks, "128Mi")
		if killed == nil {
			if steps != 4 {
				t.Errorf("it made %d changes: the claim's begin, the disk, the volume, the claim's end are 4", steps)
			}
			return
		}
	}
}

func TestEventsTellOfTransitions(t *testing.T) {
	volume, claim := pair(requesting)
	disks, recorder := newDisks(), events.NewFakeRecorder(10)
	r := newResizer("node-1", fake.NewClientset(volume, claim), disks, recorder)
	disks.refuse = func() error { return errors.New("no space") }
	for range 2 {
		if err := r.sync(t.Context(), "pv-1"); err == nil {
			t.Fatal("a disk that can't grow is no error")
		}
	}
	disks.refuse = func() error { return nil }
	for range 2 {
		if err := r.sync(t.Context(), "pv-1"); err != nil {
			t.Fatal(err)
		}
	}
	close(recorder.Events)
	var reasons []string
	for event := range recorder.Events {
		reasons = append(reasons, strings.Fields(event)[1])
	}
	if want := []string{reasonResizing, reasonFailed, reasonFailed, reasonSucceeded}; !slices.Equal(reasons, want) {
		t.Errorf("events are %q, want %q", reasons, want)
	}
}

func TestNothingIsDoneWithoutItsClaim(t *testing.T) {
	for sentence, objects := range map[string]func() []runtime.Object{
		"no volume": func() []runtime.Object { return nil },
		"no claim": func() []runtime.Object {
			volume, _ := pair(requesting)
			return []runtime.Object{volume}
		},
		"another claim of that name": func() []runtime.Object {
			volume, claim := pair(func(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
				requesting(volume, claim)
				claim.UID = "2"
			})
			return []runtime.Object{volume, claim}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			client, disks := fake.NewClientset(objects()...), newDisks()
			if err := newResizer("node-1", client, disks, events.NewFakeRecorder(10)).sync(t.Context(), "pv-1"); err != nil {
				t.Error(err)
			}
			if disks.sizes["pv-1"] != 64<<20 || len(disks.mounted) > 0 {
				t.Errorf("disks are %+v", disks)
			}
		})
	}
}

// TestResizerFollowsTheAPI mounts what is there, grows what is asked for while it runs, and tries again what fails.
func TestResizerFollowsTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		volume, claim := pair(unchanged)
		client, disks := fake.NewClientset(volume, claim), newDisks()
		failures := 2
		disks.refuse = func() error {
			failures--
			if failures >= 0 {
				return errors.New("no space")
			}
			return nil
		}
		ended := make(chan error, 1)
		go func() { ended <- newResizer("node-1", client, disks, events.NewFakeRecorder(10)).run(ctx) }()
		synctest.Wait()
		if !slices.Equal(disks.mounted, []string{"pv-1"}) {
			t.Errorf("mounted are %q", disks.mounted)
		}
		_, larger := pair(requesting)
		if _, err := client.CoreV1().PersistentVolumeClaims("shop").Update(ctx, larger, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute) // in which it tries again, and has nothing left to do
		synctest.Wait()
		mustBeGrown(t, client, disks, "128Mi")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
