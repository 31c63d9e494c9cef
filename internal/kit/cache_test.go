// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func TestEveryChangeIsToldOfWhateverFormItComesIn(t *testing.T) {
	var told []string
	tell := func(pod *corev1.Pod, change Change) {
		entry := string(pod.UID)
		switch {
		case change.IsDeleted:
			entry += " gone"
		case change.IsInitial:
			entry += " was there"
		case change.IsStatusOnly:
			entry += " says something else"
		}
		told = append(told, entry)
	}
	changes := handler[*corev1.Pod]{notify: tell}
	old := aPod("1", "old")
	changes.OnAdd(old, true)
	changes.OnAdd(old, false)
	changes.OnUpdate(old, old)
	changes.OnUpdate(old, aPod("2", "new"))
	changes.OnDelete(cache.DeletedObject[*corev1.Pod]{OptionalObj: old})
	changes.OnDelete(cache.DeletedObject[*corev1.Pod]{OptionalObj: old, FinalStateUnknown: &cache.DeletedFinalStateUnknown{}})
	changes.OnDelete(cache.DeletedObject[*corev1.Pod]{FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: "shop/db-0"}})
	want := []string{"old was there", "old", "old", "old gone", "new", "old gone", "old gone"}
	if !slices.Equal(told, want) {
		t.Errorf("got %v, want %v", told, want)
	}
}

func TestAChangeIsOneOfTheStatusOnlyWhere(t *testing.T) {
	before := func() *corev1.Pod {
		pod := aPod("1", "a")
		pod.Generation, pod.Labels = 3, map[string]string{"app": "db"}
		return pod
	}
	for sentence, row := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing else changed":          {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning; p.ResourceVersion = "2" }, true},
		"the spec stands, by its count": {func(p *corev1.Pod) { p.Generation = 4 }, false},
		"the labels stand":              {func(p *corev1.Pod) { p.Labels = nil }, false},
		"the annotations stand":         {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		"the owners stand":              {func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{UID: "x"}} }, false},
		"it isn't being deleted":        {func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }, false},
		"generations are counted":       {func(p *corev1.Pod) { p.Generation = 0 }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			after := before()
			row.change(after)
			if got := isStatusOnly(before(), after); got != row.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestACacheHoldsWhatIsWatched opens a cache of two namespaces out of three.
func TestACacheHoldsWhatIsWatched(t *testing.T) {
	var pods []*corev1.Pod
	client := fake.NewClientset()
	for _, namespace := range []string{"shop", "office", "elsewhere"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db-0", Labels: map[string]string{"app": "db"}}}
		pods = append(pods, pod)
		if err := client.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	view, cached := NewView(), Cache[*corev1.Pod]{}
	told := make(chan string, len(pods))
	for _, namespace := range []string{"shop", "office"} {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
		err := Open(view, &cached, namespace, factory.Core().V1().Pods().TypedInformer(), corev1.Resource("pods"),
			cache.TypedIndexers[*corev1.Pod]{"app": func(pod *corev1.Pod) ([]string, error) { return []string{pod.Labels["app"]}, nil }},
			func(pod *corev1.Pod, _ Change) { told <- pod.Namespace })
		if err != nil {
			t.Fatal(err)
		}
		factory.StartWithContext(t.Context())
	}
	if !cache.WaitFor(t.Context(), "", view.registrations[0].HasSyncedChecker(), view.registrations[1].HasSyncedChecker()) {
		t.Fatal("the caches don't fill")
	}
	names := []string{<-told, <-told}
	slices.Sort(names)
	if !slices.Equal(names, []string{"office", "shop"}) {
		t.Errorf("told of %v", names)
	}
	for _, pod := range pods {
		_, exists := cached.Get(cache.MetaObjectToName(pod))
		indexed := cached.ByIndex(pod.Namespace, "app", "db")
		if isWatched := pod.Namespace != "elsewhere"; exists != isWatched || len(indexed) == 1 != isWatched {
			t.Errorf("%s: found %t, and %d by index", pod.Namespace, exists, len(indexed))
		}
	}
	if _, exists := cached.Get(named("other")); exists {
		t.Error("a pod that doesn't exist is found")
	}
}
