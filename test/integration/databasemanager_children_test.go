//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// childResources are the types of children, volume claims among them.
var childResources = map[string]schema.GroupVersionResource{
	"NetworkPolicy":         {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	"ConfigMap":             corev1.SchemeGroupVersion.WithResource("configmaps"),
	"Deployment":            appsv1.SchemeGroupVersion.WithResource("deployments"),
	"PersistentVolumeClaim": corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	"PodDisruptionBudget":   {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"Secret":                corev1.SchemeGroupVersion.WithResource("secrets"),
	"Service":               corev1.SchemeGroupVersion.WithResource("services"),
	"StatefulSet":           appsv1.SchemeGroupVersion.WithResource("statefulsets"),
}

// durable asks for a volume.
func durable(spec *v1alpha1.DatabaseManagerSpec) {
	spec.Storage = &v1alpha1.StorageSpec{Size: resource.MustParse("1Gi")}
}

// several asks for three members.
func several(spec *v1alpha1.DatabaseManagerSpec) { spec.Replicas = new(int32(3)) }

// severalDurable asks for three members, each with a volume.
func severalDurable(spec *v1alpha1.DatabaseManagerSpec) {
	durable(spec)
	several(spec)
}

// withLimits asks for resources.
func withLimits(cpu, memory string) func(*v1alpha1.DatabaseManagerSpec) {
	return func(spec *v1alpha1.DatabaseManagerSpec) {
		spec.Resources = &v1alpha1.ResourceRequirements{Limits: &v1alpha1.ResourceAmounts{
			CPU: new(resource.MustParse(cpu)), Memory: new(resource.MustParse(memory)),
		}}
	}
}

// children returns the objects in a namespace that carry our label, by kind and
// name. The names of pods, ReplicaSets and the like aren't ours.
func children(t *testing.T, namespace string) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for kind, resource := range childResources {
		list, err := env.dynamic.Resource(resource).Namespace(namespace).List(t.Context(),
			metav1.ListOptions{LabelSelector: v1alpha1.LabelManagedBy + "=" + v1alpha1.ManagedByValue})
		if err != nil {
			t.Fatalf("list %s: %v", resource.Resource, err)
		}
		for i := range list.Items {
			found[kind+" "+list.Items[i].GetName()] = &list.Items[i]
		}
	}
	return found
}

// withoutHash replaces the hash at the end of a ConfigMap's name.
func withoutHash(child string) string {
	if before, _, isConfig := strings.Cut(child, "-config-"); isConfig {
		return before + "-config-*"
	}
	return child
}

func childNames(found map[string]*unstructured.Unstructured) []string {
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, withoutHash(name))
	}
	slices.Sort(names)
	return names
}

func TestADatabaseIsGivenItsChildrenAndOwnsThem(t *testing.T) {
	startOperator(t)
	for sentence, row := range map[string]struct {
		option   func(*v1alpha1.DatabaseManagerSpec)
		children []string
		retained []string
	}{
		"without storage everything goes with it": {
			func(*v1alpha1.DatabaseManagerSpec) {},
			[]string{"ConfigMap db-config-*", "ConfigMap db-live", "ConfigMap db-topology", "Deployment db", "NetworkPolicy db", "Secret db-admin", "Secret db-auth", "Service db", "Service db-members"},
			nil,
		},
		"with storage the volume and the Secrets that open it stay": {
			durable,
			[]string{"ConfigMap db-config-*", "ConfigMap db-live", "ConfigMap db-topology", "NetworkPolicy db", "PersistentVolumeClaim data-db-0", "Secret db-admin", "Secret db-auth", "Service db", "Service db-members", "StatefulSet db"},
			retainedChildren,
		},
		"of several members, the Service of the replicas and the disruption budget go with it": {
			severalDurable,
			[]string{"ConfigMap db-config-*", "ConfigMap db-live", "ConfigMap db-topology", "NetworkPolicy db", "PersistentVolumeClaim data-db-0", "PodDisruptionBudget db", "Secret db-admin", "Secret db-auth", "Service db", "Service db-members", "Service db-ro", "StatefulSet db"},
			retainedChildren,
		},
		"of several members without storage everything goes with it": {
			several,
			[]string{"ConfigMap db-config-*", "ConfigMap db-live", "ConfigMap db-topology", "NetworkPolicy db", "PodDisruptionBudget db", "Secret db-admin", "Secret db-auth", "Service db", "Service db-members", "Service db-ro", "StatefulSet db"},
			nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			database := newDatabase(t, namespace, "orders", "db", row.option)
			awaitUnscheduled(t, namespace, "orders")
			found := children(t, namespace)
			if got := childNames(found); !slices.Equal(got, row.children) {
				t.Errorf("got %v, want %v", got, row.children)
			}
			for name, child := range found {
				checkOwner(t, name, child, database.UID, slices.Contains(row.retained, name))
			}
		})
	}
}

