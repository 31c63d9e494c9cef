//go:build examples

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// These tests share the one CustomResourceDefinition, and so run one after the other.

// TestAStudentIsStoredAndNothingElseHappens takes the tour, and looks at the
// API server meanwhile.
func TestAStudentIsStoredAndNothingElseHappens(t *testing.T) {
	namespace := newNamespace(t)
	tour := start(t, kubeconfig, namespace, "--seconds=3")
	tour.awaitText(t, "refused: ")
	before := storedStudent(t, namespace)
	tour.awaitText(t, "nothing happened in 3 seconds: zhang-san has version "+before.GetResourceVersion()+"\n")
	tour.awaitExit(t, 0)
	tour.mustPrint(t, "the API server knows Students, and has 0", "created zhang-san: 张三 of Peking University, version "+before.GetResourceVersion(),
		`refused: Student.coolops.io "nobody" is invalid: spec.name: Invalid value`, "nothing happened in 3 seconds", "deleted zhang-san")

	if managers := before.GetManagedFields(); len(managers) != 1 {
		t.Errorf("it was written by %v, want by the program alone", managers)
	}
	if status, isThere := before.Object["status"]; isThere {
		t.Errorf("it has the status %v", status)
	}
	if list, err := studentsIn(namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("%v is left (%v)", list, err)
	}
	if pods, err := kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 0 {
		t.Errorf("there are pods: %v (%v)", pods, err)
	}
	if events, err := kube.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(events.Items) != 0 {
		t.Errorf("there are events: %v (%v)", events, err)
	}
}

func storedStudent(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	stored, err := studentsIn(namespace).Get(t.Context(), "zhang-san", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func mustBeGone(t *testing.T, namespace string) {
	t.Helper()
	if _, err := studentsIn(namespace).Get(t.Context(), "zhang-san", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Student is still there (%v)", err)
	}
}

func TestSomebodyWhoActsIsSeen(t *testing.T) {
	namespace := newNamespace(t)
	tour := start(t, kubeconfig, namespace, "--seconds=60")
	tour.awaitText(t, "refused: ")
	patch := []byte(`{"spec":{"school":"Tsinghua University"}}`)
	if _, err := studentsIn(namespace).Patch(t.Context(), "zhang-san", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	tour.awaitExit(t, 1)
	tour.mustPrint(t, "deleted zhang-san", "somebody acts on Students: MODIFIED zhang-san")
	mustBeGone(t, namespace)
}

func TestASignalEndsTheTourAndNothingIsLeft(t *testing.T) {
	namespace := newNamespace(t)
	tour := start(t, kubeconfig, namespace, "--seconds=60")
	tour.awaitText(t, "refused: ")
	if err := tour.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	tour.awaitExit(t, 0)
	tour.mustPrint(t, "deleted zhang-san")
	mustBeGone(t, namespace)
}

func TestAMissingCRDIsWaitedFor(t *testing.T) {
	namespace := newNamespace(t)
	if err := deleteCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := applyCRD(context.Background(), ourCRD); err != nil { // the test's own context is done
			t.Error(err)
		}
	})
	tour := start(t, kubeconfig, namespace, "--seconds=1")
	tour.awaitText(t, "the API server doesn't know Students: kubectl apply -f examples/06-student-crd/crd.yaml; trying again, with growing pauses\n")
	if err := applyCRD(t.Context(), ourCRD); err != nil {
		t.Fatal(err)
	}
	tour.awaitExit(t, 0)
	tour.mustPrint(t, "created zhang-san", "refused: ", "nothing happened", "deleted zhang-san")
	if said := strings.Count(tour.printed(), "doesn't know Students"); said != 1 {
		t.Errorf("it said so %d times", said)
	}
}

// TestAnAPIServerThatGoesAwayIsWaitedFor cuts the connection before the start, and
// again when the program watches, or is about to.
func TestAnAPIServerThatGoesAwayIsWaitedFor(t *testing.T) {
	namespace, way := newNamespace(t), newLine(t)
	way.cut()
	tour := start(t, way.kubeconfig, namespace, "--seconds=3")
	tour.awaitText(t, "no answer, is the kubeconfig's server right and running?")
	way.mend(t)
	tour.awaitText(t, "refused: ")
	before := len(tour.printed())
	way.cut()
	await(t, "it can't connect, and says so", func(context.Context) bool {
		return strings.Contains(tour.printed()[before:], "connection refused; trying again")
	})
	way.mend(t)
	tour.awaitExit(t, 0)
	tour.mustPrint(t, "connection refused", "created zhang-san", "connection refused", "nothing happened in 3 seconds", "deleted zhang-san")
	mustBeGone(t, namespace)
}

// TestAWatchThatEndsEarlyProvesNothing makes an API server up whose first watch
// ends at once, as a connection does that is cut.
func TestAWatchThatEndsEarlyProvesNothing(t *testing.T) {
	const stored = `{"apiVersion":"coolops.io/v1","kind":"Student","metadata":{"name":"zhang-san","uid":"u","resourceVersion":"7"},"spec":{"name":"A"}}`
	var watches atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch query := r.URL.Query(); {
		case query.Get("watch") == "true":
			if version := query.Get("resourceVersion"); version != "7" {
				t.Errorf("it watches from version %q", version)
			}
			w.WriteHeader(http.StatusOK)
			if watches.Add(1) > 1 {
				<-time.After(time.Second) // the time that was asked for
			}
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/students"):
			_, _ = io.WriteString(w, `{"apiVersion":"coolops.io/v1","kind":"StudentList","metadata":{},"items":[]}`)
		default:
			_, _ = io.WriteString(w, stored)
		}
	}))
	t.Cleanup(server.Close)
	tour := start(t, writeKubeconfig(t, func(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		*cluster, *user = clientcmdapi.Cluster{Server: server.URL}, clientcmdapi.AuthInfo{}
	}), "default", "--seconds=1")
	tour.awaitExit(t, 0)
	tour.mustPrint(t, "the watch broke off: unexpected EOF; trying again", "nothing happened in 1 seconds: zhang-san has version 7", "deleted zhang-san")
	if got := watches.Load(); got != 2 {
		t.Errorf("it watched %d times, want 2", got)
	}
}

