// SPDX-License-Identifier: Apache-2.0

package player

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/internal/played/remote"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// startServer starts the server of a pod, of a database that follows a primary or is
// new.
func startServer(t *testing.T, s *servers, name, primary string) (address string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{v1alpha1.LabelStem: "db"}}}
	told := boot{engine: string(v1alpha1.DatabaseTypePostgreSQL), holder: name, variable: map[string]string{plan.MembersDomainVariable: "db-members"}, settings: plan.Settings{}}
	if primary == "" {
		told.variable[plan.TopologyStateVariable] = string(plan.TopologyNew)
	} else {
		told.variable[plan.TopologyPrimaryVariable] = primary
	}
	if failed := s.start(pod, name, told); failed != nil {
		t.Fatalf("%s doesn't start: %+v", name, failed)
	}
	return name
}

func order(t *testing.T, s *servers, address string, call remote.Call) {
	t.Helper()
	call.Target = dbclient.Target{Address: address + ":5432"}
	if answer := s.Answer(t.Context(), call); answer.Error != "" {
		t.Fatalf("%s of %s: %s", call.Verb, address, answer.Error)
	}
}

// TestServersWithNothingToDoAreLeftAlone has a replica copy its data when its primary
// is there, which nobody looks for meanwhile, and not before.
func TestServersWithNothingToDoAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s := newServers()
		go s.run(ctx)
		isAwake := func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.awake) > 0
		}

		replica := startServer(t, s, "db-1", "db-0")
		turns := s.turns(replica)
		<-time.After(time.Second)
		if s.isUp(replica) || isAwake() {
			t.Fatal("the replica is up without a primary, or is looked at without end")
		}

		primary := startServer(t, s, "db-0", "")
		order(t, s, primary, remote.Call{Verb: remote.Promote})
		<-turns
		if !s.isUp(replica) {
			t.Error("the replica isn't up, and its pod was told that it is")
		}
		<-time.After(time.Second)
		if isAwake() {
			t.Error("the servers are looked at without end")
		}

		s.forget(replica)
		if s.isUp(replica) {
			t.Error("the replica is up after its end")
		}
	})
}
