// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

//go:embed testdata/volumes.yaml
var volumes string

//go:embed testdata/without-loop-devices.sh
var withoutLoopDevices string

// TestVolumesWithASize lives through the life of a volume of the class sized, in one test: each part needs the one before.
func TestVolumesWithASize(t *testing.T) {
	c := newCluster(t)
	c.must(t, "build") // what listing the host's packet rules needs is made with it
	host := lookAtHost(t)
	c.timed(t, "up")
	part := func(name string, do func(t *testing.T, c *cluster)) {
		t.Run(name, func(t *testing.T) { do(t, c) })
	}
	part("a disk that is full grows under its pod", fullDiskGrows)
	part("a disk grows while it is written to", growsWhileWritten)
	part("the default class refuses to grow", defaultClassRefuses)
	part("a disk grows while no pod has it", growsUnused)
	part("a request that nobody was there to serve is served later", growsLater)
	host.mustBeAsBefore(t, "while it runs")

	c.lookAtProcesses(t).kill(t)
	c.timed(t, "up")
	part("disks outlive a crash", diskOutlivesCrash)
	part("a claim that is deleted takes its disk along", diskGoes)
	c.makeVolumes(t)
	c.mustLeaveNoDisk(t, func([]inode) { c.timed(t, "down") })
	host.mustBeAsBefore(t, "after down")

	c.timed(t, "up")
	c.makeVolumes(t)
	c.mustLeaveNoDisk(t, func([]inode) {
		c.lookAtProcesses(t).kill(t)
		// The kernel is quick to free those of the nodes. This one nobody would.
		attach(t, c.diskFiles(t)[0])
		c.timed(t, "down")
	})
	host.mustBeAsBefore(t, "after a crash and down")
}

// makeVolumes has a pod with a volume of each class.
func (c *cluster) makeVolumes(t *testing.T) {
	t.Helper()
	if _, err := c.run(t.Context(), volumes, "kubectl", "apply", "--server-side", "--force-conflicts", "--filename=-"); err != nil {
		t.Fatal(err)
	}
	c.must(t, "kubectl", "--namespace=volumes", "wait", "pod/writer", "--for=condition=Ready", "--timeout=90s")
}

// inWriter runs a command of the shell in the pod.
func (c *cluster) inWriter(t *testing.T, command string) string {
	t.Helper()
	return c.must(t, "kubectl", "--namespace=volumes", "exec", "writer", "--", "sh", "-c", command)
}

// fill writes as much as there is place for, and tells why it ended.
func (c *cluster) fill(t *testing.T, file string) string {
	t.Helper()
	return c.inWriter(t, "cat /dev/zero 2>&1 >"+file+"; true")
}

