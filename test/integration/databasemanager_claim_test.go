//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// newSettledDatabase makes a database with a volume, has its topology say what it
// says once a member has answered, and returns the claim as the operator then
// marks it.
func newSettledDatabase(t *testing.T, namespace string) *corev1.PersistentVolumeClaim {
	t.Helper()
	newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	claims := env.kube.CoreV1().PersistentVolumeClaims(namespace)
	claim, err := claims.Get(t.Context(), "data-db-0", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the claim: %v", err)
	}
	topology := fmt.Sprintf(`{"data": {"state": "initialized", "primary": "db-0", "holder": %q}}`, claim.UID)
	if _, err := env.kube.CoreV1().ConfigMaps(namespace).Patch(t.Context(), "db-topology", types.MergePatchType, []byte(topology), metav1.PatchOptions{}); err != nil {
		t.Fatalf("write the topology: %v", err)
	}
	await(t, "the claim is marked", func(ctx context.Context) error {
		if claim, err = claims.Get(ctx, "data-db-0", metav1.GetOptions{}); err != nil {
			return err
		}
		if claim.Annotations[v1alpha1.AnnotationInitialized] == "" {
			return fmt.Errorf("its annotations are %v", claim.Annotations)
		}
		return nil
	})
	return claim
}

// labelClaim changes labels of the claim; an empty value takes one off.
func labelClaim(t *testing.T, namespace string, labels map[string]string) {
	t.Helper()
	changes := map[string]any{}
	for name, value := range labels {
		changes[name] = nil
		if value != "" {
			changes[name] = value
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": changes}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Patch(t.Context(), "data-db-0", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatalf("label the claim: %v", err)
	}
}

// aboutClaim are the requests of one kind that the operator sent about the claim.
func (o operator) aboutClaim(namespace, method string) int {
	count := 0
	for _, line := range o.requests.about(namespace, false) {
		if strings.HasPrefix(line, method+" ") && strings.Contains(line, "/persistentvolumeclaims/data-db-0") {
			count++
		}
	}
	return count
}

func TestALabelThatIsTakenOffAClaimIsPutBack(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	before := newSettledDatabase(t, namespace)
	operator.requests.awaitQuiet(t, time.Second)
	cases := map[string]map[string]string{
		"all of them":                      {},
		"the engine changed":               {v1alpha1.LabelEngine: "mysql"},
		"the stem changed":                 {v1alpha1.LabelStem: "other"},
		"the one it is watched by changed": {v1alpha1.LabelManagedBy: "somebody"},
		"the owner and the stem":           {v1alpha1.LabelOwnerUID: "", v1alpha1.LabelStem: ""},
	}
	for name := range before.Labels {
		cases[name+" alone"] = map[string]string{name: ""}
		cases["all of them"][name] = ""
	}
	for sentence, labels := range cases {
		t.Run(sentence, func(t *testing.T) {
			gets, patches := operator.aboutClaim(namespace, "GET"), operator.aboutClaim(namespace, "PATCH")
			labelClaim(t, namespace, labels)
			await(t, "the labels are put back", func(ctx context.Context) error {
				claim, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, "data-db-0", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if claim.UID != before.UID || !maps.Equal(claim.Labels, before.Labels) {
					return fmt.Errorf("UID %s has the labels %v, want %s and %v", claim.UID, claim.Labels, before.UID, before.Labels)
				}
				return nil
			})
			operator.requests.awaitQuiet(t, time.Second)
			if got := operator.aboutClaim(namespace, "GET") - gets; got != 1 {
				t.Errorf("the claim was read %d times, want once", got)
			}
			if got := operator.aboutClaim(namespace, "PATCH") - patches; got != 1 {
				t.Errorf("the claim was written %d times, want once", got)
			}
		})
	}
}

func TestALabelThatIsTakenOffWhileTheOperatorIsDownIsPutBack(t *testing.T) {
	first := startOperator(t)
	namespace := newNamespace(t)
	before := newSettledDatabase(t, namespace)
	first.stop()
	labelClaim(t, namespace, map[string]string{v1alpha1.LabelManagedBy: "", v1alpha1.LabelOwnerUID: "", v1alpha1.LabelStem: ""})
	startOperator(t)
	await(t, "the labels are put back", func(context.Context) error {
		if claim := children(t, namespace)["PersistentVolumeClaim data-db-0"]; claim == nil || !maps.Equal(claim.GetLabels(), before.Labels) {
			return fmt.Errorf("it is %v", claim)
		}
		return nil
	})
}

// awaitDegraded waits until Degraded says the text.
func awaitDegraded(t *testing.T, namespace, text string) metav1.Condition {
	t.Helper()
	var degraded metav1.Condition
	await(t, "Degraded says "+text, func(ctx context.Context) error {
		database, err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{})
		if err != nil {
			return err
		}
		condition := meta.FindStatusCondition(database.Status.Conditions, v1alpha1.ConditionDegraded)
		if condition == nil || !strings.Contains(condition.Message, text) {
			return fmt.Errorf("it is %+v", condition)
		}
		degraded = *condition
		return nil
	})
	return degraded
}

// TestAClaimInThePlaceOfOursThatIsNotOursIsLeftAlone brings another claim to the
// place of the one that the topology names, while no member runs.
func TestAClaimInThePlaceOfOursThatIsNotOursIsLeftAlone(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	ours := newSettledDatabase(t, namespace)
	changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Shutdown = true })
	await(t, "the pod is gone", func(context.Context) error {
		if uid := podUID(t, namespace); uid != "" {
			return fmt.Errorf("it is %s", uid)
		}
		return nil
	})
	claims := env.kube.CoreV1().PersistentVolumeClaims(namespace)
	if err := claims.Delete(t.Context(), "data-db-0", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the claim: %v", err)
	}
	await(t, "the claim is gone", func(ctx context.Context) error {
		if _, err := claims.Get(ctx, "data-db-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
	foreign, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: ours.Spec.AccessModes, Resources: ours.Spec.Resources,
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create another claim: %v", err)
	}
	changeSpec(t, namespace, withLimits("1", "1Gi")) // no watch shows the other claim
	degraded := awaitDegraded(t, namespace, "PersistentVolumeClaim data-db-0 has lost the labels")
	operator.requests.awaitQuiet(t, 2*time.Second)
	reads := operator.aboutClaim(namespace, "GET")
	operator.requests.awaitQuiet(t, 2*time.Second)
	if again := operator.aboutClaim(namespace, "GET"); again != reads {
		t.Errorf("it was read %d times while nothing happened", again-reads)
	}
	if after, err := claims.Get(t.Context(), "data-db-0", metav1.GetOptions{}); err != nil || after.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("it is %v (%v), was %v", after, err, foreign)
	}

	// What the message has one do helps.
	_, command, _ := strings.Cut(degraded.Message, "persistentvolumeclaim data-db-0 ")
	labels := map[string]string{}
	for word := range strings.FieldsSeq(command) {
		name, value, _ := strings.Cut(word, "=")
		labels[name] = value
	}
	labelClaim(t, namespace, labels)
	await(t, "it is taken for ours", func(ctx context.Context) error {
		claim, err := claims.Get(ctx, "data-db-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !maps.Equal(claim.Labels, ours.Labels) {
			return fmt.Errorf("its labels are %v, want %v", claim.Labels, ours.Labels)
		}
		return nil
	})
}
