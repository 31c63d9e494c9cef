//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/engine/enginetest"
	engine "coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// everyVersion runs a test with each version that there is.
func everyVersion(t *testing.T, test func(*testing.T, enginetest.Member)) {
	for _, version := range engine.New().Versions() {
		t.Run(version, func(t *testing.T) { test(t, newMember(t, version)) })
	}
}

// samples returns values of each parameter.
func samples(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, known := range engine.New().Parameters() {
		all[known.Name] = enginetest.Samples(t, known)
		if known.Name == "TimeZone" {
			all[known.Name] = append(all[known.Name], "Asia/Shanghai", "America/Argentina/Buenos_Aires")
		}
	}
	return all
}

// rounds has each value of each parameter at least once, in as few settings of
// all of them as that takes.
func rounds(all map[string][]string) []plan.Settings {
	most := 0
	for _, values := range all {
		most = max(most, len(values))
	}
	var rounds []plan.Settings
	for i := range most {
		settings := plan.Settings{}
		for name, values := range all {
			settings[name] = values[i%len(values)]
		}
		rounds = append(rounds, settings)
	}
	return rounds
}

// divide divides settings into those that are live and those that aren't.
func divide(settings plan.Settings) (live, fixed plan.Settings) {
	live, fixed = plan.Settings{}, plan.Settings{}
	for name, value := range settings {
		if known, _ := plan.FindParameter(engine.New().Parameters(), name); known.IsLive {
			live[name] = value
		} else {
			fixed[name] = value
		}
	}
	return live, fixed
}

// knowing is a target of which State gives all parameters, the fixed ones too.
func knowing() dbclient.Target {
	var names []string
	for _, known := range engine.New().Parameters() {
		names = append(names, known.Name)
	}
	return dbclient.Target{Password: adminPassword, Parameters: strings.Join(names, ",")}
}

// awaitSettings asks until the member has the settings.
func awaitSettings(t *testing.T, operator *Connection, want plan.Settings) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		state, err := operator.State(ctx)
		different := want.Without(plan.ParseSettings(state.Settings))
		if err == nil && len(different) == 0 {
			return
		}
		if ctx.Err() != nil {
			t.Errorf("it isn't %v, but\n%s (%v)", different, state.Settings, err)
			return
		}
	}
}

func TestEachValueOfALiveParameterIsTakenByARunningServer(t *testing.T) {
	everyVersion(t, func(t *testing.T, member enginetest.Member) {
		operator := dialFor(t, start(t, member), knowing())
		usual := plan.LiveDefaults(engine.New().Parameters())
		awaitSettings(t, operator, usual)
		for _, round := range append(rounds(samples(t)), usual) {
			live, _ := divide(round)
			if err := operator.Configure(t.Context(), live); err != nil {
				t.Error(err)
			}
			awaitSettings(t, operator, live)
		}
	})
}

func TestEachValueIsReadFromTheFiles(t *testing.T) {
	everyVersion(t, func(t *testing.T, member enginetest.Member) {
		all := samples(t)
		// The greatest ones are more than this machine has; the server reads those
		// in the next test.
		maps.Copy(all, map[string][]string{
			"max_connections": {"100", "10", "500"}, "max_locks_per_transaction": {"64", "10", "256"}, "max_prepared_transactions": {"0", "100"},
			"shared_buffers": {"16384", "128", "32768"}, "track_activity_query_size": {"1024", "100", "16384"},
		})
		for _, round := range rounds(all) {
			live, fixed := divide(round)
			member.Files, member.LiveFiles = engine.New().Files(fixed), engine.New().LiveFiles(live)
			running := start(t, member)
			awaitSettings(t, dialFor(t, running, knowing()), round)
			stopAsTheKubeletDoes(t, running)
		}
	})
}

func TestEachValueOfAFixedParameterIsRead(t *testing.T) {
	everyVersion(t, func(t *testing.T, member enginetest.Member) {
		type sample struct{ name, value string }
		var tried []sample
		files := maps.Clone(member.Files)
		for name, values := range samples(t) {
			for _, value := range values {
				if _, fixed := divide(plan.Settings{name: value}); len(fixed) > 0 {
					files[strconv.Itoa(len(tried))] = engine.New().Files(fixed)["postgresql.conf"]
					tried = append(tried, sample{name, value})
				}
			}
		}
		member.Files = files
		running := start(t, member)
		for i, sample := range tried {
			printed, err := running.Exec(t.Context(), "", "postgres", "-C", sample.name, "-D", "/data/db", "-c", "config_file=/boot/"+strconv.Itoa(i))
			known, _ := plan.FindParameter(engine.New().Parameters(), sample.name)
			if got, _ := known.Read(strings.TrimSpace(printed)); err != nil || got != sample.value {
				t.Errorf("%s = %s is read as %q (%v)", sample.name, sample.value, printed, err)
			}
		}
	})
}

func TestWhatIsLiveIsWhatTheServerSaysOfItself(t *testing.T) {
	isFixed := map[string]bool{}
	everyVersion(t, func(t *testing.T, member enginetest.Member) {
		superuser, err := connect(t, start(t, member), engine.AdminUsername, adminPassword, database)
		if err != nil {
			t.Fatal(err)
		}
		for _, known := range engine.New().Parameters() {
			context := superuser.mustQuery("SELECT context FROM pg_settings WHERE name = '" + known.Name + "'")
			if !slices.Contains([]string{"sighup", "superuser", "user", "postmaster"}, context) {
				t.Errorf("%s is set by %q", known.Name, context)
			}
			isFixed[known.Name] = isFixed[known.Name] || context == "postmaster"
		}
	})
	for _, known := range engine.New().Parameters() {
		if known.IsLive == isFixed[known.Name] {
			t.Errorf("%s: live is %t", known.Name, known.IsLive)
		}
	}
}

