//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/engine/enginetest"
	engine "coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	adminPassword = `admin\ "quo'ted" pass`
	appPassword   = "app-pass$1"
	address       = "127.0.0.1:5432"
	patience      = 30 * time.Second
)

// newMember is a member as the operator would make it, with an empty volume.
func newMember(t *testing.T, version string) enginetest.Member {
	t.Helper()
	image, isKnown := engine.New().Image(version)
	if !isKnown {
		t.Fatalf("there is no version %s", version)
	}
	return enginetest.Member{
		Image: image, Files: engine.New().Files(nil), LiveFiles: liveFiles(nil), Command: engine.New().Command(),
		AuthPassword: appPassword, AdminPassword: adminPassword,
		Env:  map[string]string{plan.TopologyStateVariable: "new"},
		Data: filepath.Join(t.TempDir(), "data"),
	}
}

// liveFiles are those with the live parameters, of which some aren't as usual.
func liveFiles(others plan.Settings) map[string]string {
	live := plan.LiveDefaults(engine.New().Parameters())
	maps.Copy(live, others)
	return engine.New().LiveFiles(live)
}

// start starts a member, and waits until it serves.
func start(t *testing.T, member enginetest.Member) *enginetest.Running {
	t.Helper()
	running := enginetest.Start(t, member)
	running.WaitFor(engine.New().Probe()...)
	return running
}

// startPromoted starts a member, and promotes it.
func startPromoted(t *testing.T, member enginetest.Member) *enginetest.Running {
	t.Helper()
	running := start(t, member)
	operator := dial(t, running, member.AdminPassword)
	mustPromote(t, operator)
	awaitRole(t, operator, v1alpha1.MemberRolePrimary)
	return running
}

// mustPromote promotes a member, as soon as it has executed what it has.
func mustPromote(t *testing.T, operator *Connection) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := operator.Promote(ctx, plan.Acknowledgement{})
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("promote: %v", err)
		}
	}
}

// restart starts a member that ended again, and waits until it serves.
func restart(running *enginetest.Running) {
	running.Restart()
	running.WaitFor(engine.New().Probe()...)
}

// dial makes the operator's connection to a member.
func dial(t *testing.T, running *enginetest.Running, password string) *Connection {
	t.Helper()
	return dialFor(t, running, dbclient.Target{Password: password})
}

// dialFor makes the operator's connection to a member, of one that knows what the
// member should have.
func dialFor(t *testing.T, running *enginetest.Running, target dbclient.Target) *Connection {
	t.Helper()
	target.Address, target.Username = address, engine.AdminUsername
	connection := Dial(target)
	if connection.broken != nil {
		t.Fatal(connection.broken)
	}
	connection.config.DialFunc = running.Dial
	t.Cleanup(func() { _ = connection.Close() }) // the member may be gone
	return connection
}

// awaitRole asks until the member has the role.
func awaitRole(t *testing.T, operator *Connection, want v1alpha1.MemberRole) plan.EngineState {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		state, err := operator.State(ctx)
		if err == nil && state.Role == want {
			return state
		}
		if ctx.Err() != nil {
			t.Fatalf("it is %+v (%v), and should be %s", state, err, want)
		}
	}
}

// session is a client's connection, to any database and as anybody.
type session struct {
	t      *testing.T
	member *pgconn.PgConn
}

// connect connects a client; parameters are name and value in turn.
func connect(t *testing.T, running *enginetest.Running, username, password, database string, parameters ...string) (session, error) {
	t.Helper()
	config, err := configure(dbclient.Target{Address: address, Username: username, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc, config.Database, config.RuntimeParams = running.Dial, database, map[string]string{}
	for i := 0; i+1 < len(parameters); i += 2 {
		config.RuntimeParams[parameters[i]] = parameters[i+1]
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	member, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return session{}, err
	}
	t.Cleanup(func() { _ = member.Close(context.Background()) }) // the member may be gone
	return session{t, member}, nil
}

// connectApp connects the application.
func connectApp(t *testing.T, running *enginetest.Running) session {
	t.Helper()
	client, err := connect(t, running, engine.Username, appPassword, engine.Database)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// query runs statements, and returns the rows of the last, with columns and rows
// on lines of their own.
func (s session) query(statements string) (string, error) {
	results, err := s.member.Exec(s.t.Context(), statements).ReadAll()
	if err != nil || len(results) == 0 {
		return "", err
	}
	var cells []string
	for _, row := range results[len(results)-1].Rows {
		for _, cell := range row {
			cells = append(cells, string(cell))
		}
	}
	return strings.Join(cells, "\n"), nil
}

func (s session) mustQuery(statements string) string {
	s.t.Helper()
	answer, err := s.query(statements)
	if err != nil {
		s.t.Fatalf("%s: %v", statements, err)
	}
	return answer
}

// code is the class of a server's error; "" for none, and the whole text of one
// that isn't the server's.
func code(err error) string {
	var answer *pgconn.PgError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &answer):
		return answer.Code
	default:
		return err.Error()
	}
}

// eachVersion runs a test with each version that there is; with the newest, where
// tests are to be short.
func eachVersion(t *testing.T, test func(*testing.T, enginetest.Member)) {
	versions := engine.New().Versions()
	if testing.Short() {
		versions = versions[len(versions)-1:]
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) { test(t, newMember(t, version)) })
	}
}

