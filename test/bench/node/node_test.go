//go:build bench

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// patience is how long anything may take on a machine that is busy.
const patience = 5 * time.Minute

// engines are those that are measured.
func engines() []engine {
	named := strings.Fields(os.Getenv("BENCH_ENGINES"))
	return slices.DeleteFunc(allEngines(), func(e engine) bool { return len(named) > 0 && !slices.Contains(named, string(e.name)) })
}

// newHost starts a pod from which the node's containerd is asked, in the node's own
// file systems and processes.
func newHost(t *testing.T) pod {
	t.Helper()
	return startPod(t, newNamespace(t, "privileged"), allEngines()[0].image, func(spec *corev1.PodSpec) {
		spec.HostPID = true
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))}
	})
}

// onNode begins a command that runs on the node, and not in the pod.
const onNode = "nsenter --target 1 --mount -- "

// newClient starts a pod that asks databases, of the engine's image, so that the node
// has that before anything is measured.
func newClient(t *testing.T, namespace string, e engine) pod {
	t.Helper()
	return startPod(t, namespace, e.image, func(spec *corev1.PodSpec) {
		spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(999)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
		spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	})
}

// TestN1FirstAnsweredQuery starts each engine by a resource and bare, in turns.
func TestN1FirstAnsweredQuery(t *testing.T) {
	host := newHost(t)
	for _, e := range engines() {
		t.Run(string(e.name), func(t *testing.T) {
			namespace := newNamespace(t, "restricted")
			client := newClient(t, namespace, e)
			for round := 1; round <= env.rounds; round++ {
				var byOperator, bare float64
				if round%2 == 0 {
					bare = startBare(t, host, e)
					byOperator = startByOperator(t, client, e, fmt.Sprintf("db-%d", round))
				} else {
					byOperator = startByOperator(t, client, e, fmt.Sprintf("db-%d", round))
					bare = startBare(t, host, e)
				}
				record(t, "N1", string(e.name), round, map[string]float64{"operator s": byOperator, "bare s": bare, "more s": byOperator - bare})
			}
		})
	}
}

// startBare returns how many seconds it takes to make a container of the image, and
// its server to answer.
func startBare(t *testing.T, host pod, e engine) float64 {
	t.Helper()
	reference := "docker.io/" + e.image
	if !strings.Contains(e.image, "/") {
		reference = "docker.io/library/" + e.image
	}
	// The snapshotter is the one that the node's pods have. It needs no group of its own.
	script := `set -e
snapshotter=$(` + onNode + `sed -n 's/^ *snapshotter = "\(.*\)"$/\1/p' /etc/containerd/config.toml)
begun=$(date +%s%N)
answered=$(` + onNode + `ctr --namespace k8s.io run --rm --cgroup= --snapshotter "$snapshotter" "$1" "$2" sh -c "$3" | tail -n 1)
echo $(((answered - begun) / 1000000))`
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	text, err := host.run(ctx, "sh", "-c", script, "bare", reference, fmt.Sprintf("bare-%s-%d", e.name, time.Now().UnixNano()), e.bare+"\ndate +%s%N\nexit")
	if err != nil {
		t.Fatalf("start %s bare: %v", e.name, err)
	}
	milliseconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("start %s bare: it says %q", e.name, text)
	}
	return milliseconds / 1000
}

