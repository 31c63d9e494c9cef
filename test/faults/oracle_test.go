//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// checkSilence expects that nobody panicked or raced, and that no password is
// anywhere but in Secrets.
func (g *staging) checkSilence(t *testing.T) {
	t.Helper()
	places := map[string]string{"what is in the namespace": g.everything(t)}
	for _, one := range g.operators {
		log := one.log.String()
		for _, sign := range []string{"panic:", "panic recovered", "Observed a panic", "DATA RACE", "fatal error:"} {
			if strings.Contains(log, sign) {
				t.Errorf("an operator's log has %q", sign)
			}
		}
		places["an operator's log"] += log
	}
	for _, password := range env.player.Passwords(g.namespace) {
		for place, text := range places {
			if password != "" && strings.Contains(text, password) {
				t.Errorf("a password is in %s", place)
			}
		}
	}
}

// namesUID tells whether a deletion is of one object, and not of whichever has its
// name by then.
func (r request) namesUID() bool {
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(r.body, nil, &metav1.DeleteOptions{})
	options, isOptions := decoded.(*metav1.DeleteOptions)
	return err == nil && isOptions && options.Preconditions != nil && options.Preconditions.UID != nil
}

// everything is what users may read of the namespace, but for Secrets.
func (g *staging) everything(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	note := func(list any, err error) {
		if err == nil {
			err = json.NewEncoder(&text).Encode(list)
		}
		if err != nil {
			t.Errorf("look for passwords: %v", err)
		}
	}
	core, all := env.kube.CoreV1(), metav1.ListOptions{}
	configMaps, err := core.ConfigMaps(g.namespace).List(t.Context(), all)
	note(configMaps, err)
	events, err := env.kube.EventsV1().Events(g.namespace).List(t.Context(), all)
	note(events, err)
	pods, err := core.Pods(g.namespace).List(t.Context(), all)
	note(pods, err)
	claims, err := core.PersistentVolumeClaims(g.namespace).List(t.Context(), all)
	note(claims, err)
	databases, err := env.resources.CoolopsV1alpha1().DatabaseManagers(g.namespace).List(t.Context(), all)
	note(databases, err)
	sets, err := env.kube.AppsV1().StatefulSets(g.namespace).List(t.Context(), all)
	note(sets, err)
	return text.String()
}
