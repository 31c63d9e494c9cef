// SPDX-License-Identifier: Apache-2.0

// Command 03-workqueue follows pods with an informer, and works off a queue of their keys. README.md explains it.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

func main() {
	log.SetFlags(0) // troubles go to stderr, a sentence each
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	flag.StringVar(&rules.ExplicitPath, "kubeconfig", "", "kubeconfig `file` (default $KUBECONFIG, ~/.kube/config, or a pod's own account)")
	namespace := flag.String("namespace", "", "`namespace` of the pods (default all)")
	workers := flag.Int("workers", 2, "how many workers sync keys, and print what became of the pods")
	work := flag.Duration("work", 0, "how long each sync pretends to work")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := run(ctx, rules, *namespace, *workers, *work); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run assembles the pipeline, from the API server to the workers, and returns when it was told to stop and they have.
func run(ctx context.Context, rules *clientcmd.ClientConfigLoadingRules, namespace string, workers int, work time.Duration) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("no cluster to talk to, set KUBECONFIG or --kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	starting, fail := context.WithCancelCause(ctx)
	server := &connection{fail: fail}
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	open := source.WatchFuncWithContext
	source.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		stream, err := open(ctx, options)
		server.report(ctx, nil, err)
		return stream, err
	}
	// The informer makes a reflector, which fills a store from this source, and calls handlers of each change in it.
	informer := cache.NewTypedSharedIndexInformer[*corev1.Pod](cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{}))
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](500*time.Millisecond, time.Minute)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{})
	// As long as a handler runs, the next event waits: handlers only queue the key of what changed.
	registration, err := informer.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc:    func(pod *corev1.Pod) { queue.Add(cache.MetaObjectToName(pod)) },
		UpdateFunc: func(_, pod *corev1.Pod) { queue.Add(cache.MetaObjectToName(pod)) },
		// Of a deletion that was missed there is a tombstone: an old state, if any, but the right key.
		DeleteFunc: func(gone cache.DeletedObject[*corev1.Pod]) { queue.Add(gone.GetObjectName()) },
	})
	if err = errors.Join(err, informer.SetWatchErrorHandlerWithContext(server.report)); err != nil {
		return fmt.Errorf("set up the informer: %w", err)
	}
	go informer.RunWithContext(starting)
	if !cache.WaitFor(starting, "", registration.HasSyncedChecker()) {
		return context.Cause(starting)
	}
	fmt.Printf("pods in the store: %d; their keys are queued\n", len(informer.GetStore().ListKeys()))
	var running sync.WaitGroup
	for number := range workers {
		running.Go(func() { worker{number + 1, informer.GetStore(), queue, work}.run(ctx) })
	}
	<-ctx.Done()
	fmt.Println("stopping: what was begun is finished first")
	queue.ShutDown()
	running.Wait()
	return nil
}

// worker syncs one key after the other.
type worker struct {
	number int
	pods   cache.Store
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	work   time.Duration
}

func (w worker) run(ctx context.Context) {
	for key, isShutDown := w.queue.Get(); !isShutDown && ctx.Err() == nil; key, isShutDown = w.queue.Get() {
		found, err := w.sync(key)
		if err == nil {
			w.queue.Forget(key) // the next failure is the first again
		} else {
			w.queue.AddRateLimited(key) // in 500 ms, then 1 s, 2 s, … up to a minute
			found = fmt.Sprintf("failed, attempt %d: %v", w.queue.NumRequeues(key), err)
		}
		fmt.Printf("%s worker %d: %s %s\n", time.Now().Format("15:04:05.0"), w.number, key, found)
		w.queue.Done(key) // until here no other worker was given the key
	}
}

// sync says what the store has under a key; a controller would act on it. What happened to the pod isn't known, nor needed.
func (w worker) sync(key cache.ObjectName) (found string, err error) {
	<-time.After(w.work)
	object, _, err := w.pods.GetByKey(key.String())
	pod, exists := object.(*corev1.Pod)
	if err != nil || !exists {
		return "is gone", err
	}
	if times, err := strconv.Atoi(pod.Annotations["example.coolops.io/fail"]); err == nil && w.queue.NumRequeues(key) < times {
		return "", errors.New("its annotation asks for it")
	}
	return "is " + string(pod.Status.Phase), nil
}

// connection says when the API server is lost, and when it is back: client-go tries again, with growing pauses, in silence.
type connection struct {
	fail              context.CancelCauseFunc
	hasWorked, isLost bool
}

func (c *connection) report(ctx context.Context, _ *cache.Reflector, err error) {
	_, isUntrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case ctx.Err() != nil: // this program hangs up
	case !c.hasWorked && (isUntrusted || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)):
		c.fail(fmt.Errorf("%w: correct the CA, the credentials or the rights that the kubeconfig gives", err))
	case err != nil && !c.isLost:
		log.Print("no answer, trying again with growing pauses: ", err)
	case err == nil && c.isLost:
		fmt.Println("the API server answers again")
	}
	c.hasWorked, c.isLost = c.hasWorked || err == nil, err != nil
}
