//go:build examples

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestOneOfThreeWorksAndAnotherTakesOver kills the first leader, and stops the
// second one cleanly.
func TestOneOfThreeWorksAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	proxies, waiting := map[string]*proxy{}, map[string]*process{}
	for _, id := range []string{"a", "b", "c"} {
		proxies[id] = newProxy(t)
		waiting[id] = l.start(t, id, proxies[id].kubeconfig)
	}
	leader := func() *process {
		var works *process
		await(t, "one of the candidates works", func() bool {
			for _, candidate := range waiting {
				if candidate.counted() >= 2 {
					works = candidate
				}
			}
			return works != nil
		})
		delete(waiting, works.id)
		return works
	}

	first := leader()
	first.signal(t, syscall.SIGKILL)
	first.awaitExit(t, -1)
	second := leader()
	after := proxies[second.id].acquired(t).Sub(proxies[first.id].lastRenewal(t))
	t.Logf("killed: taken over %.2f leases after the last renewal", after.Seconds()/lease.Seconds())
	// A candidate looks every 1 to 2.2 retry periods of 2/15 of a lease: it is late
	// by that when it sees the last renewal, and when it sees that none followed.
	if latest := lease + 2*lease*22*2/150 + lease/2; after < lease || after > latest {
		t.Errorf("it took over %s after the last renewal, want %s to %s", after, lease, latest)
	}

	counted := second.counted()
	second.signal(t, syscall.SIGTERM)
	second.awaitExit(t, 0)
	if second.counted() <= counted {
		t.Error("the piece at hand wasn't finished")
	}
	if lines := second.printed(); !strings.HasSuffix(lines[len(lines)-1], "gives the lease up") || !strings.Contains(lines[len(lines)-2], "the count is") {
		t.Errorf("its last lines are %q", lines[len(lines)-2:])
	}
	leases, works := proxies[second.id].updates("leases"), proxies[second.id].updates("configmaps")
	release := leases[len(leases)-1]
	if last := works[len(works)-1]; !last.answered.Before(release.began) {
		t.Errorf("the last write was answered at %s, and the lease given up at %s", last.answered, release.began)
	}
	third := leader()
	after = proxies[third.id].acquired(t).Sub(release.began)
	t.Logf("stopped: taken over %.2f leases after it was given up", after.Seconds()/lease.Seconds())
	if after < 0 || after > lease*3/4 {
		t.Errorf("it took over %s after the lease was given up, want 0 to %s", after, lease*3/4)
	}

	third.signal(t, syscall.SIGTERM)
	third.awaitExit(t, 0)
	l.check(t, first.id, second.id, third.id)
	record, err := kube.CoordinationV1().Leases(l.namespace).Get(t.Context(), "counter", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := record.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("the lease is still held by %q", *holder)
	}
}

// TestALeaderWithoutAPIServerStopsBeforeItsLeaseEnds cuts it off.
func TestALeaderWithoutAPIServerStopsBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	for sentence, cut := range map[string]func(*proxy){
		"connections are refused": (*proxy).shut,
		"requests hang":           func(p *proxy) { p.set(hang) },
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			l, way := newLedger(t), newProxy(t)
			cutOff := l.start(t, "cut-off", way.kubeconfig)
			cutOff.awaitWork(t, 1)
			other := newProxy(t)
			next := l.start(t, "next", other.kubeconfig)
			next.awaitLine(t, `the leader is "cut-off"`)
			cut(way)
			cutOff.awaitExit(t, 1)
			cutOff.awaitLine(t, "ends: the lease is lost")
			lasted := cutOff.ended.Sub(way.lastRenewal(t))
			t.Logf("it ended %.2f leases after its last renewal", lasted.Seconds()/lease.Seconds())
			if lasted >= lease {
				t.Errorf("it ended %s after its last renewal, and a lease holds %s", lasted, lease)
			}
			next.awaitWork(t, 1)
			if taken := other.acquired(t); !taken.After(cutOff.ended) {
				t.Errorf("the next one had the lease at %s, and the other ended at %s", taken, cutOff.ended)
			}
			l.check(t, "cut-off", "next")
		})
	}
}

// TestAShortOutageIsSurvived by the leader, which goes on.
func TestAShortOutageIsSurvived(t *testing.T) {
	t.Parallel()
	l, way := newLedger(t), newProxy(t)
	leader := l.start(t, "leader", way.kubeconfig, "--piece=200ms")
	leader.awaitWork(t, 1)
	way.set(abort)
	leader.awaitLine(t, "leader: tries again: ")
	way.set(nil)
	leader.awaitWork(t, leader.counted()+2)
	leader.signal(t, syscall.SIGTERM)
	leader.awaitExit(t, 0)
	l.check(t, "leader")
}