// TestWhatOnlySeveralMembersHaveComesAndGoesWithThem changes the number of
// members there and back.
func TestWhatOnlySeveralMembersHaveComesAndGoesWithThem(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	one := childNames(children(t, namespace))
	pod := podUID(t, namespace)
	changeSpec(t, namespace, several)
	await(t, "the Service of the replicas and the disruption budget come", func(ctx context.Context) error {
		got := childNames(children(t, namespace))
		want := slices.Sorted(slices.Values(append(slices.Clone(one), "PodDisruptionBudget db", "Service db-ro")))
		if !slices.Equal(got, want) {
			return fmt.Errorf("there are %v, want %v", got, want)
		}
		return roleOfService(ctx, namespace, string(v1alpha1.MemberRolePrimary))
	})
	changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Replicas = nil })
	await(t, "they go", func(ctx context.Context) error {
		if got := childNames(children(t, namespace)); !slices.Equal(got, one) {
			return fmt.Errorf("there are %v, want %v", got, one)
		}
		return roleOfService(ctx, namespace, "")
	})
	awaitUnscheduled(t, namespace, "orders")
	if again := podUID(t, namespace); again != pod {
		t.Errorf("the pod is %s, and was %s", again, pod)
	}
}

// roleOfService is an error if the Service of the database asks for another role.
func roleOfService(ctx context.Context, namespace, role string) error {
	service, err := env.kube.CoreV1().Services(namespace).Get(ctx, "db", metav1.GetOptions{})
	if err == nil && service.Spec.Selector[v1alpha1.LabelRole] != role {
		err = fmt.Errorf("the Service selects %v, want the role %q", service.Spec.Selector, role)
	}
	return err
}

// checkOwner checks by what a child is known to be this database's.
func checkOwner(t *testing.T, name string, child metav1.Object, owner types.UID, isRetained bool) {
	t.Helper()
	controller := metav1.GetControllerOf(child)
	if !isRetained {
		if controller == nil || controller.UID != owner || controller.BlockOwnerDeletion == nil || !*controller.BlockOwnerDeletion {
			t.Errorf("%s has the controller %v, want the UID %s, blocking", name, controller, owner)
		}
		return
	}
	labels := child.GetLabels()
	if controller != nil || len(child.GetOwnerReferences()) > 0 {
		t.Errorf("%s has the owners %v, want none", name, child.GetOwnerReferences())
	}
	// A claim is given its data id with the first data.
	isNamed := labels[v1alpha1.LabelDataID] != "" || strings.HasPrefix(name, "PersistentVolumeClaim")
	if labels[v1alpha1.LabelOwnerUID] != string(owner) || !isNamed ||
		labels[v1alpha1.LabelEngine] != "redis" || labels[v1alpha1.LabelStem] != "db" {
		t.Errorf("%s has the labels %v, want owner-uid %s, a data id, engine and stem", name, labels, owner)
	}
}

// drift is one change that somebody makes to a child by hand.
type drift struct {
	kind, name string
	// patch is a strategic merge patch; for a Service a plain one, which
	// replaces lists as an editor does.
	patch string
	// isBack tells whether it was put right.
	isBack func(child *unstructured.Unstructured) bool
}

func hasLabel(key, value string) func(*unstructured.Unstructured) bool {
	return func(child *unstructured.Unstructured) bool { return child.GetLabels()[key] == value }
}

// has tells whether the value at a path is one.
func has(want any, path ...string) func(*unstructured.Unstructured) bool {
	return func(child *unstructured.Unstructured) bool {
		value, _, _ := unstructured.NestedFieldNoCopy(child.Object, path...)
		return fmt.Sprint(value) == fmt.Sprint(want)
	}
}

// firstOf tells whether a field of the only element of a list is one value.
func firstOf(want any, field string, path ...string) func(*unstructured.Unstructured) bool {
	return func(child *unstructured.Unstructured) bool {
		list, _, _ := unstructured.NestedSlice(child.Object, path...)
		if len(list) != 1 {
			return false
		}
		element, _ := list[0].(map[string]any)
		return fmt.Sprint(element[field]) == fmt.Sprint(want)
	}
}