// diskSize is the size that the pod sees, in MiB.
func (c *cluster) diskSize(t *testing.T) int {
	t.Helper()
	size, err := strconv.Atoi(strings.TrimSpace(c.inWriter(t, "df --block-size=1M --output=size /data | tail -n 1")))
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// mustHaveSize allows for what the file system takes for itself.
func (c *cluster) mustHaveSize(t *testing.T, mib int) {
	t.Helper()
	if size := c.diskSize(t); size > mib || size < mib*85/100 {
		t.Errorf("the pod sees %d MiB, want %d at most, and little less", size, mib)
	}
}

func (c *cluster) requestSize(t *testing.T, size string) {
	t.Helper()
	c.must(t, "kubectl", "--namespace=volumes", "patch", "pvc/sized", "--patch="+`{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`)
}

// awaitSize waits until claim and volume have that size, and nothing on the claim tells of resizing any more.
func (c *cluster) awaitSize(t *testing.T, size string) {
	t.Helper()
	c.must(t, "kubectl", "--namespace=volumes", "wait", "pvc/sized", "--for=jsonpath={.status.capacity.storage}="+size, "--timeout=60s")
	eventually(t, "the claim is as after any growth", func() error {
		const path = "{.status.allocatedResources.storage}{.status.allocatedResourceStatuses}{range .status.conditions[*]} {.type}{end}"
		status := c.must(t, "kubectl", "--namespace=volumes", "get", "pvc/sized", "-o=jsonpath="+path)
		if fields := strings.Fields(status); fields[0] != size || slices.Contains(fields, "Resizing") || slices.Contains(fields, "FileSystemResizePending") {
			return errors.New(status)
		}
		return nil
	})
	volume := c.must(t, "kubectl", "--namespace=volumes", "get", "pvc/sized", "-o=jsonpath={.spec.volumeName}")
	if capacity := c.must(t, "kubectl", "get", "pv/"+volume, "-o=jsonpath={.spec.capacity.storage}"); capacity != size {
		t.Errorf("the volume has %s, want %s", capacity, size)
	}
}

func fullDiskGrows(t *testing.T, c *cluster) {
	c.makeVolumes(t)
	if owner := c.inWriter(t, "touch /data/first && stat -c %u:%g /data/first"); owner != "999:999" {
		t.Errorf("a file's owner is %s", owner)
	}
	c.mustHaveSize(t, 64)
	const full = "No space left on device"
	if end := c.fill(t, "/data/full"); !strings.Contains(end, full) {
		t.Fatalf("it ended with %q", end)
	}
	c.requestSize(t, "128Mi")
	c.awaitSize(t, "128Mi")
	c.mustHaveSize(t, 128)
	c.inWriter(t, "head -c 32M /dev/zero >/data/more && sync /data/more")
	if end := c.fill(t, "/data/full-again"); !strings.Contains(end, full) {
		t.Errorf("the larger one ended with %q", end)
	}
	c.inWriter(t, "rm /data/full* /data/more")
	events := c.must(t, "kubectl", "--namespace=volumes", "get", "events", "--field-selector=involvedObject.name=sized", "-o=jsonpath={.items[*].reason}")
	for _, reason := range []string{"Resizing", "VolumeResizeSuccessful"} {
		if !slices.Contains(strings.Fields(events), reason) {
			t.Errorf("no event tells of %s: %s", reason, events)
		}
	}
}

func growsWhileWritten(t *testing.T, c *cluster) {
	type result struct {
		output string
		err    error
	}
	const write = "n=0; until test -e /data/enough; do head -c 64K /dev/zero >/data/$((n % 100)) && sync /data/$((n % 100)) || exit 1; n=$((n + 1)); echo $n >/data/count; done; echo $n"
	done := make(chan result, 1)
	go func() {
		output, err := c.run(t.Context(), "", "kubectl", "--namespace=volumes", "exec", "writer", "--", "sh", "-c", write)
		done <- result{output, err}
	}()
	count := func() (n int) {
		n, _ = strconv.Atoi(c.inWriter(t, "cat /data/count || true")) // not there yet, or half written, is 0
		return n
	}
	eventually(t, "it writes", func() error {
		if count() < 10 {
			return errors.New("it doesn't")
		}
		return nil
	})
	c.requestSize(t, "256Mi")
	c.awaitSize(t, "256Mi")
	after := count()
	eventually(t, "it goes on", func() error {
		if now := count(); now <= after {
			return fmt.Errorf("it wrote %d times", now)
		}
		return nil
	})
	c.inWriter(t, "touch /data/enough")
	if end := <-done; end.err != nil {
		t.Errorf("a write failed: %v, %s", end.err, end.output)
	}
	c.mustHaveSize(t, 256)
	c.inWriter(t, "rm /data/[0-9]* /data/count /data/enough")
}

func defaultClassRefuses(t *testing.T, c *cluster) {
	c.mustFail(t, "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
		"kubectl", "--namespace=volumes", "patch", "pvc/standard", "--patch="+`{"spec":{"resources":{"requests":{"storage":"128Mi"}}}}`)
	if usage := c.inWriter(t, "head -c 65M /dev/zero >/standard/more && stat -c %s /standard/more && rm /standard/more"); usage != strconv.Itoa(65<<20) {
		t.Errorf("it has a size: %s", usage)
	}
}

func growsUnused(t *testing.T, c *cluster) {
	c.must(t, "kubectl", "--namespace=volumes", "delete", "pod/writer")
	c.requestSize(t, "384Mi")
	c.awaitSize(t, "384Mi")
	c.makeVolumesAgain(t)
	c.mustHaveSize(t, 384)
	c.inWriter(t, "test -e /data/first")
}

// makeVolumesAgain makes the pod anew, and leaves the claims as they are.
func (c *cluster) makeVolumesAgain(t *testing.T) {
	t.Helper()
	documents := strings.Split(volumes, "---\n")
	if _, err := c.run(t.Context(), documents[len(documents)-1], "kubectl", "apply", "--server-side", "--filename=-"); err != nil {
		t.Fatal(err)
	}
	c.must(t, "kubectl", "--namespace=volumes", "wait", "pod/writer", "--for=condition=Ready", "--timeout=90s")
}

// growsLater has the program that grows disks die, and the control plane restart, before and after a request.
func growsLater(t *testing.T, c *cluster) {
	c.lookAtProcesses(t).killProgram(t, "internal-sized-volume")
	c.requestSize(t, "400Mi")
	c.awaitSize(t, "400Mi")
	c.requestSize(t, "416Mi")
	c.timed(t, "restart", "--kill")
	c.awaitSize(t, "416Mi")
	c.mustHaveSize(t, 416)
	c.inWriter(t, "test -e /data/first")
}

// diskOutlivesCrash has the pod come back by itself: its disk is mounted before it is looked for.
func diskOutlivesCrash(t *testing.T, c *cluster) {
	eventually(t, "the disk is there", func() error {
		_, err := c.run(t.Context(), "", "kubectl", "--namespace=volumes", "exec", "writer", "--", "test", "-e", "/data/first")
		return err
	})
	c.mustHaveSize(t, 416)
	if events := c.must(t, "kubectl", "--namespace=volumes", "get", "events", "--field-selector=reason=FailedMount", "-o=jsonpath={.items[*].message}"); events != "" {
		t.Errorf("it was looked for before it was there: %s", events)
	}
	c.requestSize(t, "432Mi")
	c.awaitSize(t, "432Mi")
	c.mustHaveSize(t, 432)
}

func diskGoes(t *testing.T, c *cluster) {
	c.mustLeaveNoDisk(t, func(disks []inode) {
		c.must(t, "kubectl", "--namespace=volumes", "delete", "pod/writer", "pvc/sized", "pvc/standard")
		eventually(t, "the volumes go", func() error {
			if names, devices := c.must(t, "kubectl", "get", "pv", "-o=name"), attached(t, disks); names != "" || len(devices) > 0 {
				return fmt.Errorf("%s is there, and %q", names, devices)
			}
			return nil
		})
	})
}

// mustLeaveNoDisk looks for the files of the cluster's disks, and for the loop devices that had them before.
func (c *cluster) mustLeaveNoDisk(t *testing.T, do func(disks []inode)) {
	t.Helper()
	disks := c.disks(t)
	if len(disks) == 0 || len(attached(t, disks)) != len(disks) {
		t.Errorf("the search for disks is blind: of %v, attached are %v", disks, attached(t, disks))
	}
	do(disks)
	if left := c.disks(t); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	if left := attached(t, disks); len(left) > 0 {
		t.Errorf("loop devices are left: %q", left)
	}
}

// inode is what tells a file from others, also when it has no name any more.
type inode struct{ device, number uint64 }

func (c *cluster) diskFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.stateDir(), "disks", "*", "*", "file"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (c *cluster) disks(t *testing.T) []inode {
	t.Helper()
	var found []inode
	for _, file := range c.diskFiles(t) {
		var stat unix.Stat_t
		if err := unix.Stat(file, &stat); err != nil {
			t.Fatal(err)
		}
		found = append(found, inode{stat.Dev, stat.Ino})
	}
	return found
}

// attach gives the file to a loop device that stays until it is freed.
func attach(t *testing.T, path string) {
	t.Helper()
	control, err := os.Open("/dev/loop-control")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = control.Close() }() // nothing is written
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // as above
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Fatal(err)
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd())})
		_ = device.Close() // as above
		if err == nil {
			return
		}
		if !errors.Is(err, unix.EBUSY) { // another was quicker
			t.Fatal(err)
		}
	}
}

