//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"database/sql"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheApplicationOwnsItsDatabaseAndNothingElse(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(""))
		member.promote(t)
		operator := member.client(t, p.engine.AdminUsername(), adminPassword)
		execute(t, operator, "CREATE DATABASE other", "CREATE TABLE other.t (i INT)")

		app := member.app(t)
		execute(t, app,
			"USE "+p.engine.Database(),
			"CREATE TABLE t (i INT PRIMARY KEY, s TEXT)", "ALTER TABLE t ADD COLUMN n INT", "CREATE INDEX n ON t (n)",
			"CREATE TABLE log (i INT)",
			"CREATE TRIGGER t_log AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.i)",
			"CREATE FUNCTION an_id() RETURNS INT RETURN 1",
			"CREATE PROCEDURE add_an_id() INSERT INTO t (i) VALUES (an_id())",
			"CREATE VIEW v AS SELECT i FROM t",
			"CREATE EVENT e ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO CALL add_an_id()",
			"CALL add_an_id()", "CREATE TEMPORARY TABLE x AS SELECT * FROM v", "LOCK TABLES t WRITE", "UNLOCK TABLES",
			"START TRANSACTION", "UPDATE t SET s = 'x'", "DELETE FROM log WHERE i = 2", "COMMIT",
			"RENAME TABLE log TO journal", "TRUNCATE TABLE journal", "DROP TRIGGER t_log", "DROP TABLE journal",
		)
		if got := answer(t, app, "SELECT i FROM v"); got != "1" {
			t.Errorf("the view holds %q", got)
		}
		// Its own database is its own, even to remove and to make again.
		execute(t, app, "DROP DATABASE app", "CREATE DATABASE app")

		for _, forbidden := range append([]string{
			"CREATE DATABASE mine", "CREATE TABLE other.mine (i INT)", "SELECT * FROM other.t", "DROP DATABASE other",
			"SELECT * FROM mysql.user", "SELECT * FROM mysql.db", "UPDATE mysql.user SET User = 'root'",
			"GRANT SELECT ON app.* TO operator", "CREATE USER mine", "ALTER USER operator IDENTIFIED BY 'mine'", "DROP USER operator",
			"SET GLOBAL read_only = ON", "SET GLOBAL max_connections = 1", "SET SESSION sql_log_bin = OFF", "FLUSH TABLES WITH READ LOCK",
			"SHUTDOWN", "RESET " + p.binaryLog, "SHOW BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW()",
			"SELECT 1 INTO OUTFILE '/tmp/mine'", "SELECT 1 INTO OUTFILE '/boot/mine'", "LOAD DATA INFILE '/secrets/admin/password' INTO TABLE app.t",
			"LOAD DATA LOCAL INFILE '/secrets/admin/password' INTO TABLE app.t",
			"CREATE FUNCTION mine RETURNS INTEGER SONAME 'mine.so'",
			"CREATE DEFINER = operator PROCEDURE app.mine() SELECT 1",
		}, p.forbidden...) {
			checkForbidden(t, app, forbidden)
		}
		if got := answer(t, app, "SELECT COALESCE(LOAD_FILE('/secrets/admin/password'), LOAD_FILE('/boot/boot.sh'), 'nothing')"); got != "nothing" {
			t.Errorf("it reads %q from a file", got)
		}
		for schema := range strings.FieldsSeq(answer(t, app, "SHOW DATABASES")) {
			if schema != "app" && schema != "information_schema" && schema != "performance_schema" {
				t.Errorf("it sees the database %s", schema)
			}
		}
		// What it makes later is in the binary log, and what made the accounts isn't.
		if got := answer(t, operator, "SELECT "+p.position); got == "" {
			t.Error("nothing that it did is in the binary log")
		}
	})
}

// checkForbidden executes what an account may not: it is refused for that reason
// and no other.
func checkForbidden(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	for _, refusal := range []uint16{
		1044, 1045, 1142, 1227, 1370, 3630, // the account has no right to that database, table, action or routine
		3948, 4166, 1148, // no file of the client is read
	} {
		if isError(err, refusal) {
			return
		}
	}
	t.Errorf("%s gives %v", statement, err)
}

func TestTheReplicatorMayCopyAndNothingElse(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(""))
		member.promote(t)
		replicator := member.client(t, "replicator", p.replicatorPassword(adminPassword))
		execute(t, replicator, p.copying...)
		for _, forbidden := range []string{
			"SELECT * FROM mysql.user", "CREATE TABLE app.mine (i INT)", "SET GLOBAL read_only = ON", "SHUTDOWN", "CREATE USER mine", "CREATE DATABASE mine",
		} {
			checkForbidden(t, replicator, forbidden)
		}
	})
}

func TestNobodyComesInWithoutAPassword(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(""))
		operator := member.client(t, p.engine.AdminUsername(), adminPassword)
		for account := range strings.FieldsSeq(answer(t, operator, "SELECT User FROM mysql.user") + " root nobody mysql") {
			if err := member.client(t, account, "").PingContext(t.Context()); err == nil {
				t.Errorf("%s comes in over the network", account)
			}
			if printed, err := member.Exec(t.Context(), "SELECT 1", p.client, "--no-defaults", "--socket="+p.socket, "--user="+account); err == nil {
				t.Errorf("%s comes in by the socket: %s", account, printed)
			}
		}
	})
}

func TestNoPasswordIsWhereItCouldBeRead(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		made := p.member(filepath.Join(t.TempDir(), "data"))
		member := p.start(t, made)
		member.promote(t)
		execute(t, member.app(t), "CREATE TABLE app.t (i INT)")
		places := map[string]string{"the output": member.Output(), "the termination message": member.TerminationMessage()}
		for place, command := range map[string]string{
			"the arguments":        "cat /proc/[0-9]*/cmdline",
			"the environment":      "cat /proc/1/environ",
			"what others may read": `for f in /run/database/* /tmp/*; do case $(stat -c %a "$f") in *00) ;; *) [ ! -f "$f" ] || cat "$f" ;; esac; done`,
		} {
			printed, err := member.Exec(t.Context(), "", "/bin/sh", "-c", command)
			if err != nil {
				t.Fatal(err)
			}
			places[place] = printed
		}
		operator := member.client(t, p.engine.AdminUsername(), adminPassword)
		for _, query := range p.told {
			places[query] = answer(t, operator, query)
		}
		err := filepath.WalkDir(made.Data, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			checkHoldsNoPassword(t, path, string(content))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for place, text := range places {
			checkHoldsNoPassword(t, place, text)
		}
	})
}

func checkHoldsNoPassword(t *testing.T, place, text string) {
	t.Helper()
	for _, password := range []string{appPassword, adminPassword} {
		digits := hex.EncodeToString([]byte(password))
		for _, form := range []string{password, digits, strings.ToUpper(digits)} {
			if strings.Contains(text, form) {
				t.Errorf("a password stands in %s", place)
			}
		}
	}
}
