//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestOnlyWhoIsAdmittedReachesADatabase tries it from the database's namespace,
// from others, and, by the status, from the operator.
func TestOnlyWhoIsAdmittedReachesADatabase(t *testing.T) {
	t.Parallel()
	l := begin(t, anyEngine(), "orders", durable)
	l.app.write(t, "value")
	credentials := l.credentials(t)
	foreign, peer := newClient(t, newNamespace(t), l.engine), newClient(t, newNamespace(t), l.engine)
	foreign.login(t, credentials)
	peer.login(t, credentials)
	label := []byte(`{"metadata":{"labels":{"access":"orders"}}}`)
	if _, err := env.kube.CoreV1().Namespaces().Patch(t.Context(), peer.namespace, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	foreign.isKeptOut(t)
	peer.isKeptOut(t)

	l.patch(t, `{"spec":{"networkPolicy":{"from":[{"namespaceSelector":{"matchLabels":{"access":"orders"}}}]}}}`)
	peer.expect(t, "as a peer that the spec names", "value")
	foreign.isKeptOut(t)
	// The operator, whose queries make it ready, is let in as well.
	l.waitReady(t)
	l.app.expect(t, "from the same namespace", "value")

	// With the same credentials and by the same name, everybody could.
	l.patch(t, `{"spec":{"networkPolicy":{"from":[{"namespaceSelector":{}}]}}}`)
	foreign.expect(t, "as one of all", "value")

	l.patch(t, `{"spec":{"networkPolicy":null}}`)
	foreign.isKeptOut(t)
	peer.isKeptOut(t)
	l.waitReady(t)
}

// isKeptOut waits until the client gets no answer.
func (c client) isKeptOut(t *testing.T) {
	t.Helper()
	eventually(t, patience, "no answer", func(ctx context.Context) error {
		answer, err := c.tryFor(ctx, 0, c.readQuery(key)...)
		if err == nil {
			return fmt.Errorf("there is the answer %q", answer)
		}
		return nil
	})
}
