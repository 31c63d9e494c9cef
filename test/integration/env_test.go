//go:build integration

// SPDX-License-Identifier: Apache-2.0

// Package integration tests what only an API server can show: validation,
// subresources, server-side apply, resourceVersions and UID preconditions. It
// needs no node. TEST_KUBECONFIG names the kubeconfig of a cluster that may be
// written to as one pleases; make test-integration starts one, and sets it.
package integration

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
	"coolops.cn/database-manager/test/kube"
)

// fieldManager owns what the tests themselves apply.
const fieldManager = "integration-test"

// update renews the golden files instead of comparing with them.
var update = flag.Bool("update", false, "write the golden files in testdata anew")

// env is the API server under test; TestMain fills it before any test runs.
var env environment

// environment is an API server that has our CRDs, and clients of it.
type environment struct {
	config    *rest.Config
	kube      kubernetes.Interface
	databases versioned.Interface
	dynamic   dynamic.Interface
}

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if env, err = connect(context.Background(), os.Getenv("TEST_KUBECONFIG")); err != nil {
		fmt.Fprintln(os.Stderr, "integration tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// connect makes the clients, and installs the CRDs of this checkout.
func connect(ctx context.Context, kubeconfig string) (environment, error) {
	if kubeconfig == "" {
		return environment{}, errors.New("TEST_KUBECONFIG is not set: run make test-integration, or set it to the kubeconfig of a cluster that may be written to")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return environment{}, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1                           // the API server has fairness of its own
	config.WarningHandler = rest.NoWarnings{} // what is refused is looked at; warnings would only clutter the output
	e := environment{config: config}
	if e.kube, err = kubernetes.NewForConfig(config); err != nil {
		return environment{}, fmt.Errorf("make a client: %w", err)
	}
	if e.databases, err = versioned.NewForConfig(config); err != nil {
		return environment{}, fmt.Errorf("make a client: %w", err)
	}
	if e.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return environment{}, fmt.Errorf("make a client: %w", err)
	}
	crds, err := readManifests(filepath.Join(repository, "config", "crds.yaml"))
	if err != nil {
		return environment{}, err
	}
	for _, crd := range crds {
		if err := e.installCRD(ctx, crd); err != nil {
			return environment{}, err
		}
	}
	return e, nil
}

// repository is the path of the repository's root, as seen from this package.
var repository = filepath.Join("..", "..")

// crdResource is where CustomResourceDefinitions are.
var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// installCRD applies a CustomResourceDefinition, and waits until it is served.
func (e environment) installCRD(ctx context.Context, crd *unstructured.Unstructured) error {
	client := e.dynamic.Resource(crdResource)
	if _, err := client.Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("apply the CustomResourceDefinition %s: %w", crd.GetName(), err)
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		stored, err := client.Get(ctx, crd.GetName(), metav1.GetOptions{})
		return err == nil && hasTrueCondition(stored, "Established"), err
	})
	if err != nil {
		return fmt.Errorf("wait until the CustomResourceDefinition %s is established: %w", crd.GetName(), err)
	}
	return nil
}

func hasTrueCondition(object *unstructured.Unstructured, conditionType string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] == conditionType && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// newNamespace makes a namespace for one test, which goes with it.
func newNamespace(t *testing.T) string {
	t.Helper()
	return kube.NewNamespace(t, env.kube, "test-", nil)
}

// readManifests reads the objects of a YAML file, in order.
func readManifests(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("read an object of %s: %w", path, err)
		case len(object.Object) > 0: // a comment between two separators is none
			objects = append(objects, object)
		}
	}
}