// TestALeaderThatWasStoppedWorksNoMore when it wakes up after its lease.
func TestALeaderThatWasStoppedWorksNoMore(t *testing.T) {
	t.Parallel()
	l, way := newLedger(t), newProxy(t)
	stopped := l.start(t, "stopped", way.kubeconfig)
	stopped.awaitWork(t, 1)
	stopped.signal(t, syscall.SIGSTOP)
	next := l.start(t, "next", kubeconfig)
	next.awaitWork(t, 1)
	before := len(way.updates("configmaps"))
	stopped.signal(t, syscall.SIGCONT)
	stopped.awaitExit(t, 1)
	if after := way.updates("configmaps"); len(after) != before {
		t.Errorf("it wrote once it woke up: %v", after[before:])
	}
	next.awaitWork(t, next.counted()+1)
	l.check(t, "stopped", "next")
}

// TestAWriteThatComesLateIsRefused holds a leader's write back that was sent after
// the lease was checked, until another leader works.
func TestAWriteThatComesLateIsRefused(t *testing.T) {
	t.Parallel()
	l, way := newLedger(t), newProxy(t)
	late := l.start(t, "late", way.kubeconfig)
	late.awaitWork(t, 1)
	held, release := make(chan struct{}), make(chan struct{})
	way.set(func(r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/configmaps/") {
			close(held) // a second write would panic, and be seen
			<-release
		}
	})
	select {
	case <-held:
	case <-time.After(patience):
		t.Fatal("no write is under way")
	}
	late.signal(t, syscall.SIGSTOP)
	next := l.start(t, "next", kubeconfig)
	next.awaitWork(t, 1)
	close(release)
	await(t, "the write is refused for its version", func() bool {
		way.mu.Lock()
		defer way.mu.Unlock()
		return slices.ContainsFunc(way.requests, func(r *request) bool {
			return r.method == http.MethodPut && strings.Contains(r.path, "/configmaps/") && r.status == http.StatusConflict
		})
	})
	late.signal(t, syscall.SIGCONT)
	late.awaitExit(t, 1)
	next.awaitWork(t, next.counted()+1)
	l.check(t, "late", "next")
}

// TestWhatCantHealIsSaid in one line, with what to do.
func TestWhatCantHealIsSaid(t *testing.T) {
	t.Parallel()
	for sentence, row := range map[string]struct {
		change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		flag   string
		want   []string // in the only line that isn't about the election
	}{
		"a wrong token": {
			change: func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
				*user = clientcmdapi.AuthInfo{Token: "wrong"}
			},
			want: []string{"Unauthorized", "correct the certificate authority or the credentials in the kubeconfig"},
		},
		"an unknown CA": {
			change: func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
				cluster.CertificateAuthorityData, cluster.CertificateAuthority = nil, ""
			},
			want: []string{"x509: certificate signed by unknown authority", "correct the certificate authority"},
		},
		"a user without rights": {
			change: func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Impersonate = "nobody" },
			want:   []string{`User "nobody" cannot get resource "leases"`, "a Role that lets this user read and update it and the lease"},
		},
		"a ConfigMap that there isn't": {flag: "--lease=other", want: []string{`configmaps "other" not found`, "create the ConfigMap"}},
		"no name of its own":           {flag: "--id=", want: []string{"Lock identity is empty"}},
		"a lease of no second":         {flag: "--lease-duration=900ms", want: []string{"leaseDuration must be greater"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			if row.change == nil {
				row.change = func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}
			}
			candidate := l.start(t, "candidate", writeKubeconfig(t, row.change), strings.Fields(row.flag)...)
			candidate.awaitExit(t, 1)
			lines := slices.DeleteFunc(candidate.printed(), func(line string) bool {
				return line == `candidate: the leader is "candidate"` || line == "candidate: gives the lease up"
			})
			if len(lines) != 1 {
				t.Fatalf("it printed %d lines, want one: %q", len(lines), lines)
			}
			for _, want := range row.want {
				if !strings.Contains(lines[0], want) {
					t.Errorf("it printed %q, want %q in it", lines[0], want)
				}
			}
		})
	}
}

// TestAnAPIServerThatComesLaterIsWaitedFor without a flood of lines.
func TestAnAPIServerThatComesLaterIsWaitedFor(t *testing.T) {
	t.Parallel()
	l, nobody := newLedger(t), newProxy(t)
	nobody.shut()
	candidate := l.start(t, "candidate", nobody.kubeconfig)
	candidate.awaitLine(t, "connection refused")
	way := newProxyAt(t, nobody.server.Listener.Addr().String())
	way.set(abort)
	way.server.Start()
	await(t, "it has tried four times more", func() bool {
		way.mu.Lock()
		defer way.mu.Unlock()
		return len(way.requests) >= 4
	})
	lines := candidate.printed()
	if distinct := slices.Compact(slices.Clone(lines)); len(distinct) != len(lines) {
		t.Errorf("it says the same again and again: %q", lines)
	}
	way.set(nil)
	candidate.awaitWork(t, 1)
	candidate.signal(t, syscall.SIGINT)
	candidate.awaitExit(t, 0)
	l.check(t, "candidate")
}
