// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/kit"
	databasesfake "coolops.cn/database-manager/pkg/generated/clientset/versioned/fake"
	"coolops.cn/database-manager/pkg/generated/informers/externalversions"
)

// TestNothingIsPlannedOnAViewThatIsOlderThanWhatWasDone syncs a database that has none
// of its children yet.
func TestNothingIsPlannedOnAViewThatIsOlderThanWhatWasDone(t *testing.T) {
	key := cache.NewObjectName("shop", "orders")
	for sentence, row := range map[string]struct {
		change    func(*Controller)
		isPlanned bool
	}{
		"where nothing was done, it is": {func(*Controller) {}, true},
		"not while a cache doesn't show what was written": {func(c *Controller) {
			c.caches.OwnWrites.Wrote(key, corev1.Resource("configmaps"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", ResourceVersion: "9"}})
		}, false},
		"not while a member hasn't answered since it was changed": {func(c *Controller) {
			c.prober.SetMembers(key, []kit.ProbedMember[target]{{UID: "pod"}}, time.Now())
			c.prober.Outdate(key, "pod", time.Now())
		}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			kubernetes, owners := fake.NewClientset(), databasesfake.NewClientset(theDatabase())
			children, databases := informers.NewSharedInformerFactory(kubernetes, 0), externalversions.NewSharedInformerFactory(owners, 0)
			ofAll := map[string]informers.SharedInformerFactory{metav1.NamespaceAll: children}
			controller, err := New(Config{
				Kubernetes: kubernetes, Databases: owners, Children: ofAll, Pods: ofAll,
				Owners:  map[string]externalversions.SharedInformerFactory{metav1.NamespaceAll: databases},
				Engines: []Engine{{Engine: redis.New()}}, Recorder: events.NewFakeRecorder(10), Metrics: kit.NewMetrics(),
			})
			if err != nil {
				t.Fatal(err)
			}
			// The informers don't run: their caches hold what they are given.
			if err := databases.Coolops().V1alpha1().DatabaseManagers().Informer().GetIndexer().Add(theDatabase()); err != nil {
				t.Fatal(err)
			}
			row.change(controller)
			err = controller.sync(t.Context(), key)
			var wait *kit.Wait
			writes := writesOf(kubernetes.Actions())
			if isPlanned := len(writes) > 0; isPlanned != row.isPlanned || !isPlanned && !errors.As(err, &wait) {
				t.Errorf("the requests are %v, the error %v", writes, err)
			}
		})
	}
}