func TestANewMemberTakesNoWritesUntilItIsPromoted(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		running := start(t, member)
		operator := dial(t, running, adminPassword)
		before := awaitRole(t, operator, v1alpha1.MemberRoleReplica)
		if !strings.Contains(member.Image, ":"+strings.Split(before.Version, ".")[0]) || before.RunID == "" || before.IsLoading {
			t.Errorf("it says %+v", before)
		}
		app := connectApp(t, running)
		if _, err := app.query("CREATE TABLE t (i int)"); code(err) != "25006" {
			t.Errorf("a write gives %v", err)
		}
		for range 2 {
			mustPromote(t, operator)
		}
		after := awaitRole(t, operator, v1alpha1.MemberRolePrimary)
		if after.RunID != before.RunID {
			t.Errorf("before %+v, after %+v", before, after)
		}
		app.mustQuery("CREATE TABLE t (i int)")
		mustPromote(t, operator)
		if again := awaitRole(t, operator, v1alpha1.MemberRolePrimary); plan.IsNews(after, again) {
			t.Errorf("before %+v, after nothing %+v", after, again)
		}
	})
}

func TestAMemberKeepsItsDataAndItsRole(t *testing.T) {
	stop := func(t *testing.T, running *enginetest.Running) {
		if exit := stopAsTheKubeletDoes(t, running); exit.Code != 0 {
			t.Errorf("it ended with %d", exit.Code)
		}
	}
	kill := func(_ *testing.T, running *enginetest.Running) { running.Kill() }
	for sentence, row := range map[string]struct {
		role v1alpha1.MemberRole
		end  func(*testing.T, *enginetest.Running)
	}{
		"a primary over a stop":               {v1alpha1.MemberRolePrimary, stop},
		"a primary over a kill":               {v1alpha1.MemberRolePrimary, kill},
		"one that was never promoted, a stop": {v1alpha1.MemberRoleReplica, stop},
		"one that was never promoted, a kill": {v1alpha1.MemberRoleReplica, kill},
		"a primary over a kill, and one as it starts": {v1alpha1.MemberRolePrimary, func(t *testing.T, running *enginetest.Running) {
			running.Kill()
			running.Restart()
			running.Kill()
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			running := start(t, newMember(t, "18"))
			operator := dial(t, running, adminPassword)
			if row.role == v1alpha1.MemberRolePrimary {
				mustPromote(t, operator)
				awaitRole(t, operator, v1alpha1.MemberRolePrimary)
				connectApp(t, running).mustQuery("CREATE TABLE t AS SELECT 'kept' AS word")
			}
			before := awaitRole(t, operator, row.role)
			row.end(t, running)
			restart(running)
			after := awaitRole(t, operator, row.role)
			if after.RunID == before.RunID {
				t.Errorf("before %+v, after %+v", before, after)
			}
			if row.role == v1alpha1.MemberRolePrimary {
				if got := connectApp(t, running).mustQuery("SELECT word FROM t"); got != "kept" {
					t.Errorf("the table holds %q", got)
				}
			}
		})
	}
}

// stopAsTheKubeletDoes runs the hook, and then sends SIGTERM.
func stopAsTheKubeletDoes(t *testing.T, running *enginetest.Running) enginetest.Exit {
	t.Helper()
	if _, err := running.Exec(t.Context(), "", engine.New().Stop()...); err != nil {
		t.Fatal(err)
	}
	return running.Stop()
}

func TestAMemberStopsCleanlyThoughClientsStay(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		running := startPromoted(t, member)
		app := connectApp(t, running)
		app.mustQuery("BEGIN; CREATE TABLE unfinished (i int)")
		asked := time.Now()
		exit := stopAsTheKubeletDoes(t, running)
		if took := time.Since(asked); exit.Code != 0 || took > 10*time.Second || !strings.Contains(exit.Output, "database system is shut down") {
			t.Errorf("it ended with %d after %s; it printed\n%s", exit.Code, took, exit.Output)
		}
		if _, err := app.query("SELECT 1"); err == nil {
			t.Error("its client wasn't disconnected")
		}
		restart(running)
		if output := running.Output(); strings.Contains(output, "not properly shut down") {
			t.Errorf("it wasn't clean:\n%s", output)
		}
	})
}

