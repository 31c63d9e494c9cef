//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"coolops.cn/database-manager/internal/engine/enginetest"
	engine "coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestAWrongPasswordIsReportedAsSuch(t *testing.T) {
	running := start(t, newMember(t, "18"))
	for _, password := range []string{"wrong", "", appPassword} {
		if _, err := dial(t, running, password).State(t.Context()); !errors.Is(err, ErrRefused) {
			t.Errorf("the password %q gives %v", password, err)
		}
	}
}

// login tells how each account fares with the passwords of a member; "" is well.
func login(t *testing.T, running *enginetest.Running, member enginetest.Member) string {
	t.Helper()
	_, app := connect(t, running, engine.Username, member.AuthPassword, engine.Database)
	_, operator := connect(t, running, engine.AdminUsername, member.AdminPassword, database)
	_, replicator := connect(t, running, engine.ReplicationUsername, member.AdminPassword, database, "replication", "true")
	return code(app) + code(operator) + code(replicator)
}

func TestPasswordsThatChangedHoldFromTheNextStartOn(t *testing.T) {
	const refused = invalidPassword + invalidPassword + invalidPassword
	for sentence, row := range map[string]struct {
		start func(*testing.T, enginetest.Member) *enginetest.Running
		end   func(*enginetest.Running)
		role  v1alpha1.MemberRole
	}{
		"of a primary that was killed":                 {startPromoted, func(r *enginetest.Running) { r.Kill() }, v1alpha1.MemberRolePrimary},
		"of a primary that was stopped":                {startPromoted, func(r *enginetest.Running) { stopAsTheKubeletDoes(t, r) }, v1alpha1.MemberRolePrimary},
		"of one that was killed before its promotion":  {start, func(r *enginetest.Running) { r.Kill() }, v1alpha1.MemberRoleReplica},
		"of one that was stopped before its promotion": {start, func(r *enginetest.Running) { stopAsTheKubeletDoes(t, r) }, v1alpha1.MemberRoleReplica},
	} {
		t.Run(sentence, func(t *testing.T) {
			old := newMember(t, "18")
			first := row.start(t, old)
			if got := login(t, first, old); got != "" {
				t.Fatalf("with the first passwords: %s", got)
			}
			row.end(first)
			changed := old
			changed.AuthPassword, changed.AdminPassword = "another' one", `and\yet another`
			second := start(t, changed)
			if got := login(t, second, changed); got != "" {
				t.Errorf("with the new passwords: %s", got)
			}
			if got := login(t, second, old); got != refused {
				t.Errorf("with the old passwords: %s", got)
			}
			operator := dial(t, second, changed.AdminPassword)
			awaitRole(t, operator, row.role)
			mustPromote(t, operator)
			awaitRole(t, operator, v1alpha1.MemberRolePrimary)
		})
	}
}

