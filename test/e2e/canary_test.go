//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // what MariaDB keeps
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// traces are the forms in which a password could be read, by what they are
// called.
func traces(password string) map[string]string {
	sum := sha256.Sum256([]byte(password))
	once := sha1.Sum([]byte(password)) //nolint:gosec // what MariaDB keeps
	twice := sha1.Sum(once[:])         //nolint:gosec // what MariaDB keeps
	return map[string]string{
		"plain":             password,
		"base64":            base64.StdEncoding.EncodeToString([]byte(password)),
		"base64 in a URL":   base64.URLEncoding.EncodeToString([]byte(password)),
		"URL-encoded":       url.QueryEscape(password),
		"SHA-256 in hex":    hex.EncodeToString(sum[:]),
		"SHA-256 in base64": base64.StdEncoding.EncodeToString(sum[:]),
		"in hex":            hex.EncodeToString([]byte(password)),
		"in capital hex":    strings.ToUpper(hex.EncodeToString([]byte(password))),
		"as MariaDB keeps":  strings.ToUpper(hex.EncodeToString(twice[:])),
		"as MariaDB sends":  hex.EncodeToString(twice[:]),
	}
}

// verifier is what a server keeps of a password where that has a salt, so that it
// can't be told beforehand: PostgreSQL's of SCRAM, and MySQL's of
// caching_sha2_password, as it is and in hex. No verifier of any password belongs
// outside of the server.
var verifier = regexp.MustCompile(`SCRAM-SHA-256\$\d+:[A-Za-z0-9+/]+=*\$|\$A\$[0-9A-F]{3}\$|(?i:2441243030[0-9a-f]{2}24)`)

// tracesIn returns what can be read of a password in a text, by what it is called.
func tracesIn(text, password string) []string {
	var found []string
	for form, trace := range traces(password) {
		if strings.Contains(text, trace) {
			found = append(found, form)
		}
	}
	if verifier.MatchString(text) {
		found = append(found, "a verifier with a salt")
	}
	return found
}

// followed is a log that is read while it is written, so that none of it is
// missed when it is rotated away.
type followed struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (f *followed) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.content.String()
}

func (f *followed) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.content.Write(text)
}

// followOperators reads the logs of all operators from now on.
func followOperators(t *testing.T) *followed {
	t.Helper()
	pods, err := operatorPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{}
	for _, pod := range pods {
		stream, err := env.kube.CoreV1().Pods(operatorNamespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true, TailLines: new(int64(0))}).Stream(t.Context())
		if err != nil {
			t.Fatalf("follow the log of %s: %v", pod, err)
		}
		go func() {
			_, err := io.Copy(f, stream)
			if err := errors.Join(err, stream.Close()); err != nil && t.Context().Err() == nil {
				_, _ = fmt.Fprintf(f, "the log of %s ended: %v", pod, err) // it goes to a buffer
			}
		}()
	}
	return f
}

// keepsItsSecrets looks for the passwords wherever they could be read, outside of
// Secrets: also in what the operator logs at its most talkative.
func (l life) keepsItsSecrets(t *testing.T, n node, operators *followed) {
	t.Helper()
	// It is as complete as it gets once the last thing that was done is in it.
	marker := l.namespace + "/" + l.name
	eventually(t, patience, "the operator's log", func(context.Context) error {
		if text := operators.String(); !strings.Contains(text, marker) || !strings.Contains(text, "Response") {
			return fmt.Errorf("%d bytes don't tell of %s and of requests: the operator has to run with DATABASE_MANAGER_V=8", len(text), marker)
		}
		return nil
	})
	passwords := map[string]string{
		"the application's": l.credentials(t)["password"], "the operator's": l.secret(t, l.stem()+"-admin")["password"],
	}
	// What is looked for is found where it has to be.
	kept, err := execute(t.Context(), l.namespace, l.mustPod(t).Name, nil, "sh", "-c", l.keptScript)
	if err != nil {
		t.Fatalf("ask the server what it keeps of passwords: %v", err)
	}
	for whose, password := range passwords {
		if len(tracesIn(kept, password)) == 0 {
			t.Errorf("what the server keeps of %s password isn't recognised", whose)
		}
	}
	for place, text := range l.places(t, n, operators) {
		if text == "" {
			t.Errorf("%s: there is nothing to look at", place)
		}
		for whose, password := range passwords {
			if len(password) < 20 {
				t.Fatalf("%s password has %d characters", whose, len(password))
			}
			for _, form := range tracesIn(text, password) {
				t.Errorf("%s: %s password, %s", place, whose, form)
			}
		}
	}
}

// places returns what can be read of a database, by where it is.
func (l life) places(t *testing.T, n node, operators *followed) map[string]string {
	t.Helper()
	pod := l.mustPod(t)
	stored, err := l.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{
		"the resource":            mustYAML(stored),
		"the pod":                 mustYAML(pod),
		"arguments and variables": n.visible(t, pod),
		"the member's log":        logs(t, l.namespace, pod.Name),
		"the operators' logs":     operators.String(),
		"the operators' metrics":  metrics(t),
	}
	core, apps := env.kube.CoreV1(), env.kube.AppsV1()
	for kind, list := range map[string]func() (any, error){
		"the ConfigMaps": func() (any, error) { return core.ConfigMaps(l.namespace).List(t.Context(), metav1.ListOptions{}) },
		"the Services":   func() (any, error) { return core.Services(l.namespace).List(t.Context(), metav1.ListOptions{}) },
		"the claims": func() (any, error) {
			return core.PersistentVolumeClaims(l.namespace).List(t.Context(), metav1.ListOptions{})
		},
		"the events": func() (any, error) {
			return env.kube.EventsV1().Events(l.namespace).List(t.Context(), metav1.ListOptions{})
		},
		"the StatefulSets": func() (any, error) { return apps.StatefulSets(l.namespace).List(t.Context(), metav1.ListOptions{}) },
		"the ControllerRevisions": func() (any, error) {
			return apps.ControllerRevisions(l.namespace).List(t.Context(), metav1.ListOptions{})
		},
		"the NetworkPolicies": func() (any, error) {
			return env.kube.NetworkingV1().NetworkPolicies(l.namespace).List(t.Context(), metav1.ListOptions{})
		},
	} {
		listed, err := list()
		if err != nil {
			t.Fatalf("list %s: %v", kind, err)
		}
		places[kind] = mustYAML(listed)
	}
	return places
}

// metrics returns what every operator tells of itself.
func metrics(t *testing.T) string {
	t.Helper()
	pods, err := operatorPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, pod := range pods {
		text, err := env.kube.CoreV1().RESTClient().Get().Namespace(operatorNamespace).Resource("pods").Name(pod + ":8080").SubResource("proxy").Suffix("metrics").DoRaw(t.Context())
		if err != nil {
			t.Fatalf("read the metrics of %s: %v", pod, err)
		}
		all.Write(text)
	}
	return all.String()
}
