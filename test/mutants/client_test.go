//go:build mutants

// SPDX-License-Identifier: Apache-2.0

package mutants

// statementMutants are of what a server is told.
func statementMutants() []mutant {
	return []mutant{
		{
			"a quote ends a text in a statement of PostgreSQL", "mariadb-operator #1722", "internal/dbclient/postgresql/account.go",
			`strings.ReplaceAll(text, "'", "''")`,
			`strings.ReplaceAll(text, "'", "'")`,
			unit("./internal/dbclient/postgresql/"), "",
		},
		{
			"a backslash begins something in a statement of PostgreSQL", "bitpoke mysql #943", "internal/dbclient/postgresql/account.go",
			"return \"E\" + strings.ReplaceAll(quoted, `\\`, `\\\\`)",
			`return "E" + quoted`,
			unit("./internal/dbclient/postgresql/"), "",
		},
		{
			"anybody who receives counts as acknowledging", "engines.md H3", "internal/dbclient/postgresql/conninfo.go",
			`return fmt.Sprintf("ANY %d (%s)", ask.Count, strings.Join(names, ", ")), nil`,
			`return fmt.Sprintf("ANY %d (*)", ask.Count), nil`,
			unit("./internal/dbclient/postgresql/"), "",
		},
		{
			"a name of a host adds options to a connection", "mariadb-operator #1722", "internal/dbclient/postgresql/conninfo.go",
			"if !isPlainName(source.Host) || !isPlainName(name) || source.Port <= 0 {",
			"if !isPlainName(name) || source.Port <= 0 {",
			unit("./internal/dbclient/postgresql/"), "",
		},
		{
			"a user's functions stand in for the server's", "CVE-2026-55769", "internal/dbclient/postgresql/client.go",
			`"search_path": "pg_catalog",`,
			`"search_path": "public",`,
			unit("./internal/dbclient/postgresql/"), "",
		},
		{
			"the operator's statements wait for replicas, and are acknowledged by their end", "engines.md H3", "internal/dbclient/postgresql/client.go",
			`"synchronous_commit": "local",`,
			`"synchronous_commit": "on",`,
			unit("./internal/dbclient/postgresql/"), "",
		},
		{
			"the password is told to whoever asks for it", "client.go, SCRAM alone", "internal/dbclient/postgresql/client.go",
			`" sslmode=disable require_auth=scram-sha-256 target_session_attrs=any"`,
			`" sslmode=disable target_session_attrs=any"`,
			unit("./internal/dbclient/postgresql/"), "",
		},
	}
}

// answerMutants are of what is read from its answers.
func answerMutants() []mutant {
	return []mutant{
		{
			"a Redis that was restarted passes for knowing its position", "engines.md, unknown, not least", "internal/dbclient/redis/info.go",
			`return !i.isLoading() && (i.isPrimary() || i["repl_backlog_active"] == "1")`,
			"return !i.isLoading()",
			unit("./internal/dbclient/redis/"), "",
		},
		{
			"a replica of Redis in the middle of a command passes for drained", "engines.md H2", "internal/dbclient/redis/info.go",
			`state.Progress.IsDrained = i["slave_read_repl_offset"] == i["slave_repl_offset"]`,
			"state.Progress.IsDrained = true",
			unit("./internal/dbclient/redis/"), "",
		},
		{
			"a Redis primary demotes itself before its followers have all", "engines.md, planned switchover", "internal/dbclient/redis/info.go",
			`return f.isOnline && f.offset != i["master_repl_offset"]`,
			`return f.isOnline && f.offset == ""`,
			unit("./internal/dbclient/redis/"), "",
		},
		{
			"an account with a second password passes for having the right one", "CNPG #10834", "internal/dbclient/redis/account.go",
			"slices.Equal(passwords, []string{a.digest})",
			"slices.Contains(passwords, a.digest)",
			unit("./internal/dbclient/redis/"), "",
		},
		{
			"an account of MySQL with a former password passes", "CNPG #10834", "internal/dbclient/mysql/password.go",
			`"caching_sha2_password N N 1 "`,
			`"caching_sha2_password N N 0 "`,
			unit("./internal/dbclient/mysql/"), "",
		},
		{
			"a primary of MariaDB that times out passes for one that waits", "engines.md H3", "internal/dbclient/mysql/mariadb_state.go",
			"m.timeout == strconv.FormatUint(math.MaxUint64, 10)",
			"m.timeout != strconv.FormatUint(math.MaxUint64, 10)+m.timeout",
			unit("./internal/dbclient/mysql/"), "",
		},
		{
			"a MariaDB whose relay log isn't executed passes for drained", "engines.md H2", "internal/dbclient/mysql/mariadb_state.go",
			`return !m.isPoised() && gtidNumber(m.slave["Gtid_IO_Pos"]) <= gtidNumber(m.executed)`,
			"return !m.isPoised()",
			unit("./internal/dbclient/mysql/"), "",
		},
		{
			"what a MySQL received and hasn't executed doesn't count", "engines.md H2", "internal/dbclient/mysql/mysql_state.go",
			"[]string{m.executed, m.received}",
			"[]string{m.executed}",
			unit("./internal/dbclient/mysql/"), "",
		},
	}
}

// persistenceMutants are of what a server forgets at a restart.
func persistenceMutants() []mutant {
	return []mutant{
		{
			"a fence of MySQL ends with a restart", "engines.md H1", "internal/dbclient/mysql/mysql_replication.go",
			`r.do(ctx, c, "SET PERSIST init_replica = ?", mysqlFence)`,
			`r.do(ctx, c, "SET GLOBAL init_replica = ?", mysqlFence)`,
			engines("./internal/dbclient/mysql/", "^TestMembersOfMySQL$/^a_failover_loses_nothing"), "",
		},
		{
			"a fence of MariaDB ends with a restart", "engines.md H1", "internal/dbclient/mysql/mariadb_replication.go",
			"\tif err := r.save(ctx, c, mariaDBRole{role: roleFenced, port: portOfNobody}, plan.Acknowledgement{}); err != nil {\n\t\treturn err\n\t}\n\tif member.slave != nil {",
			"\tif member.slave != nil {",
			engines("./internal/dbclient/mysql/", "^TestMembersOfMariaDB$/fail_over_without_losing"), "",
		},
		{
			"a fence of Redis ends with a restart", "engines.md H1", "internal/dbclient/redis/replication.go",
			`command{"CONFIG", "SET", "masterauth", ""}, command{"CONFIG", "REWRITE"}, command{"CONFIG", "SET", "masterauth", c.password})`,
			`command{"CONFIG", "SET", "masterauth", ""}, command{"CONFIG", "SET", "masterauth", c.password})`,
			engines("./internal/dbclient/redis/", "^TestAFenceHoldsWhateverHappens$"), "",
		},
	}
}