// A standby's accounts are its primary's, and to change them in a clone would
// make it another database.
func TestAStandbyKeepsThePasswordsOfItsPrimary(t *testing.T) {
	old := newMember(t, "18")
	first := startPromoted(t, old)
	if _, err := first.Exec(t.Context(), "", "/bin/sh", "-c", "PGPASSWORD=$(cat /secrets/admin/password) exec pg_basebackup -D /data/clone -h 127.0.0.1 -U replicator -X stream -c fast"); err != nil {
		t.Fatal(err)
	}
	changed := newMember(t, "18")
	if err := errors.Join(
		os.WriteFile(filepath.Join(old.Data, "clone", "standby.signal"), nil, 0o644),
		os.Mkdir(changed.Data, 0o755),
		os.Rename(filepath.Join(old.Data, "clone"), filepath.Join(changed.Data, "db")),
		os.WriteFile(filepath.Join(changed.Data, "engine"), []byte("postgresql 18\n"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	changed.AuthPassword, changed.AdminPassword = "another", "and another"
	second := start(t, changed)
	if got := login(t, second, old); got != "" {
		t.Errorf("with its primary's passwords: %s", got)
	}
	awaitRole(t, dial(t, second, old.AdminPassword), v1alpha1.MemberRoleReplica)
	if !strings.Contains(second.Output(), "gets its accounts' passwords from its primary") {
		t.Errorf("it doesn't say so, but\n%s", second.Output())
	}
}

// One that was never promoted is made none for as long as its accounts are set,
// and must not stay that when it is ended just then.
func TestAMemberThatEndsWhileItsAccountsAreSetIsntAPrimary(t *testing.T) {
	for how, end := range map[string]func(*enginetest.Running) enginetest.Exit{
		"SIGTERM": (*enginetest.Running).Stop, "SIGKILL": (*enginetest.Running).Kill,
	} {
		t.Run(how, func(t *testing.T) {
			member := newMember(t, "18")
			start(t, member).Kill()
			member.AuthPassword, member.AdminPassword = "another", "and another"
			running := enginetest.Start(t, member)
			awaitFile(t, filepath.Join(member.Data, "db", "standby.parked"))
			if exit := end(running); exit.Code != 143 && exit.Code != 137 {
				t.Errorf("it ended with %d; it printed\n%s", exit.Code, exit.Output)
			}
			again := start(t, member)
			awaitRole(t, dial(t, again, member.AdminPassword), v1alpha1.MemberRoleReplica)
			if got := login(t, again, member); got != "" {
				t.Errorf("with the new passwords: %s", got)
			}
		})
	}
}

func TestAccountsAreRepairedWhenPasswordsChange(t *testing.T) {
	member := newMember(t, "18")
	running := startPromoted(t, member)
	superuser, err := connect(t, running, engine.AdminUsername, adminPassword, database)
	if err != nil {
		t.Fatal(err)
	}
	superuser.mustQuery("ALTER ROLE app SUPERUSER CREATEDB CREATEROLE REPLICATION BYPASSRLS NOLOGIN")
	superuser.mustQuery("DROP ROLE replicator")
	superuser.mustQuery("ALTER SYSTEM SET default_transaction_read_only = on")
	superuser.mustQuery("ALTER SYSTEM SET password_encryption = md5")
	superuser.mustQuery("ALTER ROLE operator SET default_transaction_read_only = on")
	running.Kill()
	member.AuthPassword = "another"
	again := start(t, member)
	if got := login(t, again, member); got != "" {
		t.Errorf("with the new passwords: %s", got)
	}
	if superuser, err = connect(t, again, engine.AdminUsername, adminPassword, database); err != nil {
		t.Fatal(err)
	}
	if got := superuser.mustQuery("SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = 'app'"); got != "f" {
		t.Error("the application may still do more than it should")
	}
	if got := superuser.mustQuery("SELECT count(*) FROM pg_authid WHERE rolpassword LIKE 'SCRAM-SHA-256$%'"); got != "3" {
		t.Errorf("%s accounts have a SCRAM verifier", got)
	}
}

// oddPassword is a password that is easily got wrong.
type oddPassword struct {
	text string
	// isForLibpq and isForDriver tell which client tries it. The driver of these
	// tests prepares letters that Unicode holds for variants of others in another
	// way than the server does, and a shell variable, which libpq gets it from,
	// loses newlines at the end.
	isForLibpq, isForDriver bool
}

// oddPasswords are some that were thought of, and some at random.
func oddPasswords(random *rand.Rand) []oddPassword {
	var ascii strings.Builder
	for char := 1; char < 128; char++ {
		ascii.WriteByte(byte(char))
	}
	var odd []oddPassword
	for _, text := range []string{
		ascii.String(), `'`, `''`, `\`, `\'`, `'; DROP DATABASE app; --`, `$1 $$ $(id) ${HOME}`, "`id`", ` leading and trailing `,
		`E'\x41'`, `%s%n`, "-n", `\n`, `\047`, "pass\rword\r", "pässwörd", "密码", "🔑", "tab\tbell\a", "a;\n\nSELECT 1;", "SCRAM-SHA-256", "md5",
	} {
		odd = append(odd, oddPassword{text, true, true})
	}
	for _, text := range []string{"ﬁ①½", "soft\u00adhyphen", "no\u00a0break"} {
		odd = append(odd, oddPassword{text, true, false})
	}
	for _, text := range []string{"newline\n", "\n\n"} {
		odd = append(odd, oddPassword{text, false, true})
	}
	for _, limit := range []int32{127, 127, 127, unicode.MaxRune, unicode.MaxRune, unicode.MaxRune} {
		var text strings.Builder
		for range 1 + random.IntN(40) {
			text.WriteRune(1 + random.Int32N(limit))
		}
		odd = append(odd, oddPassword{strings.TrimRight(text.String(), "\n") + "x", true, limit == 127})
	}
	return odd
}

func TestAnyPasswordHolds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	member := newMember(t, "18")
	stopAsTheKubeletDoes(t, startPromoted(t, member))
	passwords := oddPasswords(rand.New(rand.NewPCG(seed, 0)))
	if testing.Short() {
		passwords = passwords[:8]
	}
	for pair := range slices.Chunk(passwords, 2) {
		app, admin := pair[0], pair[len(pair)-1]
		member.AuthPassword, member.AdminPassword = app.text, admin.text
		running := start(t, member)
		checkLogin(t, running, app, "auth", engine.Username, engine.Database)
		checkLogin(t, running, admin, "admin", engine.AdminUsername, database)
		stopAsTheKubeletDoes(t, running)
	}
}

// checkLogin logs in with what the file of a Secret holds, by all clients that
// may try.
func checkLogin(t *testing.T, running *enginetest.Running, odd oddPassword, secret, username, database string) {
	t.Helper()
	if odd.isForDriver {
		if _, err := connect(t, running, username, odd.text, database); err != nil {
			t.Errorf("%q: %v", odd.text, err)
		}
	}
	if odd.isForLibpq {
		command := fmt.Sprintf(`PGPASSWORD=$(cat /secrets/%s/password) exec psql -h 127.0.0.1 -U %s -Atc "SELECT 1" %s`, secret, username, database)
		if _, err := running.Exec(t.Context(), "", "/bin/sh", "-c", command); err != nil {
			t.Errorf("%q: %v", odd.text, err)
		}
	}
}

// The server can't be told such a password, so that nothing is lost.
func TestAPasswordThatIsntUTF8IsRefusedBeforeAnythingIsChanged(t *testing.T) {
	old := newMember(t, "18")
	startPromoted(t, old).Kill()
	for _, password := range []string{"\xff", "pass\xe9", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "cut \xf0\x9f\x94", "good\n\x80bad"} {
		for secret, set := range map[string]func(*enginetest.Member){
			"auth": func(m *enginetest.Member) { m.AuthPassword = password }, "admin": func(m *enginetest.Member) { m.AdminPassword = password },
		} {
			changed := old
			set(&changed)
			running := enginetest.Start(t, changed)
			exit, message := running.Wait(), running.TerminationMessage()
			if exit.Code != 1 || !strings.HasPrefix(message, "The password in the "+secret+" Secret isn't UTF-8") || strings.Contains(exit.Output, "0x") {
				t.Errorf("%q: it ended with %d; it printed\n%s", password, exit.Code, exit.Output)
			}
		}
	}
	if got := login(t, start(t, old), old); got != "" {
		t.Errorf("with the old passwords: %s", got)
	}
	fresh := newMember(t, "18")
	fresh.AuthPassword = "\xff"
	if exit := enginetest.Start(t, fresh).Wait(); exit.Code != 1 {
		t.Errorf("a new one ended with %d; it printed\n%s", exit.Code, exit.Output)
	}
	if got := list(t, fresh.Data); !slices.Equal(got, []string{".lock"}) {
		t.Errorf("a new one left %v", got)
	}
}

func TestTheApplicationCanDoItsWorkAndNothingElse(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		running := startPromoted(t, member)
		app := connectApp(t, running)
		for _, statement := range []string{
			"CREATE TABLE t (i int PRIMARY KEY, word text); INSERT INTO t VALUES (1, 'one')",
			"CREATE SCHEMA own; CREATE VIEW own.v AS SELECT * FROM t",
			"CREATE INDEX ON t (word); ANALYZE t; TRUNCATE t",
			"CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'; SELECT f()",
			"CREATE EXTENSION pgcrypto",
			"CREATE TEMPORARY TABLE s (i int)",
			"GRANT SELECT ON t TO PUBLIC; ALTER DATABASE app SET statement_timeout = '1min'",
			"ALTER ROLE app PASSWORD '" + appPassword + "'",
		} {
			app.mustQuery(statement)
		}
		const denied = "42501"
		for _, statement := range []string{
			"CREATE DATABASE other", "CREATE ROLE other", "ALTER ROLE app SUPERUSER", "ALTER ROLE app CREATEROLE", "ALTER ROLE app REPLICATION",
			"SET ROLE operator", "SET SESSION AUTHORIZATION operator", "ALTER ROLE operator PASSWORD 'x'", "DROP ROLE replicator", "GRANT operator TO app",
			"SELECT * FROM pg_authid", "SELECT * FROM pg_shadow", "SELECT pg_read_file('/secrets/admin/password')", "SELECT pg_ls_dir('.')",
			"SELECT lo_import('/secrets/admin/password')", "SELECT lo_export(0, '/tmp/x')", "CREATE TABLE l (line text); COPY l FROM '/secrets/admin/password'",
			"COPY t TO '/tmp/x'", "COPY t TO PROGRAM 'id'", "CREATE EXTENSION dblink", "CREATE EXTENSION file_fdw", "LOAD 'dblink'",
			"CREATE FUNCTION c() RETURNS int LANGUAGE c AS 'x', 'y'", "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION f()",
			"ALTER SYSTEM SET fsync = off", "SET log_min_error_statement = error", "SET log_statement = 'all'", "SET session_preload_libraries = 'x'",
			"SELECT pg_promote()", "SELECT pg_reload_conf()", "SELECT pg_rotate_logfile()", "SELECT pg_create_physical_replication_slot('x')", "SELECT pg_switch_wal()",
			"CHECKPOINT", "CREATE TABLESPACE x LOCATION '/tmp'", "CREATE SUBSCRIPTION s CONNECTION '' PUBLICATION p", "CREATE SCHEMA pg_catalog_x AUTHORIZATION operator",
			"CREATE FUNCTION pg_catalog.x() RETURNS int LANGUAGE sql AS 'SELECT 1'", "ALTER DATABASE app RENAME TO other",
		} {
			if _, err := app.query(statement); code(err) != denied {
				t.Errorf("%s gives %v", statement, err)
			}
		}
		if _, err := app.query("DROP DATABASE app"); code(err) != "55006" {
			t.Errorf("dropping its own database gives %v", err)
		}
		for _, name := range []string{database, "template1"} {
			if _, err := connect(t, running, engine.Username, appPassword, name); code(err) != denied {
				t.Errorf("connecting to %s gives %v", name, err)
			}
		}
		if _, err := connect(t, running, engine.Username, appPassword, engine.Database, "replication", "true"); code(err) != invalidAuthorization {
			t.Errorf("replicating gives %v", err)
		}
		if got := app.mustQuery("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'app'"); got != engine.Username {
			t.Errorf("the database belongs to %s", got)
		}
	})
}

func TestTheReplicatorCanReplicateAndNothingElse(t *testing.T) {
	running := startPromoted(t, newMember(t, "18"))
	replicator, err := connect(t, running, engine.ReplicationUsername, adminPassword, database, "replication", "true")
	if err != nil {
		t.Fatal(err)
	}
	replicator.mustQuery("IDENTIFY_SYSTEM")
	if _, err := connect(t, running, engine.ReplicationUsername, adminPassword, database); code(err) != "42501" {
		t.Errorf("connecting gives %v", err)
	}
	superuser, err := connect(t, running, engine.AdminUsername, adminPassword, database)
	if err != nil {
		t.Fatal(err)
	}
	if got := superuser.mustQuery("SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolbypassrls FROM pg_roles WHERE rolname = 'replicator'"); got != "f" {
		t.Error("it may do more than it should")
	}
}

// The passwords here are such that no quoting changes them.
func TestNoPasswordIsToldToAnybody(t *testing.T) {
	member := newMember(t, "18")
	member.AuthPassword, member.AdminPassword = "appPassword8c1f", "adminPassword77d2"
	secrets := [][]byte{[]byte(member.AuthPassword), []byte(member.AdminPassword), []byte("fooPassword3a9e"), []byte("changedPassword51")}
	running := enginetest.Start(t, member)
	for running.Output() == "" || !strings.Contains(running.Output(), "ready to accept") {
		lookInto(t, secrets)
		if t.Context().Err() != nil || t.Failed() {
			t.FailNow()
		}
	}
	operator := dial(t, running, member.AdminPassword)
	mustPromote(t, operator)
	awaitRole(t, operator, v1alpha1.MemberRolePrimary)
	client, err := connect(t, running, engine.Username, member.AuthPassword, engine.Database)
	if err != nil {
		t.Fatal(err)
	}
	for statement, want := range map[string]string{
		"ALTER ROLE nobody PASSWORD 'fooPassword3a9e'":                              "42704",
		"ALTER ROLE app PASSWORT 'fooPassword3a9e'":                                 "42601",
		"ALTER ROLE operator PASSWORD 'fooPassword3a9e'":                            "42501",
		"CREATE USER MAPPING FOR app SERVER s OPTIONS (password 'fooPassword3a9e')": "42704",
	} {
		if _, err := client.query(statement); code(err) != want {
			t.Errorf("%s gives %v", statement, err)
		}
	}
	lookInto(t, secrets)
	exit := running.Kill()
	member.AuthPassword = "changedPassword51"
	again := start(t, member)
	lookInto(t, secrets)
	for _, secret := range secrets {
		if strings.Contains(exit.Output+again.Kill().Output, string(secret)) {
			t.Errorf("%s was printed", secret)
		}
		if place := find(t, again.DataFolder(), secret); place != "" {
			t.Errorf("%s stands in %s", secret, place)
		}
	}
}

// lookInto looks at the arguments and the environment of all processes.
func lookInto(t *testing.T, secrets [][]byte) {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/cmdline", "/proc/[0-9]*/environ"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				continue // it has ended
			}
			for _, secret := range secrets {
				if bytes.Contains(content, secret) {
					t.Errorf("%s stands in %s: %q", secret, file, content)
				}
			}
		}
	}
}

// find returns a file below a folder that holds some bytes; "" if none does.
func find(t *testing.T, folder string, wanted []byte) string {
	t.Helper()
	place := ""
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, wanted) {
			place = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return place
}
