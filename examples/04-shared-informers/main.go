// SPDX-License-Identifier: Apache-2.0

// Command 04-shared-informers lets two consumers of pods share an informer, and counts what that saves. README.md explains it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"coolops.cn/database-manager/examples/04-shared-informers/requests"
)

func main() {
	log.SetFlags(0) // troubles go to stderr, a sentence each
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	flag.StringVar(&rules.ExplicitPath, "kubeconfig", "", "kubeconfig `file` (default $KUBECONFIG, ~/.kube/config, or a pod's own account)")
	namespace := flag.String("namespace", "default", "`namespace` whose pods are counted, by node and by their label app")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := run(ctx, rules, *namespace); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run compares two consumers that have a factory each with two that share one, and goes on with these.
func run(ctx context.Context, rules *clientcmd.ClientConfigLoadingRules, namespace string) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("no cluster to talk to, set KUBECONFIG or --kubeconfig: %w", err)
	}
	config.Dial = (&dialer{}).dial
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		pause := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second}.DelayFunc()
		err = pause.Until(ctx, true, true, func(ctx context.Context) (isDone bool, err error) {
			_, err = client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
			if _, isUnreachable := errors.AsType[*net.OpError](err); isUnreachable {
				return false, nil
			}
			return true, err
		})
	}
	if err != nil {
		return fmt.Errorf("%w: correct the CA, the credentials or the rights that the kubeconfig gives", err)
	}
	newFactory := func(userAgent string) informers.SharedInformerFactory {
		client := kubernetes.NewForConfigOrDie(rest.AddUserAgent(rest.CopyConfig(config), userAgent)) // it was good above
		return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	}
	comparison, end := context.WithCancel(ctx)
	err = start(comparison, client, newFactory("apart"), newFactory("apart"))
	shared := newFactory("shared")
	if err == nil {
		err = start(ctx, client, shared, shared)
	}
	end()
	if err != nil {
		return err
	}
	<-ctx.Done()
	shared.Shutdown()
	return nil
}

// start starts two consumers, and prints what they share, and which requests for pods the API server counted for them.
func start(ctx context.Context, client kubernetes.Interface, first, second informers.SharedInformerFactory) error {
	before, err := requests.Now(ctx, client.CoreV1().RESTClient())
	nodes, nodesErr := countPods(first, "node", func(pod *corev1.Pod) string { return pod.Spec.NodeName })
	apps, appsErr := countPods(second, "app", func(pod *corev1.Pod) string { return pod.Labels["app"] })
	if err := errors.Join(err, nodesErr, appsErr); err != nil {
		return err
	}
	first.StartWithContext(ctx)
	second.StartWithContext(ctx) // does nothing if it is the first
	if !cache.WaitFor(ctx, "", nodes.HasSyncedChecker(), apps.HasSyncedChecker()) {
		return context.Cause(ctx)
	}
	// The typed informer is a wrapper, and a new one at each call; this is what the factory keeps.
	one, other := first.InformerFor(&corev1.Pod{}, nil), second.InformerFor(&corev1.Pod{}, nil)
	caches := map[cache.Store]bool{one.GetStore(): true, other.GetStore(): true}
	if isShared := first == second; isShared != (one == other) || isShared != (len(caches) == 1) {
		return errors.New("one factory made two informers of pods, or two factories made one")
	}
	cost, err := requests.Since(ctx, client.CoreV1().RESTClient(), before, len(caches))
	fmt.Printf("same factory: %t, same informer: %t, caches: %d, list requests: %d, watch requests: %d, of these begun with a list: %d\n",
		first == second, one == other, len(caches), cost.Lists, cost.Watches, cost.Streams)
	return err
}

// countPods indexes a factory's pods by a value of theirs, and prints how many have which, whenever that changes.
func countPods(factory informers.SharedInformerFactory, by string, value func(*corev1.Pod) string) (cache.ResourceEventHandlerRegistration, error) {
	informer := factory.Core().V1().Pods().TypedInformer()
	pods, last := informer.GetTypedIndexer(), ""
	report := func() {
		var counts []string
		for _, value := range slices.Sorted(slices.Values(pods.ListIndexFuncValues(by))) {
			found, _ := pods.ByTypedIndex(by, value) // the error is for an index that doesn't exist
			counts = append(counts, fmt.Sprintf("%s=%d", cmp.Or(value, "(none)"), len(found)))
		}
		if line := fmt.Sprintf("pods by %s: %s", by, strings.Join(counts, " ")); line != last {
			fmt.Println(line)
			last = line
		}
	}
	err := informer.AddTypedIndexers(cache.TypedIndexers[*corev1.Pod]{by: func(pod *corev1.Pod) ([]string, error) { return []string{value(pod)}, nil }})
	registration, handlerErr := informer.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc:    func(*corev1.Pod) { report() },
		UpdateFunc: func(_, _ *corev1.Pod) { report() },
		DeleteFunc: func(cache.DeletedObject[*corev1.Pod]) { report() },
	})
	return registration, errors.Join(err, handlerErr)
}

// dialer says when the API server can't be reached, and when it can again: client-go tries on, in silence.
type dialer struct {
	net.Dialer
	isLost atomic.Bool
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, address)
	switch wasLost := d.isLost.Swap(err != nil); {
	case err != nil && !wasLost:
		log.Print("no answer, trying again with growing pauses: ", err)
	case err == nil && wasLost:
		fmt.Println("the API server answers again")
	}
	return conn, err
}
