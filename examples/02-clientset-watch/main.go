// SPDX-License-Identifier: Apache-2.0

// Command 02-clientset-watch prints what happens to the pods of all namespaces.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type watcher struct {
	clientset kubernetes.Interface
	version   string // where the next watch begins; "" to list first
}

func main() {
	log.SetFlags(0) // troubles go to stderr, a sentence each
	kubeconfig := flag.String("kubeconfig", "", "`file` that says where the cluster is; default: $KUBECONFIG, ~/.kube/config, or the pod's own cluster")
	flag.Parse()
	config, err := loadConfig(*kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatalf("the kubeconfig can't be used: %s", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	(&watcher{clientset: clientset}).run(ctx)
}

// loadConfig reads the kubeconfig; where there is none, it takes the service
// account of the pod that this is.
func loadConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("there is no kubeconfig, and this is no pod: say --kubeconfig")
	} else if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.UserAgent = "02-clientset-watch"
	return config, nil
}

// run lists once and watches, again and again, until ctx ends.
func (w *watcher) run(ctx context.Context) {
	const shortest, longest = 500 * time.Millisecond, 30 * time.Second
	for pause, said := shortest, ""; ctx.Err() == nil; pause = min(2*pause, longest) {
		began := time.Now()
		err := w.listAndWatch(ctx)
		if wrong, ok := errors.AsType[*tls.CertificateVerificationError](err); ok { // that won't heal
			log.Fatalf("the API server's certificate doesn't verify, see the kubeconfig's certificate-authority: %s", wrong.Err)
		}
		if time.Since(began) > longest { // it went well
			pause, said = shortest, ""
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			w.version = "" // list again
		}
		if text := explain(err); ctx.Err() == nil && text != said {
			said = text
			log.Printf("%s; trying again, with growing pauses", said)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)): // so that not all clients come at once
		}
	}
}

// listAndWatch lists the pods, unless it knows a version to go on from, and
// watches them. It always returns an error: every watch ends.
func (w *watcher) listAndWatch(ctx context.Context) error {
	pods := w.clientset.CoreV1().Pods("") // of all namespaces
	if w.version == "" {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		for i := range list.Items {
			show("LISTED", &list.Items[i])
		}
		w.version = list.ResourceVersion
	}
	stream, err := pods.Watch(ctx, metav1.ListOptions{
		ResourceVersion: w.version, AllowWatchBookmarks: true, TimeoutSeconds: new(int64(300)),
	})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer stream.Stop()
	fmt.Println("WATCHING from version", w.version)
	for event := range stream.ResultChan() {
		pod, isPod := event.Object.(*corev1.Pod)
		if !isPod { // with event.Type watch.Error, it is a metav1.Status
			return apierrors.FromObject(event.Object)
		}
		if event.Type != watch.Bookmark {
			show(event.Type, pod)
		}
		w.version = pod.ResourceVersion
	}
	return errors.New("the watch ended")
}

// explain says what is wrong, and what to do about it.
func explain(err error) string {
	if noAnswer, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Sprintf("no answer, is the kubeconfig's server right and running? %s", noAnswer.Err)
	}
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%s: see whether the kubeconfig's credentials have expired", err)
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%s: give it a ClusterRole that may list and watch pods", err)
	default:
		return err.Error()
	}
}

func show(what watch.EventType, pod *corev1.Pod) {
	fmt.Printf("%s %s/%s (%s)\n", what, pod.Namespace, pod.Name, pod.Status.Phase)
}
