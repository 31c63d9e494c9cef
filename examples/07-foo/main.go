// SPDX-License-Identifier: Apache-2.0

// Command 07-foo runs the operator, changes a Foo, and prints from the
// operator's own log the way that the change takes through it.
package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	apply "coolops.cn/database-manager/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
)

// entry is a line of the operator's log.
type entry struct {
	Time                                                      time.Time
	Level, Msg, Err, Type, ResourceVersion, Verb, URL, Status string
	Step, Why, Reason, Result                                 string
	Object, Key                                               cache.ObjectName
}

// explain says which part of the pipeline wrote the entry; "" for no part of it.
func (e entry) explain() (part, text string) {
	part = map[string]string{
		"Received": "watch", "Handling": "handler", "Queueing": "queue", "Syncing": "worker", "Sync ended": "worker", "Response": "API server",
		"Decided": "sync", "Waiting": "sync", "Wrote the Deployment": "sync", "Wrote the status": "sync",
	}[e.Msg]
	words := []string{e.Msg, e.Type, e.ResourceVersion, e.Verb, e.URL[strings.LastIndex(e.URL, "/namespaces/")+1:], e.Status, e.Step, e.Why, e.Reason, e.Result}
	return part, strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` that says how the cluster is reached (default: $KUBECONFIG, else ~/.kube/config)")
	namespace := flag.String("namespace", "default", "`name` of the namespace that the operator watches")
	manager := flag.String("manager", "bin/database-manager", "the operator's `program`")
	const about = "07-foo runs the operator, changes a Foo, and prints what the operator's log says of each change."
	flag.Usage = func() { fmt.Fprintln(os.Stderr, about); flag.PrintDefaults() }
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace, *manager); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "07-foo:", err)
		os.Exit(1) //nolint:gocritic // the signals have an end with the process
	}
}

func run(ctx context.Context, kubeconfig, namespace, manager string) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	foos, name := client.SamplecontrollerV1alpha1().Foos(namespace), fmt.Sprint("walk-", os.Getpid())
	switch _, err = foos.List(ctx, metav1.ListOptions{Limit: 1}); {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err), errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("take the kubeconfig of an administrator of this cluster: %w", err)
	case err != nil: // the operator tries again and again
		fmt.Fprintln(os.Stderr, "07-foo: waiting until the API server answers, and has Foos (kubectl apply --server-side -f config/crd/samplecontroller.k8s.io_foos.yaml):", err)
	}
	operator := exec.CommandContext(ctx, manager, "--kubeconfig="+rules.GetDefaultFilename(), "--namespaces="+namespace, "--controllers=foo",
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--log-format=json", "-v=6")
	operator.Cancel = func() error { return operator.Process.Signal(os.Interrupt) }
	output, err := operator.StderrPipe()
	if err = errors.Join(err, operator.Start()); err != nil {
		return fmt.Errorf("start the operator, which make build builds: %w", err)
	}
	log := make(chan entry)
	go read(bufio.NewScanner(output), log)
	defer func() {
		_ = operator.Cancel()
		for range log { // to its end
		}
		_ = operator.Wait() // the log has said why it ended
	}()
	if _, err := collect(log, func(e entry) bool { return e.Msg == "Working" }); err != nil {
		return err
	}
	for _, replicas := range []int32{1, 3} {
		began, wanted := time.Now(), apply.Foo(name, namespace).WithSpec(apply.FooSpec().WithDeploymentName(name).WithReplicas(replicas))
		if _, err := foos.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "07-foo"}); err != nil {
			return fmt.Errorf("write the Foo: %w", err)
		}
		walk, err := collect(log, func(e entry) bool { return e.Key.Name == name && e.Step == "nothing" })
		if err != nil {
			return err
		}
		fmt.Printf("foo %s/%s: spec.replicas becomes %d\n", namespace, name, replicas)
		slices.SortStableFunc(walk, func(a, b entry) int { return a.Time.Compare(b.Time) })
		for _, e := range walk {
			if part, text := e.explain(); part != "" && (e.Object.Name == name || e.Key.Name == name) {
				fmt.Printf("%8.1f ms  %-10s  %s\n", e.Time.Sub(began).Seconds()*1000, part, text)
			}
		}
	}
	return nil
}

// read reads the operator's log to its end, and passes on what went wrong.
func read(lines *bufio.Scanner, log chan<- entry) {
	defer close(log)
	for lines.Scan() {
		e := entry{Level: "ERROR", Msg: lines.Text()} // unless it can be read
		_ = json.Unmarshal(lines.Bytes(), &e)
		if e.Level == "ERROR" {
			fmt.Fprintln(os.Stderr, "operator:", e.Msg, e.Err)
		}
		log <- e
	}
}

// collect reads the log up to what isLast accepts, and on until it is quiet.
func collect(log <-chan entry, isLast func(entry) bool) (entries []entry, err error) {
	for isDone := false; ; {
		select {
		case e, isOpen := <-log:
			if !isOpen {
				return nil, errors.New("the operator has ended")
			} else if !isDone {
				entries, isDone = append(entries, e), isLast(e)
			}
		case <-time.After(time.Second):
			if isDone {
				return entries, nil
			}
		}
	}
}
