// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"coolops.cn/database-manager/localcluster/internal/node"
	"coolops.cn/database-manager/localcluster/internal/sizedvolume"
	"coolops.cn/database-manager/localcluster/internal/volumes"
)

// parse reads manifests as the API server does, refusing unknown fields.
func parse(t *testing.T, manifests []byte) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var parsed []runtime.Object
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return parsed
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		parsed = append(parsed, object)
	}
}

// all returns the objects of a type, in their order.
func all[T runtime.Object](t *testing.T, manifests []byte) []T {
	t.Helper()
	var found []T
	for _, object := range parse(t, manifests) {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// only returns the one object of its type, of a cluster with nodes.
func only[T runtime.Object](t *testing.T) T {
	t.Helper()
	found := all[T](t, ForNodes())
	if len(found) != 1 {
		t.Fatalf("there are %d of %T", len(found), *new(T))
	}
	return found[0]
}

func TestStorageClassesAreServed(t *testing.T) {
	const isDefault = "storageclass.kubernetes.io/is-default-class"
	classes := all[*storagev1.StorageClass](t, ForNodes())
	if len(classes) != 2 {
		t.Fatalf("there are %d classes", len(classes))
	}
	standard, sized := classes[0], classes[1]
	if standard.Name != "standard" || standard.Provisioner != volumes.Name || standard.AllowVolumeExpansion != nil || standard.Annotations[isDefault] != "true" {
		t.Errorf("the default one is %+v", standard)
	}
	if sized.Name != "sized" || sized.Provisioner != sizedvolume.Name || !*sized.AllowVolumeExpansion || sized.Annotations[isDefault] != "" {
		t.Errorf("the one whose volumes have a size is %+v", sized)
	}
	for _, class := range classes {
		if class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
			t.Errorf("%s doesn't wait for the first consumer: a local volume needs a node", class.Name)
		}
	}
}

func TestDNSIsWhereKubeletsPointTo(t *testing.T) {
	service := only[*corev1.Service](t)
	if service.Spec.ClusterIP != node.DNSAddress {
		t.Errorf("the Service has %s, and kubelets give pods %s", service.Spec.ClusterIP, node.DNSAddress)
	}
	if policy := service.Spec.InternalTrafficPolicy; policy == nil || *policy != corev1.ServiceInternalTrafficPolicyLocal {
		t.Error("a node that is lost would take a part of the others' questions with it")
	}
	if ip := net.ParseIP(node.DNSAddress); ip == nil {
		t.Errorf("%q is no address", node.DNSAddress)
	}
	pods := only[*appsv1.DaemonSet](t).Spec.Template
	for key, value := range service.Spec.Selector {
		if pods.Labels[key] != value {
			t.Errorf("the Service selects %s=%s, and pods have %v", key, value, pods.Labels)
		}
	}
}

func TestDNSRunsTheImageThatIsImported(t *testing.T) {
	container := only[*appsv1.DaemonSet](t).Spec.Template.Spec.Containers[0]
	if container.Image != CoreDNSImage {
		t.Errorf("image is %q, imported is %q", container.Image, CoreDNSImage)
	}
	if container.ImagePullPolicy != corev1.PullNever {
		t.Error("it would be pulled")
	}
	if only[*corev1.ConfigMap](t).Data["Corefile"] == "" {
		t.Error("there is no Corefile")
	}
}

func TestDNSRunsOnRealNodesOnly(t *testing.T) {
	required := only[*appsv1.DaemonSet](t).Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	want := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: FakeNodeKey, Operator: corev1.NodeSelectorOpDoesNotExist}}}}
	if !reflect.DeepEqual(required.NodeSelectorTerms, want) {
		t.Errorf("it runs on nodes with %+v", required.NodeSelectorTerms)
	}
}

func TestFakeNodesHaveWhatTheyNeed(t *testing.T) {
	for sentence, row := range map[string]struct {
		alone                  bool
		classes, roles, grants int
	}{
		"alone there are volumes":       {true, 1, 0, 1},
		"beside real ones, leases, too": {false, 0, 1, 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			manifests := ForFake(row.alone)
			if classes := all[*storagev1.StorageClass](t, manifests); len(classes) != row.classes {
				t.Errorf("there are %d storage classes", len(classes))
			}
			if roles := all[*rbacv1.Role](t, manifests); len(roles) != row.roles {
				t.Errorf("there are %d roles", len(roles))
			}
			var subjects []rbacv1.Subject
			for _, binding := range all[*rbacv1.ClusterRoleBinding](t, manifests) {
				subjects = append(subjects, binding.Subjects...)
			}
			for _, binding := range all[*rbacv1.RoleBinding](t, manifests) {
				subjects = append(subjects, binding.Subjects...)
			}
			if len(subjects) != row.grants {
				t.Errorf("rights are given to %+v", subjects)
			}
			for _, subject := range subjects {
				if subject.Kind != rbacv1.UserKind || subject.Name != KwokUser {
					t.Errorf("rights are given to %+v", subject)
				}
			}
		})
	}
}
