//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestGoroutinesGoWithTheirDatabases has databases of every engine come and go, and
// counts what goes on in the operator before and after.
func TestGoroutinesGoWithTheirDatabases(t *testing.T) {
	t.Parallel()
	namespace, address := newNamespace(t), freeAddress(t)
	o := startOperator(t, nil, "--namespaces="+namespace, "--leader-elect=false", "--metrics-bind-address="+address)
	life := func() {
		for _, engine := range everyEngine() {
			createMembers(engine, 3, func(spec *v1alpha1.DatabaseManagerSpec) {
				spec.DeploymentName = "db-" + string(engine)
				spec.Storage.Retention = &v1alpha1.StorageRetention{WhenDeleted: v1alpha1.RetentionPolicyDelete}
			})(t, namespace)
			eventually(t, stepBound, string(engine), func(ctx context.Context) error { return isReady(ctx, namespace) })
			deleteDatabase(t, namespace)
			eventually(t, stepBound, "all of it is gone", func(ctx context.Context) error { return hasNoWorkload(ctx, namespace) })
		}
	}
	count := func() int {
		t.Helper()
		number, err := goroutines(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	// What is started once, for the first database, stays.
	life()
	eventually(t, stepBound, "rest", func(context.Context) error { return isQuiet(o) })
	before := count()
	life()
	during := 0
	eventually(t, stepBound, "as few goroutines as before", func(context.Context) error {
		if during = count(); during > before {
			return fmt.Errorf("there are %d, and there were %d", during, before)
		}
		return nil
	})
}

// freeAddress is one on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // nothing was accepted
	return listener.Addr().String()
}

// goroutines asks an operator's metrics how many there are.
func goroutines(ctx context.Context, address string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, err
	}
	family := families["go_goroutines"]
	if family == nil {
		return 0, fmt.Errorf("there is no go_goroutines among %d metrics", len(families))
	}
	return int(family.Metric[0].GetGauge().GetValue()), nil
}
