//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/internal/app"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// option changes a spec.
type option = func(*v1alpha1.DatabaseManagerSpec)

// withKeys has one key in each of the maps of a spec.
func withKeys(key string) option {
	return func(spec *v1alpha1.DatabaseManagerSpec) {
		spec.NodeSelector = map[string]v1alpha1.LabelValue{key: "yes"}
		spec.PodLabels = map[string]v1alpha1.LabelValue{key: "yes"}
		spec.PodAnnotations = map[string]v1alpha1.AnnotationValue{key: "yes"}
		withServiceAnnotation(key)(spec)
	}
}

// withEntries has an entry of each of the names in each of the lists of a spec.
func withEntries(names ...string) option {
	return func(spec *v1alpha1.DatabaseManagerSpec) {
		spec.Tolerations, spec.ImagePullSecrets, spec.TopologySpreadConstraints = nil, nil, nil
		for _, name := range names {
			spec.Tolerations = append(spec.Tolerations, v1alpha1.Toleration{Key: name, Effect: v1alpha1.TaintEffectNoExecute, TolerationSeconds: new(int64(0))})
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, v1alpha1.ImagePullSecret{Name: name})
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints,
				v1alpha1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: name, WhenUnsatisfiable: v1alpha1.ScheduleAnyway})
		}
	}
}

func withServiceAnnotation(key string) option {
	return func(spec *v1alpha1.DatabaseManagerSpec) {
		spec.Service = &v1alpha1.ServiceSpec{Annotations: map[string]v1alpha1.AnnotationValue{key: "yes"}}
	}
}

func withServiceType(of v1alpha1.ServiceType) option {
	return func(spec *v1alpha1.DatabaseManagerSpec) { spec.Service = &v1alpha1.ServiceSpec{Type: of} }
}

// withPlacement sets all that a spec can say about where members run.
func withPlacement(spec *v1alpha1.DatabaseManagerSpec) {
	withKeys("a")(spec)
	withEntries("a")(spec)
	spec.PriorityClassName = "system-cluster-critical"
}

// withBalancer asks for a load balancer as its provider wants it.
func withBalancer(spec *v1alpha1.DatabaseManagerSpec) {
	spec.Service = &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceTypeLoadBalancer, Annotations: map[string]v1alpha1.AnnotationValue{"a": "yes"}}
}

// withoutPlacement takes all of that out, and what is said about the Service.
func withoutPlacement(spec *v1alpha1.DatabaseManagerSpec) {
	spec.Service, spec.NodeSelector, spec.Tolerations, spec.TopologySpreadConstraints = nil, nil, nil, nil
	spec.PriorityClassName, spec.ImagePullSecrets, spec.PodLabels, spec.PodAnnotations = "", nil, nil, nil
}

// serviceText is what the Service db says, but for what differs between two
// Services that ask for the same: addresses, and ports that were given out.
func serviceText(t *testing.T, namespace string) string {
	t.Helper()
	service, err := env.kube.CoreV1().Services(namespace).Get(t.Context(), "db", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	annotations := maps.Clone(service.Annotations)
	delete(annotations, v1alpha1.AnnotationIntentHash)
	service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil
	for i := range service.Spec.Ports {
		service.Spec.Ports[i].NodePort = min(service.Spec.Ports[i].NodePort, 1)
	}
	return textOf(t, []any{annotations, service.Spec})
}

// TestAServiceKeepsWhatOthersAddedAndItsAddress changes its type and its
// annotations, beside those of somebody else.
func TestAServiceKeepsWhatOthersAddedAndItsAddress(t *testing.T) {
	startOperator(t)
	for when, first := range map[string]option{"set later": withoutPlacement, "set at its creation": withServiceAnnotation("key1")} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			newDatabase(t, namespace, "orders", "db", first)
			awaitObserved(t, namespace)
			services := env.kube.CoreV1().Services(namespace)
			patch := []byte(`{"metadata":{"annotations":{"example.com/foreign":"kept"},"labels":{"foreign":"kept"}}}`)
			made, err := services.Patch(t.Context(), "db", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				change option
				kind   corev1.ServiceType
				keys   []string
			}{
				{withServiceAnnotation("key1"), corev1.ServiceTypeClusterIP, []string{"key1"}},
				{withServiceAnnotation("key2"), corev1.ServiceTypeClusterIP, []string{"key2"}},
				{withServiceType(v1alpha1.ServiceTypeNodePort), corev1.ServiceTypeNodePort, nil},
				{withServiceType(v1alpha1.ServiceTypeLoadBalancer), corev1.ServiceTypeLoadBalancer, nil},
				{withServiceType(v1alpha1.ServiceTypeClusterIP), corev1.ServiceTypeClusterIP, nil},
				{withServiceType(v1alpha1.ServiceTypeNodePort), corev1.ServiceTypeNodePort, nil},
				{withoutPlacement, corev1.ServiceTypeClusterIP, nil},
			} {
				changeSpec(t, namespace, step.change)
				want := append([]string{v1alpha1.AnnotationIntentHash, "example.com/foreign"}, step.keys...)
				await(t, fmt.Sprintf("a Service of the type %s with the keys %v", step.kind, want), func(ctx context.Context) error {
					service, err := services.Get(ctx, "db", metav1.GetOptions{})
					if err != nil {
						return err
					}
					return checkService(service, made, step.kind, want)
				})
			}
		})
	}
}