// create makes a database.
func create(t *testing.T, namespace, name string, e engine, members int32, isDurable bool) {
	t.Helper()
	spec := v1alpha1.DatabaseManagerSpec{DeploymentName: name, DBType: e.name, Version: e.version, Replicas: &members}
	if isDurable {
		spec.Storage = &v1alpha1.StorageSpec{Size: resource.MustParse("1Gi")}
	}
	_, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Create(t.Context(), &v1alpha1.DatabaseManager{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a database: %v", err)
	}
}

// login is the beginning of a command that reaches a database, once there is its
// Secret. What is in it is random, of letters and digits, or a name.
func login(t *testing.T, namespace, stem string) string {
	t.Helper()
	var variables strings.Builder
	eventually(t, patience, "the database's Secret", func(ctx context.Context) error {
		secret, err := env.kube.CoreV1().Secrets(namespace).Get(ctx, stem+"-auth", metav1.GetOptions{})
		if err != nil {
			return err
		}
		variables.Reset()
		for _, key := range []string{"host", "port", "username", "password", "database"} {
			fmt.Fprintf(&variables, "export %s='%s'\n", key, secret.Data[key])
		}
		return nil
	})
	return variables.String()
}

// startByOperator returns how many seconds after the resource is made the database
// answers a client in a pod, through its Service.
func startByOperator(t *testing.T, client pod, e engine, name string) float64 {
	t.Helper()
	begun := time.Now()
	create(t, client.namespace, name, e, 1, false)
	script := login(t, client.namespace, name) + "until { " + e.ask + e.read + "; } >/dev/null 2>&1; do sleep 0.02; done\ndate +%s%N"
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	text, err := client.run(ctx, "sh", "-c", script)
	if err != nil {
		t.Fatalf("ask %s: %v", name, err)
	}
	answered, err := nanoseconds(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := env.resources.CoolopsV1alpha1().DatabaseManagers(client.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return answered.Sub(begun).Seconds()
}

// TestN3Gaps has a client write all the time while the primary of three members is
// killed, and while it hands over, and takes the longest time without a write.
func TestN3Gaps(t *testing.T) {
	host := newHost(t)
	for _, e := range engines() {
		t.Run(string(e.name), func(t *testing.T) {
			namespace := newNamespace(t, "restricted")
			client := newClient(t, namespace, e)
			create(t, namespace, "db", e, 3, true)
			awaitMembers(t, namespace)
			variables := login(t, namespace, "db")
			if _, err := client.run(t.Context(), "sh", "-c", variables+e.ask+e.make); err != nil {
				t.Fatalf("make place for what is written: %v", err)
			}
			for round := 1; round <= env.rounds; round++ {
				killed := gap(t, client, e, variables, func() { killPrimary(t, host, namespace) })
				awaitMembers(t, namespace)
				switched := gap(t, client, e, variables, func() { switchOver(t, namespace) })
				awaitMembers(t, namespace)
				record(t, "N3", string(e.name)+", 3 members", round, map[string]float64{"killed s": killed, "switched over s": switched})
			}
		})
	}
}

// awaitMembers waits until all three are ready, and nothing is being done; it returns
// the primary.
func awaitMembers(t *testing.T, namespace string) (primary string) {
	t.Helper()
	eventually(t, patience, "three members", func(ctx context.Context) error {
		database, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			return err
		}
		primary = database.Status.CurrentPrimary
		isReady := meta.IsStatusConditionTrue(database.Status.Conditions, v1alpha1.ConditionReady) && meta.IsStatusConditionFalse(database.Status.Conditions, v1alpha1.ConditionProgressing)
		if !isReady || database.Status.AvailableReplicas < 3 || primary == "" {
			return fmt.Errorf("%d members answer, the conditions are %+v", database.Status.AvailableReplicas, database.Status.Conditions)
		}
		return nil
	})
	return primary
}

// gap returns the longest time, in seconds, between two writes that were acknowledged,
// from a second before something is done to ten after the writes go on.
func gap(t *testing.T, client pod, e engine, variables string, do func()) float64 {
	t.Helper()
	const script = `for i in $(seq 1 100000); do
	[ -e /tmp/writing ] || exit 0
	if timeout 2 sh -c "$1" >/dev/null 2>&1; then date +%s%N; fi
done >/tmp/written`
	ctx := t.Context()
	if _, err := client.run(ctx, "touch", "/tmp/writing"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := client.run(ctx, "sh", "-c", script, "write", variables+e.ask+e.write)
		ended <- err
	}()
	<-time.After(time.Second)
	do()
	<-time.After(30 * time.Second)
	if _, err := client.run(ctx, "rm", "/tmp/writing"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("write: %v", err)
	}
	text, err := client.run(ctx, "cat", "/tmp/written")
	if err != nil {
		t.Fatal(err)
	}
	longest, err := longestGap(text)
	if err != nil {
		t.Fatal(err)
	}
	return longest.Seconds()
}

// longestGap is the longest time between two moments that stand below each other.
func longestGap(text string) (time.Duration, error) {
	var longest time.Duration
	var before time.Time
	for line := range strings.Lines(text) {
		at, err := nanoseconds(line)
		if err != nil {
			return 0, err
		}
		if !before.IsZero() {
			longest = max(longest, at.Sub(before))
		}
		before = at
	}
	if longest == 0 {
		return 0, errors.New("no two writes were acknowledged")
	}
	return longest, nil
}

// killPrimary kills the primary's server as the kernel does when memory is short.
func killPrimary(t *testing.T, host pod, namespace string) {
	t.Helper()
	primary, err := env.kube.CoreV1().Pods(namespace).Get(t.Context(), awaitMembers(t, namespace), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(primary.Status.ContainerStatuses[0].ContainerID, "://")
	if _, err := host.run(t.Context(), "sh", "-c", onNode+`ctr --namespace k8s.io tasks kill --all --signal SIGKILL "$1"`, "kill", id); err != nil {
		t.Fatalf("kill the primary: %v", err)
	}
}

// switchOver has another member be the primary.
func switchOver(t *testing.T, namespace string) {
	t.Helper()
	to := "db-0"
	if awaitMembers(t, namespace) == to {
		to = "db-1"
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationSwitchover, to)
	if _, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Patch(t.Context(), "db", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatalf("switch over: %v", err)
	}
}

// TestN2Sizes measures what is shipped, and the operator's own memory as it stands.
func TestN2Sizes(t *testing.T) {
	values := map[string]float64{
		"image MB":   sizeOf(t, env.image) / 1e6,
		"CRDs KB":    sizeOf(t, filepath.Join(env.install, "crds.yaml")) / 1e3,
		"install KB": sizeOf(t, filepath.Join(env.install, "install.yaml")) / 1e3,
	}
	host := newHost(t)
	text, err := host.run(t.Context(), "sh", "-c", `for status in /proc/[0-9]*/status; do
	if [ "$(sed -n 's/^Name:\t//p' "$status" 2>/dev/null)" = database-manage ]; then sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "$status"; fi
done | sort -n | tail -n 1`)
	if err != nil {
		t.Fatalf("look for the operator's memory: %v", err)
	}
	kilobytes, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("the operator's memory is %q", text)
	}
	values["RSS MB"] = kilobytes * 1024 / 1e6
	record(t, "N2", "operator", 1, values)
}

func sizeOf(t *testing.T, path string) float64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return float64(info.Size())
}
