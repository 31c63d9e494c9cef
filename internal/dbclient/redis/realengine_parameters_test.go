//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/engine/enginetest"
	"coolops.cn/database-manager/internal/plan"
)

// samples returns values of each parameter; among those of maxclients is none
// that this machine's limit of open files doesn't allow.
func (s server) samples(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, known := range s.Parameters() {
		switch known.Name {
		case "notify-keyspace-events":
			all[known.Name] = []string{known.Default, "AKE", "K", "g$lshzxedKEm", "tm", "AE", "dKE", "g$lshzxetdKEm"}
			for i, value := range all[known.Name] {
				all[known.Name][i], _ = known.Read(value) // each is allowed
			}
		case "maxclients":
			all[known.Name] = []string{known.Default, "100", strconv.FormatUint(min(openFiles(t)-100, 65000), 10)}
		default:
			all[known.Name] = enginetest.Samples(t, known)
		}
	}
	return all
}

// openFiles is how many files a process of this machine may open.
func openFiles(t *testing.T) uint64 {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return limit.Max
}

// knowing is a target of which State gives all parameters, the fixed ones too.
func (s server) knowing() dbclient.Target {
	var names []string
	for _, known := range s.Parameters() {
		names = append(names, known.Name)
	}
	return dbclient.Target{Password: adminPassword, Parameters: strings.Join(names, ",")}
}

func settings(t *testing.T, operator *Connection) plan.Settings {
	t.Helper()
	state, err := operator.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return plan.ParseSettings(state.Settings)
}

func TestEachValueOfALiveParameterIsTakenByARunningServer(t *testing.T) {
	forEveryOne(t, func(t *testing.T, s server) {
		operator := dialFor(t, s.start(t), s.knowing())
		for name, values := range s.samples(t) {
			known, _ := plan.FindParameter(s.Parameters(), name)
			if !known.IsLive {
				continue
			}
			for _, value := range append(values[1:], known.Default) {
				if err := operator.Configure(t.Context(), plan.Settings{name: value}); err != nil {
					t.Errorf("%s = %q: %v", name, value, err)
				}
				if got := settings(t, operator)[name]; got != value {
					t.Errorf("%s was set to %q, and is %q", name, value, got)
				}
			}
		}
		if different := plan.LiveDefaults(s.Parameters()).Without(settings(t, operator)); len(different) > 0 {
			t.Errorf("other than by default are %v", different)
		}
	})
}

func TestAFixedParameterIsntTakenByARunningServer(t *testing.T) {
	forEveryOne(t, func(t *testing.T, s server) {
		if err := dial(t, s.start(t), adminPassword).Configure(t.Context(), plan.Settings{"tcp-backlog": "20"}); err == nil {
			t.Error("it is live")
		}
	})
}

// TestEachValueIsReadFromTheFiles starts a member with one value after the other,
// of all parameters at a time.
func TestEachValueIsReadFromTheFiles(t *testing.T) {
	forEveryOne(t, func(t *testing.T, s server) {
		samples, data, most := s.samples(t), t.TempDir(), 0
		for _, values := range samples {
			most = max(most, len(values))
		}
		for round := range most {
			live, fixed := plan.Settings{}, plan.Settings{}
			for _, known := range s.Parameters() {
				value := samples[known.Name][round%len(samples[known.Name])]
				if known.IsLive {
					live[known.Name] = value
				} else {
					fixed[known.Name] = value
				}
			}
			member := s.member(data, plan.TopologyNew)
			member.Files, member.LiveFiles = s.Files(fixed), s.LiveFiles(live)
			running := enginetest.Start(t, member)
			running.WaitFor(s.Probe()...)
			operator := dialFor(t, running, s.knowing())
			maps.Copy(live, fixed)
			if different := live.Without(settings(t, operator)); len(different) > 0 {
				t.Errorf("round %d: it isn't %v", round, different)
			}
			running.Stop()
		}
	})
}