// TestWhatCantHealIsSaid in one line, with what to do.
func TestWhatCantHealIsSaid(t *testing.T) {
	namespace := newNamespace(t)
	for sentence, row := range map[string]struct {
		change    func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		namespace string
		wants     []string
	}{
		"a wrong token": {
			change: func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
				*user = clientcmdapi.AuthInfo{Token: "wrong"}
			},
			wants: []string{"Unauthorized: renew the kubeconfig's credentials"},
		},
		"an unknown CA": {
			change: func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
				cluster.CertificateAuthorityData, cluster.CertificateAuthority = nil, ""
			},
			wants: []string{"x509: certificate signed by unknown authority: correct the kubeconfig's certificate-authority"},
		},
		"a user without rights": {
			change: func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Impersonate = "nobody" },
			wants:  []string{`User "nobody" cannot list resource "students"`, "give it a Role that may create, list, watch, get and delete students"},
		},
		"a CA file that there isn't": {
			change: func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
				cluster.CertificateAuthorityData, cluster.CertificateAuthority = nil, "/nonexistent/ca.crt"
			},
			wants: []string{"/nonexistent/ca.crt", "no such file"},
		},
		"a namespace that there isn't": {namespace: "nonexistent", wants: []string{`namespaces "nonexistent" not found`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if row.change == nil {
				row.change = func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}
			}
			if row.namespace == "" {
				row.namespace = namespace
			}
			tour := start(t, writeKubeconfig(t, row.change), row.namespace)
			tour.awaitExit(t, 1)
			lines := strings.Split(strings.TrimSpace(tour.printed()), "\n")
			for _, want := range row.wants {
				if last := lines[len(lines)-1]; !strings.Contains(last, want) {
					t.Errorf("its last line is %q, want %q in it", last, want)
				}
			}
			if len(lines) > 2 {
				t.Errorf("it printed %d lines", len(lines))
			}
		})
	}
}

