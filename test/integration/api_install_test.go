//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// TestInstallManifestIsAccepted applies install.yaml strictly. All but the CRDs
// and the namespace, which the rest is in, are dry runs.
func TestInstallManifestIsAccepted(t *testing.T) {
	objects, err := readManifests(filepath.Join(repository, "config", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(env.kube.Discovery())
	if err != nil {
		t.Fatalf("ask for the API's resources: %v", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetKind())
		options := metav1.PatchOptions{FieldManager: fieldManager, Force: new(true), FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		if object.GetKind() == "Namespace" {
			options.DryRun = nil
		}
		if err := apply(t.Context(), mapper, object, options); err != nil {
			t.Errorf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	want := []string{"CustomResourceDefinition", "CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ClusterRole", "ClusterRole", "Deployment"}
	if !slices.Equal(kinds, want) {
		t.Errorf("got the objects %v, want %v", kinds, want)
	}
}

// apply applies any object. The options of a patch are used, since those of an
// apply have no field validation.
func apply(ctx context.Context, mapper meta.RESTMapper, object *unstructured.Unstructured, options metav1.PatchOptions) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = env.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = env.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = client.Patch(ctx, object.GetName(), types.ApplyPatchType, body, options)
	return err
}
