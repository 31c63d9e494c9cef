//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// mutation is a change of a spec that can be taken back.
type mutation struct {
	name      string
	set, back string // merge patches of spec
	// isBad tells that no database can be ready with it.
	isBad bool
}

// mutations are changes of each field that may change, and back.
func mutations(engine v1alpha1.DatabaseType) []mutation {
	tuned := tuningOf(engine)
	return []mutation{
		{"resources", `{"resources":{"limits":{"memory":"96Mi"},"requests":{"cpu":"10m"}}}`, `{"resources":null}`, false},
		{"more memory than there is", `{"resources":{"requests":{"memory":"4Pi"}}}`, `{"resources":null}`, true},
		{"a live parameter", `{"config":{` + tuned.live + `}}`, `{"config":null}`, false},
		{"a fixed parameter", `{"config":{` + tuned.fixed + `}}`, `{"config":null}`, false},
		{"no such parameter", `{"config":{"no-such-parameter":"1"}}`, `{"config":null}`, true},
		{"a Service for the world", `{"service":{"type":"NodePort","annotations":{"example.com/a":"b"}}}`, `{"service":null}`, false},
		{"clients", `{"networkPolicy":{"from":[{"ipBlock":{"cidr":"192.0.2.0/24"}}]}}`, `{"networkPolicy":null}`, false},
		{"a node that isn't there", `{"nodeSelector":{"example.com/disk":"fast"}}`, `{"nodeSelector":null}`, true},
		{"tolerations", `{"tolerations":[{"key":"example.com/a","operator":"Exists"}]}`, `{"tolerations":null}`, false},
		{"spread", `{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway"}]}`, `{"topologySpreadConstraints":null}`, false},
		{"pull secrets", `{"imagePullSecrets":[{"name":"registry"}]}`, `{"imagePullSecrets":null}`, false},
		{"labels of pods", `{"podLabels":{"example.com/team":"shop"}}`, `{"podLabels":null}`, false},
		{"annotations of pods", `{"podAnnotations":{"example.com/scrape":"true"}}`, `{"podAnnotations":null}`, false},
		{"volumes that go", `{"storage":{"retention":{"whenDeleted":"Delete"}}}`, `{"storage":{"retention":null}}`, false},
		{"a Secret that isn't there", `{"auth":{"secretName":"nowhere"}}`, `{"auth":null}`, true},
		{"suspend", `{"suspend":true}`, `{"suspend":null}`, true},
		{"shutdown", `{"shutdown":true}`, `{"shutdown":null}`, true},
	}
}

func (m mutation) apply(t *testing.T, namespace, patch string) {
	t.Helper()
	patchDatabase(fmt.Sprintf(`{"spec":%s}`, patch))(t, namespace)
}

// isSettled tells whether the status is of the spec as it is, and nobody writes.
func isSettled(o *operator, isBad bool) func(context.Context, string) error {
	return func(ctx context.Context, namespace string) error {
		if writes := o.seen(request.isWork); len(writes) > 0 && time.Since(writes[len(writes)-1].at) < quiet {
			return errors.New("the operator isn't at rest")
		}
		if isBad {
			return isSeen(ctx, namespace)
		}
		return isReady(ctx, namespace)
	}
}

// TestAMutationThatIsTakenBackLeavesNothing has each change be made and taken back,
// once it has settled and at once.
func TestAMutationThatIsTakenBackLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, engine := range enginesToMutate() {
		for _, m := range mutations(engine) {
			t.Run(fmt.Sprintf("%s/%s", engine, m.name), func(t *testing.T) {
				t.Parallel()
				namespace := newNamespace(t)
				o := startOperator(t, nil, "--namespaces="+namespace, "--leader-elect=false")
				createMembers(engine, 1)(t, namespace)
				settle := func(what string, isBad bool) map[string]string {
					eventually(t, stepBound, what, func(ctx context.Context) error { return isSettled(o, isBad)(ctx, namespace) })
					return stateOf(t, namespace)
				}
				before := settle("the database", false)
				m.apply(t, namespace, m.set)
				settle("with "+m.name, m.isBad)
				m.apply(t, namespace, m.back)
				expectSame(t, before, settle("without "+m.name, false))
				m.apply(t, namespace, m.set)
				m.apply(t, namespace, m.back)
				expectSame(t, before, settle("with and without "+m.name+" at once", false))
			})
		}
	}
}

// TestTwoMutationsLeadToWhatBothAreMadeWith makes two changes, the second while the
// first is underway, and compares with a database that was made with both. The
// pairs are chosen at random: FAULTS_SEED repeats them.
func TestTwoMutationsLeadToWhatBothAreMadeWith(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(env.seed, 0))
	engines := enginesToMutate()
	for range env.pairs {
		engine := engines[random.IntN(len(engines))]
		all := slices.DeleteFunc(mutations(engine), func(m mutation) bool { return m.isBad })
		first, second := all[random.IntN(len(all))], all[random.IntN(len(all))]
		t.Run(fmt.Sprintf("%s/%s, then %s", engine, first.name, second.name), func(t *testing.T) {
			t.Parallel()
			lead := func(patches ...string) map[string]string {
				namespace := newNamespace(t)
				o := startOperator(t, nil, "--namespaces="+namespace, "--leader-elect=false")
				for _, patch := range append([]string{""}, patches...) {
					if patch == "" {
						createMembers(engine, 1)(t, namespace)
						continue
					}
					if len(patches) == 1 {
						// Made with both: nothing has been rendered yet.
						mutation{}.apply(t, namespace, first.set)
						mutation{}.apply(t, namespace, second.set)
						continue
					}
					eventually(t, stepBound, "the database is seen", func(ctx context.Context) error { return isSeen(ctx, namespace) })
					mutation{}.apply(t, namespace, patch)
				}
				eventually(t, stepBound, "settled", func(ctx context.Context) error { return isSettled(o, false)(ctx, namespace) })
				return stateOf(t, namespace)
			}
			expectSame(t, lead("both"), lead(first.set, second.set))
		})
	}
}

// enginesToMutate are all engines if all is to be tried, and else one.
func enginesToMutate() []v1alpha1.DatabaseType {
	if !env.isFull {
		return []v1alpha1.DatabaseType{v1alpha1.DatabaseTypePostgreSQL}
	}
	return everyEngine()
}

func expectSame(t *testing.T, want, got map[string]string) {
	t.Helper()
	for _, object := range slices.Sorted(maps.Keys(want)) {
		if difference := cmp.Diff(strings.Split(want[object], "\n"), strings.Split(got[object], "\n")); difference != "" {
			t.Errorf("%s differs (-want +got):\n%s", object, difference)
		}
	}
	for object := range got {
		if _, isWanted := want[object]; !isWanted {
			t.Errorf("there is also %s", object)
		}
	}
}