func TestAStudentOfAnotherRunIsKept(t *testing.T) {
	namespace := newNamespace(t)
	mine := student("zhang-san", map[string]any{"name": "Zhang San"})
	if _, err := studentsIn(namespace).Create(t.Context(), mine, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tour := start(t, kubeconfig, namespace)
	tour.awaitExit(t, 1)
	tour.mustPrint(t, `students.coolops.io "zhang-san" already exists, left by a run that was killed: kubectl delete student zhang-san`)
	storedStudent(t, namespace)
}

func TestTheSchemaHoldsItsBounds(t *testing.T) {
	for sentence, row := range map[string]struct {
		spec    map[string]any
		refused string // part of the message; "" for accepted
	}{
		"a name is enough":                      {spec: map[string]any{"name": "A"}},
		"64 characters fit a name":              {spec: map[string]any{"name": strings.Repeat("张", 64)}},
		"65 don't":                              {spec: map[string]any{"name": strings.Repeat("张", 65)}, refused: "spec.name: Too long"},
		"an empty name is none":                 {spec: map[string]any{"name": ""}, refused: "spec.name in body should be at least 1 chars long"},
		"a name is required":                    {spec: map[string]any{"school": "A"}, refused: "spec.name: Required value"},
		"a spec is required":                    {refused: "spec: Required value"},
		"128 characters fit a school":           {spec: map[string]any{"name": "A", "school": strings.Repeat("校", 128)}},
		"129 don't":                             {spec: map[string]any{"name": "A", "school": strings.Repeat("校", 129)}, refused: "spec.school: Too long"},
		"a number is no name":                   {spec: map[string]any{"name": int64(7)}, refused: "spec.name: Invalid value"},
		"a field that there isn't, is an error": {spec: map[string]any{"name": "A", "age": int64(7)}, refused: `unknown field "spec.age"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := studentsIn("default").Create(t.Context(), student("bounds", row.spec),
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			if row.refused == "" && err != nil {
				t.Errorf("it is refused: %v", err)
			}
			if row.refused != "" && (err == nil || !strings.Contains(err.Error(), row.refused)) {
				t.Errorf("got %v, want an error with %q", err, row.refused)
			}
		})
	}
}

// TestTheArticlesManifestWorks alone, under ours and over it, and has the same
// shape: what reads Students of one reads those of the other.
func TestTheArticlesManifestWorks(t *testing.T) {
	ours := servedSpec(t)
	if err := deleteCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := applyCRD(context.Background(), ourCRD); err != nil { // the test's own context is done
			t.Error(err)
		}
	})
	if err := applyCRD(t.Context(), articlesCRD); err != nil {
		t.Fatal(err)
	}
	articles := servedSpec(t)
	for _, path := range []string{"group", "scope", "names"} {
		if !reflect.DeepEqual(ours[path], articles[path]) {
			t.Errorf("%s is %v, in the articles %v", path, ours[path], articles[path])
		}
	}
	our, theirs := onlyVersion(t, ours), onlyVersion(t, articles)
	for _, path := range []string{"name", "served", "storage"} {
		if our[path] != theirs[path] {
			t.Errorf("the version's %s is %v, in the articles %v", path, our[path], theirs[path])
		}
	}
	if our, theirs := fieldTypes(our), fieldTypes(theirs); !reflect.DeepEqual(our, theirs) || len(our) != 2 {
		t.Errorf("the fields of the spec are %v, in the articles %v", our, theirs)
	}

	namespace := newNamespace(t)
	tour := start(t, kubeconfig, namespace, "--seconds=1")
	tour.awaitExit(t, 0)
	tour.mustPrint(t, "created zhang-san", "not refused: this CustomResourceDefinition has no bounds", "nothing happened", "deleted zhang-san")
	for _, path := range []string{ourCRD, articlesCRD, ourCRD} { // over each other
		if err := applyCRD(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
}

// servedSpec returns the spec of the CustomResourceDefinition, with all defaults.
func servedSpec(t *testing.T) map[string]any {
	t.Helper()
	crd, err := crds().Get(t.Context(), "students.coolops.io", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec, _, err := unstructured.NestedMap(crd.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func onlyVersion(t *testing.T, spec map[string]any) map[string]any {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(spec, "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("the versions are %v (%v), want one", versions, err)
	}
	version, _ := versions[0].(map[string]any)
	return version
}

// fieldTypes returns the type of each field of a Student's spec.
func fieldTypes(version map[string]any) map[string]any {
	fields, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	byName := map[string]any{}
	for name, field := range fields {
		description, _ := field.(map[string]any)
		byName[name] = description["type"]
	}
	return byName
}

func TestTheShortNameIsServed(t *testing.T) {
	resources, err := kube.Discovery().ServerResourcesForGroupVersion("coolops.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	if len(resources.APIResources) != 1 || !slices.Equal(resources.APIResources[0].ShortNames, []string{"stu"}) {
		t.Errorf("served are %v, want students with the short name stu alone", resources.APIResources)
	}
}
