// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned/scheme"
	"coolops.cn/database-manager/pkg/generated/informers/externalversions"
)

// eventSource is the name that events carry as their reporting controller.
const eventSource = "coolops.cn/database-manager"

// cluster is how the controllers reach the cluster: clients to write with, and
// informers, by the namespace that they watch, to read from.
type cluster struct {
	kubernetes kubernetes.Interface
	resources  versioned.Interface
	children   map[string]informers.SharedInformerFactory
	owners     map[string]externalversions.SharedInformerFactory
	// pods are those that our Services select, whoever made them.
	pods map[string]informers.SharedInformerFactory
	// credentials are the users' own Secrets that spec.auth may name.
	credentials map[string]informers.SharedInformerFactory
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
	// ownNamespace is where the operator's pods run; empty if it runs elsewhere.
	ownNamespace string
	// defaults are what new databases get where their specs say nothing.
	defaults Defaults
	// mayAct tells whether this process may change engines for so long.
	mayAct func(time.Duration) bool
}

// connect makes the clients and the informers, and starts nothing.
func connect(config *rest.Config, namespaces []string) (cluster, error) {
	c := cluster{
		children: map[string]informers.SharedInformerFactory{},
		owners:   map[string]externalversions.SharedInformerFactory{},
		pods:     map[string]informers.SharedInformerFactory{},

		credentials: map[string]informers.SharedInformerFactory{},
	}
	var err, kubernetesErr error
	c.resources, err = versioned.NewForConfig(config)
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	c.kubernetes, kubernetesErr = kubernetes.NewForConfig(config)
	if err := errors.Join(describe("our own resources", err), describe("Kubernetes", kubernetesErr)); err != nil {
		return cluster{}, err
	}
	c.broadcaster = events.NewBroadcaster(&events.EventSinkImpl{Interface: c.kubernetes.EventsV1()})
	c.recorder = c.broadcaster.NewRecorder(scheme.Scheme, eventSource)
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	managed := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue})
	hasStem, err := labels.NewRequirement(v1alpha1.LabelStem, selection.Exists, nil)
	if err != nil {
		return cluster{}, fmt.Errorf("select pods: %w", err)
	}
	served := labels.SelectorFromSet(labels.Set{v1alpha1.LabelComponent: v1alpha1.ComponentDatabase}).Add(*hasStem)
	labelled := labels.SelectorFromSet(labels.Set{v1alpha1.LabelCredentials: v1alpha1.CredentialsValue})
	slimmer := kit.NewSlimmer()
	selecting := func(namespace string, selector labels.Selector) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(c.kubernetes, 0,
			informers.WithNamespace(namespace),
			informers.WithTransform(slimmer.Slim),
			informers.WithTweakListOptions(kit.SelectedList(selector)))
	}
	for _, namespace := range namespaces {
		c.children[namespace] = selecting(namespace, managed)
		c.pods[namespace] = selecting(namespace, served)
		c.credentials[namespace] = selecting(namespace, labelled)
		c.owners[namespace] = externalversions.NewSharedInformerFactoryWithOptions(c.resources, 0,
			externalversions.WithNamespace(namespace),
			externalversions.WithTransform(slimmer.Slim),
			externalversions.WithTweakListOptions(kit.ConsistentList))
	}
	return c, nil
}

// start fills the caches, and keeps them up to date until the context ends. The
// function that it returns waits for that end.
func (c cluster) start(ctx context.Context) (stop func(), err error) {
	if err := c.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("start recording events: %w", err)
	}
	factories := c.factories()
	for _, factory := range factories {
		factory.StartWithContext(ctx)
	}
	return func() {
		for _, factory := range factories {
			factory.Shutdown()
		}
		c.broadcaster.Shutdown()
	}, nil
}

// factory is what the factories of all informers have in common.
type factory interface {
	StartWithContext(ctx context.Context)
	Shutdown()
}

// factories are those of all informers.
func (c cluster) factories() []factory {
	var all []factory
	for namespace := range c.owners {
		all = append(all, c.owners[namespace], c.children[namespace], c.pods[namespace], c.credentials[namespace])
	}
	return all
}
