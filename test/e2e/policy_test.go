//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

	l.patch(t, `{"spec":{"networkPolicy":null}}`)
	peer.isKeptOut(t)
	l.waitReady(t)
}

// isKeptOut waits until the client gets no connection. It is the network that
// refuses it: by credentials and name, the client could.
func (c client) isKeptOut(t *testing.T) {
	t.Helper()
	eventually(t, patience, "a refusal by the network", func(ctx context.Context) error {
		answer, err := c.tryFor(ctx, 0, c.readQuery(key)...)
		switch {
		case err == nil:
			return fmt.Errorf("there is the answer %q", answer)
		case strings.Contains(err.Error(), "could not translate"), strings.Contains(err.Error(), "not known"):
			return errors.Join(errors.New("the name isn't found"), err)
		default:
			return nil
		}
	})
}