func TestWhatIsOursIsPutBackWhenItIsChanged(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", withLimits("1", "1Gi"))
	awaitUnscheduled(t, namespace, "orders")
	for sentence, row := range map[string]drift{
		"the port of a Service":        {"Service", "db", `{"spec":{"ports":[{"name":"redis","port":7000}]}}`, firstOf(6379, "port", "spec", "ports")},
		"the type of a Service":        {"Service", "db", `{"spec":{"type":"NodePort"}}`, has("ClusterIP", "spec", "type")},
		"the selector of a Service":    {"Service", "db", `{"spec":{"selector":{"coolops.cn/stem":"other"}}}`, has("db", "spec", "selector", "coolops.cn/stem")},
		"the pods of a NetworkPolicy":  {"NetworkPolicy", "db", `{"spec":{"podSelector":{"matchLabels":{"coolops.cn/stem":"other"}}}}`, has("db", "spec", "podSelector", "matchLabels", "coolops.cn/stem")},
		"the members of a Deployment":  {"Deployment", "db", `{"spec":{"replicas":5}}`, has(1, "spec", "replicas")},
		"the strategy of a Deployment": {"Deployment", "db", `{"spec":{"strategy":{"type":"RollingUpdate"}}}`, has("Recreate", "spec", "strategy", "type")},
		"the image of a member":        {"Deployment", "db", `{"spec":{"template":{"spec":{"containers":[{"name":"database","image":"nginx"}]}}}}`, firstOf("redis:8.0", "image", "spec", "template", "spec", "containers")},
		"a label that it is known by":  {"Service", "db-members", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`, hasLabel(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)},
		"a label that it is found by":  {"Secret", "db-auth", `{"metadata":{"labels":{"coolops.cn/stem":"other"}}}`, hasLabel(v1alpha1.LabelStem, "db")},
		"a key of a Secret":            {"Secret", "db-auth", `{"data":{"host":"b3RoZXI="}}`, func(child *unstructured.Unstructured) bool { return !has("b3RoZXI=", "data", "host")(child) }},
		"the record of the last intent": {"Deployment", "db", `{"metadata":{"annotations":{"coolops.cn/intent-hash":"0"}}}`, func(child *unstructured.Unstructured) bool {
			return child.GetAnnotations()[v1alpha1.AnnotationIntentHash] != "0"
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := env.dynamic.Resource(childResources[row.kind]).Namespace(namespace)
			before, err := client.Get(t.Context(), row.name, metav1.GetOptions{})
			if err != nil {
				t.Fatalf("read %s: %v", row.name, err)
			}
			patchType := types.StrategicMergePatchType
			if row.kind == "Service" {
				patchType = types.MergePatchType
			}
			if _, err := client.Patch(t.Context(), row.name, patchType, []byte(row.patch), metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
				t.Fatalf("change %s: %v", row.name, err)
			}
			await(t, "put back", func(ctx context.Context) error {
				child, err := client.Get(ctx, row.name, metav1.GetOptions{})
				switch {
				case err != nil:
					return err
				case child.GetUID() != before.GetUID():
					return errors.New("it is another object")
				case !row.isBack(child):
					return fmt.Errorf("it is still changed: %v", child.Object)
				default:
					return nil
				}
			})
		})
	}
}

func TestAChildThatIsDeletedIsMadeAgain(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	password := secretPassword(t, namespace, "db-auth")
	pod := podUID(t, namespace)
	for name, child := range children(t, namespace) {
		kind, _, _ := strings.Cut(name, " ")
		if kind == "PersistentVolumeClaim" {
			continue
		}
		t.Run(kind+" "+withoutHash(child.GetName()), func(t *testing.T) {
			client := env.dynamic.Resource(childResources[kind]).Namespace(namespace)
			orphan := metav1.DeletePropagationOrphan
			if err := client.Delete(t.Context(), child.GetName(), metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
				t.Fatalf("delete it: %v", err)
			}
			await(t, "made again", func(ctx context.Context) error {
				again, err := client.Get(ctx, child.GetName(), metav1.GetOptions{})
				if err == nil && again.GetUID() == child.GetUID() {
					return errors.New("it hasn't gone yet")
				}
				return err
			})
		})
	}
	if again := secretPassword(t, namespace, "db-auth"); again != password {
		t.Error("the Secret came back with another password, which the engine doesn't know")
	}
	await(t, "the pod is taken over by the new workload", func(ctx context.Context) error {
		if uid := podUID(t, namespace); uid != pod {
			return fmt.Errorf("pod UID is %s, was %s", uid, pod)
		}
		return nil
	})
}

func TestWhatTheSpecNoLongerSaysIsRemovedAndWhatOthersAddedStays(t *testing.T) {
	for sentence, isDown := range map[string]bool{"while the operator runs": false, "while the operator is down": true} {
		t.Run(sentence, func(t *testing.T) {
			operator := startOperator(t)
			namespace := newNamespace(t)
			newDatabase(t, namespace, "orders", "db", withLimits("1", "1Gi"))
			awaitUnscheduled(t, namespace, "orders")
			deployments := env.kube.AppsV1().Deployments(namespace)
			added := `{"metadata":{"labels":{"team":"shop"},"annotations":{"note":"kept"}},"spec":{"template":{"spec":{"nodeSelector":{"disk":"ssd"}}}}}`
			if _, err := deployments.Patch(t.Context(), "db", types.StrategicMergePatchType, []byte(added), metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
				t.Fatalf("add to the Deployment: %v", err)
			}
			if isDown {
				operator.stop()
			}
			changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Resources.Limits.CPU = nil })
			if isDown {
				startOperator(t)
			}
			await(t, "the limit goes, the rest stays", func(ctx context.Context) error {
				deployment, err := deployments.Get(ctx, "db", metav1.GetOptions{})
				if err != nil {
					return err
				}
				pod := deployment.Spec.Template.Spec
				limits := pod.Containers[0].Resources.Limits
				if len(limits) != 1 || limits.Memory().String() != "1Gi" {
					return fmt.Errorf("limits are %v", limits)
				}
				if deployment.Labels["team"] != "shop" || deployment.Annotations["note"] != "kept" || pod.NodeSelector["disk"] != "ssd" {
					return fmt.Errorf("what others added is gone: %v %v %v", deployment.Labels, deployment.Annotations, pod.NodeSelector)
				}
				return nil
			})
		})
	}
}

func TestAMemberWithAVolumeIsReplacedWhenTheSpecChanges(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	before := podUID(t, namespace)
	oldConfig := children(t, namespace)
	changeSpec(t, namespace, withLimits("2", "512Mi"))
	await(t, "another pod with the new limits", func(ctx context.Context) error {
		pod, err := env.kube.CoreV1().Pods(namespace).Get(ctx, "db-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.UID == before || pod.Spec.Containers[0].Resources.Limits.Memory().String() != "512Mi" {
			return fmt.Errorf("pod %s has the limits %v", pod.UID, pod.Spec.Containers[0].Resources.Limits)
		}
		return nil
	})
	if got, want := childNames(children(t, namespace)), childNames(oldConfig); !slices.Equal(got, want) {
		t.Errorf("children are %v, were %v", got, want)
	}
}

func TestAtRestThereIsNoRequestAndARestartWritesNothing(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "orders-db", durable)
	newDatabase(t, namespace, "cache", "cache")
	newDatabase(t, namespace, "stock", "stock-db", severalDurable)
	awaitUnscheduled(t, namespace, "orders")
	awaitUnscheduled(t, namespace, "cache")
	awaitUnscheduled(t, namespace, "stock")
	operator.requests.awaitQuiet(t, time.Second)
	atRest := len(operator.requests.about(namespace, false))

	// The scheduler tries again meanwhile; nothing of that is ours to answer.
	operator.requests.awaitQuiet(t, 5*time.Second)
	if later := operator.requests.about(namespace, false); len(later) != atRest {
		t.Errorf("requests at rest: %v", later[atRest:])
	}
	gets := slices.DeleteFunc(operator.requests.about(namespace, false), func(line string) bool { return !strings.HasPrefix(line, "GET") })
	// Whether it exists is asked before the first child is made; and its claim is looked
	// at, of stock one, since it has one member until that takes writes. More than a
	// second may pass meanwhile, and then it is asked again.
	slices.Sort(gets)
	const distinct, most = 3 + 2, 13
	if len(gets) > most || len(slices.Compact(slices.Clone(gets))) != distinct {
		t.Errorf("got %v, want %d different ones, and %d at most", gets, distinct, most)
	}

	operator.stop()
	before := versions(t, namespace)
	restarted := startOperator(t)
	restarted.requests.awaitQuiet(t, 2*time.Second)
	if writes := restarted.requests.about(namespace, true); len(writes) > 0 {
		t.Errorf("writes at a restart: %v", writes)
	}
	if after := versions(t, namespace); !slices.Equal(before, after) {
		t.Errorf("versions changed at a restart from %v to %v", before, after)
	}
}

// versions lists the children with their resourceVersions, without those whose
// status others write.
func versions(t *testing.T, namespace string) []string {
	t.Helper()
	var lines []string
	for name, child := range children(t, namespace) {
		lines = append(lines, fmt.Sprintf("%s at %s", name, child.GetResourceVersion()))
	}
	slices.Sort(lines)
	return lines
}

func secretPassword(t *testing.T, namespace, name string) string {
	t.Helper()
	secret, err := env.kube.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the Secret %s: %v", name, err)
	}
	return string(secret.Data["password"])
}

// podUID returns the UID of the pod db-0; empty if there is none.
func podUID(t *testing.T, namespace string) types.UID {
	t.Helper()
	pod, err := env.kube.CoreV1().Pods(namespace).Get(t.Context(), "db-0", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatalf("read the pod: %v", err)
	}
	return pod.UID
}