// checkService holds a Service to the one that was made, and to its type.
func checkService(service, made *corev1.Service, kind corev1.ServiceType, keys []string) error {
	spec := service.Spec
	hasPort := len(spec.Ports) == 1 && spec.Ports[0].NodePort != 0
	isOutside := kind != corev1.ServiceTypeClusterIP
	switch {
	case service.UID != made.UID || spec.ClusterIP != made.Spec.ClusterIP || service.Labels["foreign"] != "kept":
		return fmt.Errorf("it is another: %s at %s with %v, and was %s at %s", service.UID, spec.ClusterIP, service.Labels, made.UID, made.Spec.ClusterIP)
	case !slices.Equal(slices.Sorted(maps.Keys(service.Annotations)), keys):
		return fmt.Errorf("its annotations are %v", service.Annotations)
	case spec.Type != kind || len(spec.Ports) != 1 || hasPort != isOutside:
		return fmt.Errorf("it is a %s with the ports %v", spec.Type, spec.Ports)
	case !isOutside && (spec.ExternalTrafficPolicy != "" || spec.AllocateLoadBalancerNodePorts != nil || spec.HealthCheckNodePort != 0):
		return fmt.Errorf("it keeps what belongs to another type: %+v", spec)
	}
	return nil
}

// TestFlagsCountForNewDatabasesOnly runs operators with other flags, one after
// the other, on databases that the first has made.
func TestFlagsCountForNewDatabasesOnly(t *testing.T) {
	toleration := func(key string) []v1alpha1.Toleration {
		return []v1alpha1.Toleration{{Key: key, Operator: v1alpha1.TolerationOperatorExists, Effect: v1alpha1.TaintEffectNoSchedule}}
	}
	first := startOperatorWith(t, app.Defaults{
		Registry: "first.example", ImagePullSecrets: []string{"first"}, StorageClass: "first", Tolerations: toleration("first"),
	}, nil)
	namespace, other := newNamespace(t), newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable)
	newDatabase(t, namespace, "cache", "cache")
	awaitUnscheduled(t, namespace, "orders")
	awaitUnscheduled(t, namespace, "cache")
	expectDefaults(t, namespace, "first", "redis:8.0")
	first.requests.awaitQuiet(t, time.Second)
	first.stop()
	before, pod := versions(t, namespace), podUID(t, namespace)

	second := startOperatorWith(t, app.Defaults{Registry: "second.example", ImagePullSecrets: []string{"second"}, StorageClass: "second", Tolerations: toleration("second")}, nil)
	newDatabase(t, other, "orders", "db", durable)
	awaitUnscheduled(t, other, "orders")
	expectDefaults(t, other, "second", "redis:8.0")
	second.requests.awaitQuiet(t, time.Second)
	if writes := second.requests.about(namespace, true); len(writes) > 0 {
		t.Errorf("other flags brought about %v", writes)
	}
	if after := versions(t, namespace); !slices.Equal(after, before) || podUID(t, namespace) != pod {
		t.Errorf("the children are %v, and were %v", after, before)
	}

	changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Version = "7.0" })
	await(t, "the change is carried out", func(context.Context) error { return imageIs(t, namespace, "first.example/redis:7.0") })
	expectDefaults(t, namespace, "first", "redis:7.0")
	if err := env.kube.AppsV1().StatefulSets(namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "a StatefulSet that is made anew", func(context.Context) error { return imageIs(t, namespace, "first.example/redis:7.0") })
	expectDefaults(t, namespace, "first", "redis:7.0")
}

func imageIs(t *testing.T, namespace, want string) error {
	t.Helper()
	workload, err := env.kube.AppsV1().StatefulSets(namespace).Get(t.Context(), "db", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got := workload.Spec.Template.Spec.Containers[0].Image; got != want || workload.DeletionTimestamp != nil {
		return fmt.Errorf("the image is %s", got)
	}
	return nil
}

// expectDefaults looks for the name that each default of an operator has in it.
func expectDefaults(t *testing.T, namespace, name, image string) {
	t.Helper()
	workload, err := env.kube.AppsV1().StatefulSets(namespace).Get(t.Context(), "db", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod, class := workload.Spec.Template.Spec, workload.Spec.VolumeClaimTemplates[0].Spec.StorageClassName
	if pod.Containers[0].Image != name+".example/"+image {
		t.Errorf("the image is %s", pod.Containers[0].Image)
	}
	if class == nil || *class != name || len(pod.Tolerations) != 1 || pod.Tolerations[0].Key != name || len(pod.ImagePullSecrets) != 1 || pod.ImagePullSecrets[0].Name != name {
		t.Errorf("the class is %v, tolerations are %v, Secrets %v; want %s of each", class, pod.Tolerations, pod.ImagePullSecrets, name)
	}
}

// TestAKeyOfOursInAnOldSpecIsToldByName is about what an older schema let in.
func TestAKeyOfOursInAnOldSpecIsToldByName(t *testing.T) {
	namespace := newNamespace(t)
	t.Cleanup(func() { installDatabaseCRD(t, func(map[string]any) {}) })
	installDatabaseCRD(t, func(spec map[string]any) {
		clear(spec)
		spec["type"], spec["x-kubernetes-preserve-unknown-fields"] = "object", true
	})
	await(t, "store it", func(ctx context.Context) error {
		database := database(t, "orders", withField(`podLabels: {coolops.cn/stem: other}`))
		_, err := env.dynamic.Resource(databaseResource).Namespace(namespace).Create(ctx, database, metav1.CreateOptions{})
		return err
	})
	installDatabaseCRD(t, func(map[string]any) {})
	startOperator(t)
	condition := awaitReady(t, namespace, "orders", v1alpha1.ReasonInvalidSpec)
	if !strings.Contains(condition.Message, `spec.podLabels has the key "coolops.cn/stem"`) {
		t.Errorf("the message is %s", condition.Message)
	}
	if found := children(t, namespace); len(found) > 0 {
		t.Errorf("children were made: %v", childNames(found))
	}
}
