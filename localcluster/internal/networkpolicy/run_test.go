// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestRulesFollowTheAPI has a kernel that refuses the first rules that it is given, and then takes all.
func TestRulesFollowTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		snapshot := shop(t)
		client := fake.NewClientset(snapshot.Namespaces[0], snapshot.Pods[0])
		source, err := watch(ctx, client)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // what it tells of the objects that were there is one change
		given, answers := make(chan string), make(chan error)
		done := make(chan struct{})
		go func() {
			defer close(done)
			source.follow(ctx, here(), func(_ context.Context, rules string) error {
				given <- rules
				return <-answers
			})
		}()
		mustBeGiven := func(text string, answer error) {
			t.Helper()
			if rules := <-given; !strings.HasSuffix(rules, text) {
				t.Errorf("the rules are\n%s\nwhich should end with %q", rules, text)
			}
			answers <- answer
		}
		const none, isolated = "delete table ip localcluster-network-policy\n", "\t\tdrop\n\t}\n}\n"
		mustBeGiven(none, errors.New("refused"))
		start := time.Now()
		mustBeGiven(none, nil)
		if elapsed := time.Since(start); elapsed != retryDelay {
			t.Errorf("they were given again after %s", elapsed)
		}

		policies := client.NetworkingV1().NetworkPolicies("shop")
		if _, err := policies.Create(ctx, policy(t, "shop/none", `{podSelector: {}}`), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		mustBeGiven(isolated, nil)
		annotated := snapshot.Pods[0].DeepCopy()
		annotated.Annotations = map[string]string{"irrelevant": "yes"}
		if _, err := client.CoreV1().Pods("shop").Update(ctx, annotated, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it would be given the same rules now, and they aren't those of the next step
		if err := policies.Delete(ctx, "none", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		mustBeGiven(none, nil)
		cancel()
		<-done
	})
}
