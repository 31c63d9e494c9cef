//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

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

// changes is the name of all plans that change a spec, in the table.
const changes = "changes of a spec"

// mutated is a database whose spec is changed.
type mutated struct {
	namespace string
	operator  *operator
}

// makeMutated makes a database of one member, with changes from the first on.
func makeMutated(t *testing.T, engine v1alpha1.DatabaseType, patches ...string) mutated {
	t.Helper()
	env.tally.tried(t, changes, 0, nil)
	m := mutated{namespace: newNamespace(t)}
	m.operator = startOperator(t, nil, "--namespaces="+m.namespace, "--leader-elect=false")
	createMembers(engine, 1, func(spec *v1alpha1.DatabaseManagerSpec) { changeSpec(t, spec, patches) })(t, m.namespace)
	return m
}

// changeSpec changes a spec by merge patches, one after the other.
func changeSpec(t *testing.T, spec *v1alpha1.DatabaseManagerSpec, patches []string) {
	t.Helper()
	encoded, err := json.Marshal(spec)
	for _, patch := range patches {
		if err == nil {
			encoded, err = jsonpatch.MergePatch(encoded, []byte(patch))
		}
	}
	*spec = v1alpha1.DatabaseManagerSpec{}
	if err == nil {
		err = json.Unmarshal(encoded, spec)
	}
	if err != nil {
		t.Fatalf("change a spec by %q: %v", patches, err)
	}
}

// change changes the spec by merge patches of it, all at once.
func (m mutated) change(t *testing.T, patches ...string) {
	t.Helper()
	databases := env.resources.CoolopsV1alpha1().DatabaseManagers(m.namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		stored, err := databases.Get(t.Context(), "orders", metav1.GetOptions{})
		if err != nil {
			return err
		}
		changeSpec(t, &stored.Spec, patches)
		_, err = databases.Update(t.Context(), stored, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatalf("change the database by %q: %v", patches, err)
	}
}

// settle waits until the status is of the spec as it is, and nobody writes, and
// returns what there is then.
func (m mutated) settle(t *testing.T, what string, isBad bool) map[string]string {
	t.Helper()
	m.settlesAs(t, what, isBad, nil)
	return stateOf(t, m.namespace)
}

// settlesAs waits until it has settled as another one has, if there is one.
func (m mutated) settlesAs(t *testing.T, what string, isBad bool, want map[string]string) {
	t.Helper()
	eventually(t, stepBound, what, func(ctx context.Context) error {
		if err := isQuiet(m.operator); err != nil {
			return err
		}
		if isBad {
			return isSeen(ctx, m.namespace)
		}
		if err := isReady(ctx, m.namespace); err != nil || want == nil {
			return err
		}
		return (&reference{[]outcome{{states: []map[string]string{want}}}}).compareState(0, stateOf(t, m.namespace))
	})
}

// TestAChangeThatIsTakenBackLeavesNothing has each change be made and taken back, once
// it has settled and at once, and has it be taken back of a database that was made so.
func TestAChangeThatIsTakenBackLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, engine := range enginesToMutate() {
		for _, one := range mutations(engine) {
			t.Run(fmt.Sprintf("%s/%s", engine, one.name), func(t *testing.T) {
				t.Parallel()
				m := makeMutated(t, engine)
				before := m.settle(t, "the database", false)
				m.change(t, one.set)
				m.settle(t, "with "+one.name, one.isBad)
				m.change(t, one.back)
				m.settlesAs(t, "without "+one.name, false, before)
				m.change(t, one.set)
				m.change(t, one.back)
				m.settlesAs(t, "with and without "+one.name+" at once", false, before)

				// What the creation has set has to go as well.
				m = makeMutated(t, engine, one.set)
				m.settle(t, "made with "+one.name, one.isBad)
				m.change(t, one.back)
				m.settlesAs(t, "made with "+one.name+", without it", false, before)
			})
		}
	}
}

// fresh are databases that were made with one change, by engine and change.
var fresh struct {
	sync.Mutex
	states map[string]map[string]string
}

// madeWith is what there is of a database that was made with a change.
func madeWith(t *testing.T, engine v1alpha1.DatabaseType, one mutation) map[string]string {
	t.Helper()
	key := fmt.Sprintf("%s/%s", engine, one.name)
	fresh.Lock()
	found := fresh.states[key]
	fresh.Unlock()
	if found != nil {
		return found
	}
	state := makeMutated(t, engine, one.set).settle(t, "made with "+one.name, false)
	fresh.Lock()
	defer fresh.Unlock()
	if fresh.states == nil {
		fresh.states = map[string]map[string]string{}
	}
	fresh.states[key] = state
	return state
}

// TestAChangeAfterAnotherLeadsToWhatItAloneLeadsTo has one change replaced by another,
// once it has settled and while it is underway, and compares with a database that was
// made with the other one. Each failure is one of two steps. Of all pairs the seed
// chooses some: its number and the pair's name repeat one.
func TestAChangeAfterAnotherLeadsToWhatItAloneLeadsTo(t *testing.T) {
	t.Parallel()
	for _, p := range pairs() {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			want := madeWith(t, p.engine, p.second)
			m := makeMutated(t, p.engine)
			m.settle(t, "the database", false)
			m.change(t, p.first.set)
			if p.settles {
				m.settle(t, "with "+p.first.name, p.first.isBad)
			} else {
				eventually(t, stepBound, "the change is seen", func(ctx context.Context) error { return isSeen(ctx, m.namespace) })
			}
			m.change(t, p.first.back, p.second.set)
			m.settlesAs(t, "with "+p.second.name, false, want)
		})
	}
}

// pair is two changes, of which the second takes back the first.
type pair struct {
	engine        v1alpha1.DatabaseType
	first, second mutation
	settles       bool
}

func (p pair) String() string {
	how := "underway"
	if p.settles {
		how = "settled"
	}
	return fmt.Sprintf("%s/%s, %s, then %s", p.engine, p.first.name, how, p.second.name)
}

// pairs are those that are tried: the second is one with which a database can be
// ready.
func pairs() []pair {
	var all []pair
	for _, engine := range enginesToMutate() {
		for _, first := range mutations(engine) {
			for _, second := range mutations(engine) {
				if !second.isBad && first.name != second.name {
					all = append(all, pair{engine, first, second, false}, pair{engine, first, second, true})
				}
			}
		}
	}
	rand.New(rand.NewPCG(env.seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), int(env.pairs))]
}

// enginesToMutate are all engines if all is to be tried, and else one.
func enginesToMutate() []v1alpha1.DatabaseType {
	if !env.isFull {
		return []v1alpha1.DatabaseType{v1alpha1.DatabaseTypePostgreSQL}
	}
	return everyEngine()
}