// attached are the loop devices that have one of the files.
func attached(t *testing.T, files []inode) []string {
	t.Helper()
	bound, err := filepath.Glob("/sys/block/loop*/loop")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range bound {
		name := filepath.Base(filepath.Dir(entry))
		device, err := os.Open(filepath.Join("/dev", name))
		if err != nil {
			continue // it has just been freed
		}
		info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
		if err == nil && slices.Contains(files, inode{info.Device, info.Inode}) {
			found = append(found, name)
		}
		_ = device.Close() // nothing was written
	}
	return found
}

// TestWithoutLoopDevices hides them from the cluster.
func TestWithoutLoopDevices(t *testing.T) {
	c := newCluster(t)
	if err := os.Mkdir(c.filesDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(c.filesDir(), "localcluster")
	if err := os.WriteFile(script, []byte(withoutLoopDevices), 0o755); err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env, "LOCALCLUSTER="+c.command)
	c.command = script

	c.timed(t, "up")
	if _, err := c.run(t.Context(), volumes, "kubectl", "apply", "--server-side", "--filename=-"); err != nil {
		t.Fatal(err)
	}
	c.must(t, "kubectl", "--namespace=volumes", "wait", "pvc/standard", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
	eventually(t, "the claim says why it has no volume", func() error {
		const why = "this machine has no loop devices, and disks are mounted by them: use another storage class"
		notes := c.must(t, "kubectl", "--namespace=volumes", "get", "events",
			"--field-selector=involvedObject.name=sized,reason=ProvisioningFailed,type=Warning", "-o=jsonpath={.items[*].message}")
		if !strings.Contains(notes, why) {
			return errors.New("it says " + notes)
		}
		return nil
	})
	if disks := c.disks(t); len(disks) > 0 {
		t.Errorf("files are left: %v", disks)
	}
}