func TestSIGTERMAloneWaitsForClientsWhichIsWhyThereIsAHook(t *testing.T) {
	running := startPromoted(t, newMember(t, "18"))
	app := connectApp(t, running)
	running.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if _, err := connect(t, running, engine.Username, appPassword, engine.Database); code(err) == cannotConnectNow {
			break
		} else if ctx.Err() != nil {
			t.Fatalf("a new client gets %v", err)
		}
	}
	if _, err := dial(t, running, adminPassword).State(t.Context()); err == nil || !strings.Contains(err.Error(), "it starts or stops") {
		t.Errorf("the operator gets %v", err)
	}
	app.mustQuery("SELECT 1")
	if _, err := running.Exec(t.Context(), "", engine.New().Stop()...); err != nil {
		t.Fatal(err)
	}
	if exit := running.Wait(); exit.Code != 0 {
		t.Errorf("it ended with %d", exit.Code)
	}
}

func TestTheOperatorGetsInWhereApplicationsHaveTakenAllConnections(t *testing.T) {
	running := start(t, newMember(t, "18"))
	for i := 0; ; i++ {
		_, err := connect(t, running, engine.Username, appPassword, engine.Database)
		if code(err) == tooManyConnections {
			break
		}
		if err != nil || i == 200 {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	awaitRole(t, dial(t, running, adminPassword), v1alpha1.MemberRoleReplica)
}

func TestAConnectionThatBrokeIsMadeAnew(t *testing.T) {
	running := start(t, newMember(t, "18"))
	operator := dial(t, running, adminPassword)
	awaitRole(t, operator, v1alpha1.MemberRoleReplica)
	running.Kill()
	if _, err := operator.State(t.Context()); err == nil {
		t.Error("a dead member answers")
	}
	restart(running)
	awaitRole(t, operator, v1alpha1.MemberRoleReplica)
}

func TestNothingElseStandsInForWhatTheOperatorUses(t *testing.T) {
	running := startPromoted(t, newMember(t, "18"))
	superuser, err := connect(t, running, engine.AdminUsername, adminPassword, database)
	if err != nil {
		t.Fatal(err)
	}
	superuser.mustQuery(`CREATE FUNCTION public.pg_is_in_recovery() RETURNS bool LANGUAGE sql AS 'SELECT true'`)
	superuser.mustQuery(`ALTER ROLE operator SET search_path = public, pg_catalog`)
	if got := superuser.mustQuery("SET search_path = public, pg_catalog; SELECT pg_is_in_recovery()"); got != "t" {
		t.Fatalf("the stand-in says %q", got)
	}
	awaitRole(t, dial(t, running, adminPassword), v1alpha1.MemberRolePrimary)
}

func TestTheConfigurationIsAcceptedWhole(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		running := start(t, member)
		printed, err := running.Exec(t.Context(), "", "postgres", "-C", "shared_buffers", "-D", "/data/db", "-c", "config_file=/boot/postgresql.conf")
		if err != nil || strings.TrimSpace(printed) != "16384" && strings.TrimSpace(printed) != "128MB" {
			t.Errorf("postgres -C prints %q (%v)", printed, err)
		}
		superuser, err := connect(t, running, engine.AdminUsername, adminPassword, database)
		if err != nil {
			t.Fatal(err)
		}
		refused := superuser.mustQuery("SELECT name, setting, error FROM pg_file_settings WHERE error IS NOT NULL OR NOT applied")
		if refused != "" {
			t.Errorf("it doesn't apply\n%s", refused)
		}
		// One line of the first file includes the other.
		lines := strings.Count(member.Files["postgresql.conf"], "\n") - 1 + strings.Count(member.LiveFiles["live.conf"], "\n")
		if got := superuser.mustQuery("SELECT count(*) FROM pg_file_settings WHERE sourcefile IN ('/boot/postgresql.conf', '/data/live.conf')"); got != strconv.Itoa(lines) {
			t.Errorf("it read %s settings of %d", got, lines)
		}
		if got := superuser.mustQuery("SELECT current_setting('data_checksums'), current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')"); got != "on\non\non\non" {
			t.Errorf("checksums, fsync, synchronous_commit and full_page_writes are\n%s", got)
		}
		if got := superuser.mustQuery("SELECT count(*) FROM pg_hba_file_rules WHERE error IS NOT NULL OR auth_method <> 'scram-sha-256'"); got != "0" {
			t.Errorf("%s rules are wrong", got)
		}
	})
}