func TestARefusedParameterIsNamedAndKeepsNoOtherBack(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		operator := dialFor(t, start(t, member), knowing())
		for name, value := range map[string]string{
			"work_mem": "much", "autovacuum_naptime": "9999999999", "nonsense": "1", "TimeZone": "Asia/Nowhere", "listen_addresses": "a\nb",
			"config_file": "/x", `quo"ted`: `it's \ "odd"`, "jit": "'; DROP DATABASE app; --",
		} {
			err := operator.Configure(t.Context(), plan.Settings{"bgwriter_delay": "300", name: value, "track_functions": "all"})
			var refusal *dbclient.Refusal
			if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Reason, name+" = ") {
				t.Errorf("%s gives %v", name, err)
			}
			awaitSettings(t, operator, plan.Settings{"bgwriter_delay": "300", "track_functions": "all"})
			if err := operator.Configure(t.Context(), plan.Settings{"bgwriter_delay": "200", "track_functions": "none"}); err != nil {
				t.Error(err)
			}
			awaitSettings(t, operator, plan.LiveDefaults(engine.New().Parameters()))
		}
	})
}

func TestTheServerReadsAConfiguredValueAsItWas(t *testing.T) {
	running := start(t, newMember(t, "18"))
	target := knowing()
	target.Parameters = "log_line_prefix"
	operator := dialFor(t, running, target)
	for _, value := range []string{`it's`, `\`, `\'`, `"`, "$1 %s", "a\tb", "'; SELECT 1; --", "密码", "# no comment", "x\x01"} {
		if err := operator.Configure(t.Context(), plan.Settings{"log_line_prefix": value}); err != nil {
			t.Errorf("%q: %v", value, err)
		}
		awaitSettings(t, operator, plan.Settings{"log_line_prefix": value})
	}
}

func TestAStartTakesTheNewestLiveParametersWhateverWasSet(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		running := startPromoted(t, member)
		operator := dialFor(t, running, knowing())
		superuser, err := connect(t, running, engine.AdminUsername, adminPassword, database)
		if err != nil {
			t.Fatal(err)
		}
		superuser.mustQuery("ALTER SYSTEM SET log_disconnections = on")
		superuser.mustQuery("ALTER SYSTEM SET max_connections = 77")
		if err := errors.Join(
			operator.Configure(t.Context(), plan.Settings{"work_mem": "100", "TimeZone": "Asia/Tokyo"}),
			running.WriteLive(liveFiles(plan.Settings{"work_mem": "200"})),
		); err != nil {
			t.Fatal(err)
		}
		running.Kill()
		restart(running)
		awaitSettings(t, operator, plan.Settings{"work_mem": "200", "TimeZone": "UTC", "max_connections": "100"})
		if superuser, err = connect(t, running, engine.AdminUsername, adminPassword, database); err != nil {
			t.Fatal(err)
		}
		if got := superuser.mustQuery("SHOW log_disconnections"); got != "on" {
			t.Error("what the files don't set is lost")
		}
	})
}

func TestLiveParametersThatTheServerDoesntTakeKeepNoMemberFromStarting(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		bad := liveFiles(plan.Settings{"bgwriter_delay": "soon"})
		member.LiveFiles = bad
		running := start(t, member)
		operator := dialFor(t, running, knowing())
		awaitSettings(t, operator, plan.Settings{"bgwriter_delay": "200"})
		if !strings.Contains(running.Output(), `invalid value for parameter "bgwriter_delay": "soon"`) {
			t.Errorf("it printed\n%s", running.Output())
		}
		for _, files := range []map[string]string{liveFiles(plan.Settings{"bgwriter_delay": "300"}), bad} {
			running.Kill()
			if err := running.WriteLive(files); err != nil {
				t.Fatal(err)
			}
			restart(running)
			awaitSettings(t, operator, plan.Settings{"bgwriter_delay": "300"})
		}
	})
}

func TestAConfigurationThatTheServerDoesntTakeIsRefused(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		bad := engine.New().Files(plan.Settings{"max_connections": "many"})
		fresh := member
		fresh.Files, fresh.Data = bad, t.TempDir()
		used := member
		startPromoted(t, used).Kill()
		used.Files = bad
		for sentence, refused := range map[string]enginetest.Member{"a new one": fresh, "one with data": used} {
			running := enginetest.Start(t, refused)
			exit, message := running.Wait(), running.TerminationMessage()
			if exit.Code != 78 || !strings.Contains(message, `invalid value for parameter "max_connections": "many"`) || strings.Contains(message, "\n") {
				t.Errorf("%s ended with %d and %q; it printed\n%s", sentence, exit.Code, message, exit.Output)
			}
		}
		if got := list(t, fresh.Data); !slices.Equal(got, []string{".lock", "live.conf"}) {
			t.Errorf("a new one left %v", got)
		}
		awaitRole(t, dial(t, start(t, member), adminPassword), v1alpha1.MemberRolePrimary)
	})
}

// A standby doesn't start with less room than the server had that wrote what it
// has read.
func TestAMemberThatWasNeverPromotedMayGetLessRoom(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		for _, most := range []string{"200", "50", "50", "100"} {
			member.Files = engine.New().Files(plan.Settings{"max_connections": most, "max_worker_processes": most})
			running := start(t, member)
			operator := dialFor(t, running, knowing())
			awaitRole(t, operator, v1alpha1.MemberRoleReplica)
			awaitSettings(t, operator, plan.Settings{"max_connections": most})
			running.Kill()
		}
	})
}