func TestAStateIsTheSameWhileNothingHappens(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		target := s.knowing()
		target.AppUsername, target.AppPassword = s.Username(), appPassword
		operator := dialFor(t, s.start(t), target)
		first, err := operator.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if again, err := operator.State(t.Context()); err != nil || again != first {
				t.Errorf("first %+v, then %+v (%v)", first, again, err)
			}
		}
	})
}

func TestARefusedParameterIsNamedAndKeepsNoOtherBack(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		operator := dialFor(t, s.start(t), s.knowing())
		for name, value := range map[string]string{
			"maxmemory-policy": "sometimes", "hash-max-listpack-value": "x", "nonsense": "1", "bind": "\r\n",
			"maxclients": strconv.FormatUint(openFiles(t)+100, 10),
		} {
			err := operator.Configure(t.Context(), plan.Settings{"activerehashing": "no", name: value, "tracking-table-max-keys": "7"})
			var refusal *dbclient.Refusal
			if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Reason, name+" = ") {
				t.Errorf("%s gives %v", name, err)
			}
			if got := settings(t, operator); got["activerehashing"] != "no" || got["tracking-table-max-keys"] != "7" {
				t.Errorf("beside %s: %v", name, got)
			}
			if err := operator.Configure(t.Context(), plan.Settings{"activerehashing": "yes", "tracking-table-max-keys": "8"}); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAStartTakesTheNewestLiveParametersWhateverWasPinned(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		running := s.start(t)
		operator := dialFor(t, running, s.knowing())
		if err := errors.Join(
			operator.Configure(t.Context(), plan.Settings{"hz": "50", "maxmemory": "200000000"}),
			operator.client.ConfigRewrite(t.Context()).Err(),
			running.WriteLive(s.LiveFiles(with(s, "hz", "60"))),
		); err != nil {
			t.Fatal(err)
		}
		running.Kill()
		s.restart(running)
		if got := settings(t, operator); got["hz"] != "60" || got["maxmemory"] != "0" {
			t.Errorf("hz is %s and maxmemory %s", got["hz"], got["maxmemory"])
		}
	})
}

// with is the defaults, and a parameter that has another value.
func with(s server, name, value string) plan.Settings {
	live := plan.LiveDefaults(s.Parameters())
	live[name] = value
	return live
}

func TestLiveParametersThatTheServerDoesntTakeKeepNoMemberFromStarting(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		bad := s.LiveFiles(with(s, "hz", "soon"))
		member := s.member(t.TempDir(), plan.TopologyNew)
		member.LiveFiles = bad
		running := enginetest.Start(t, member)
		running.WaitFor(s.Probe()...)
		operator := dialFor(t, running, s.knowing())
		if got := settings(t, operator); got["hz"] != "10" || !strings.Contains(running.Output(), "'hz soon'") {
			t.Errorf("hz is %s; it printed\n%s", got["hz"], running.Output())
		}
		for _, files := range []map[string]string{s.LiveFiles(with(s, "hz", "70")), bad} {
			running.Kill()
			if err := running.WriteLive(files); err != nil {
				t.Fatal(err)
			}
			s.restart(running)
			if got := settings(t, operator); got["hz"] != "70" {
				t.Errorf("hz is %s", got["hz"])
			}
		}
	})
}

func TestAConfigurationThatTheServerDoesntTakeIsRefusedBeforeAnythingIsMade(t *testing.T) {
	forEveryOne(t, func(t *testing.T, s server) {
		member := s.member(t.TempDir(), plan.TopologyNew)
		member.Files = s.Files(plan.Settings{"tcp-backlog": "many"})
		running := enginetest.Start(t, member)
		exit, message := running.Wait(), running.TerminationMessage()
		if exit.Code != 78 || !strings.Contains(message, ">>> 'tcp-backlog many'") || strings.Contains(message, "\n") {
			t.Errorf("it ended with %d and %q; it printed\n%s", exit.Code, message, exit.Output)
		}
		if got := listing(t, member.Data); got != "." {
			t.Errorf("the volume holds %s", got)
		}
	})
}
