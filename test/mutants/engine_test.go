//go:build mutants

// SPDX-License-Identifier: Apache-2.0

package mutants

// valueMutants are of values in files.
func valueMutants() []mutant {
	return []mutant{
		{
			"a value of Redis begins another directive", "CVE-2026-54680", "internal/engine/redis/config.go",
			"return char <= ' ' || char > '~' || strings.ContainsRune(`\"'\\#`, char)",
			"return char == ' ' || char > '~' || strings.ContainsRune(`\"'\\#`, char)",
			unit("./internal/engine/redis/"), "",
		},
		{
			"a value of MySQL begins another option", "CVE-2026-54680", "internal/engine/optionfile/optionfile.go",
			"return char <= ' ' || char > '~' || strings.ContainsRune(`\"'\\#`, char)",
			"return char == ' ' || char > '~' || strings.ContainsRune(`\"'\\#`, char)",
			unit("./internal/engine/optionfile/"), "",
		},
		{
			"a quote ends a value of PostgreSQL", "CVE-2026-54680", "internal/engine/postgresql/config.go",
			"\t\t\tquoted.Write([]byte{char, char})\n",
			"\t\t\tquoted.Write([]byte{char})\n",
			unit("./internal/engine/postgresql/"), "",
		},
	}
}

// positionMutants are of how far a member is.
func positionMutants() []mutant {
	return []mutant{
		{
			"an old primary of Redis with writes of its own passes for behind", "engines.md, Redis", "internal/engine/redis/replication.go",
			"\tcase lacks:\n\t\treturn plan.OrderApart",
			"\tcase lacks:\n\t\treturn plan.OrderBehind",
			unit("./internal/engine/redis/"), "",
		},
		{
			"a Redis of another history passes for comparable", "engines.md, unknown, not least", "internal/engine/redis/replication.go",
			"if !isOurs || !isTheirs || !ours.shares(theirs) {",
			"if !isOurs || !isTheirs {",
			unit("./internal/engine/redis/"), "",
		},
		{
			"an old primary of PostgreSQL that went on passes for behind", "engines.md, PostgreSQL", "internal/engine/postgresql/position.go",
			"\tif place > passed {",
			"\tif place > passed && false {",
			unit("./internal/engine/postgresql/"), "",
		},
		{
			"two servers of MariaDB that wrote the same number pass for the same", "engines.md, MariaDB 1236", "internal/engine/mariadb/replication.go",
			"return answerOf(t == p.received)",
			"return answerOf(t.number == p.received.number)",
			unit("./internal/engine/mariadb/"), "",
		},
		{
			"a MySQL with a gap passes for having all", "engines.md, errant", "internal/engine/mysql/position.go",
			"return has.first <= wanted.first && wanted.last <= has.last })",
			"return wanted.last <= has.last })",
			unit("./internal/engine/mysql/"), "",
		},
	}
}

// settingMutants are of what safety rests on in a configuration.
func settingMutants() []mutant {
	return []mutant{
		{
			"MySQL throws what it received away at a restart", "engines.md H2", "internal/engine/mysql/config.go",
			`{Name: "relay-log-recovery", Value: "OFF"},`,
			`{Name: "relay-log-recovery", Value: "ON"},`,
			unit("./internal/engine/mysql/"), "",
		},
		{
			"a member of MySQL takes writes before it is promoted", "boot.go, no boot script makes a primary", "internal/engine/mysql/config.go",
			`		{Name: "super-read-only", Value: "ON"},
		{Name: "read-only", Value: "ON"},
`,
			"",
			unit("./internal/engine/mysql/"), "",
		},
		{
			"MariaDB stops waiting for acknowledgement after ten seconds", "engines.md H3", "internal/engine/mariadb/config.go",
			`{Name: "rpl-semi-sync-master-timeout", Value: strconv.FormatUint(math.MaxUint64, 10)},`,
			`{Name: "rpl-semi-sync-master-timeout", Value: strconv.FormatUint(math.MaxUint64>>50, 10)},`,
			unit("./internal/engine/mariadb/"), "",
		},
		{
			"MariaDB shows a commit before it is acknowledged", "engines.md, use AFTER_SYNC", "internal/engine/mariadb/config.go",
			`"AFTER_SYNC"`,
			`"AFTER_COMMIT"`,
			unit("./internal/engine/mariadb/"), "",
		},
		{
			"a user may have a write of Redis lost", "redis parameters.go, appendfsync", "internal/engine/redis/parameters.go",
			`parameter.OneOf("everysec", "always")`,
			`parameter.OneOf("everysec", "always", "no")`,
			unit("./internal/engine/redis/"), "",
		},
		{
			"PostgreSQL logs the statement that holds a password", "kubeblocks #7848", "internal/engine/postgresql/config.go",
			`{"log_min_error_statement", "panic"},`,
			`{"log_min_error_statement", "error"},`,
			unit("./internal/engine/postgresql/"), "",
		},
	}
}

// volumeMutants are of what a start does with a volume.
func volumeMutants() []mutant {
	return []mutant{
		{
			"two servers run on one volume", "engines.md H7", "internal/engine/boot/common.sh",
			"\tflock -n 9 || refuse",
			"\ttrue || refuse",
			unit("./internal/engine/boot/"), "",
		},
		{
			"a member with an empty volume makes data of its own", "boot.go, no boot script makes a primary", "internal/engine/boot/common.sh",
			`[ "${TOPOLOGY_STATE-}" = new ] || has_source ||`,
			`[ "${TOPOLOGY_STATE-}" != initialized ] || has_source ||`,
			unit("./internal/engine/boot/"), "",
		},
		{
			"an older server opens newer data", "mongodb-community (acto #157)", "internal/engine/boot/common.sh",
			`		! is_newer "$recorded" "$2" || refuse`,
			"\t\t[ -n \"$recorded\" ] || refuse",
			unit("./internal/engine/boot/"), "",
		},
		{
			"an engine opens the data of another one", "CNPG #11006", "internal/engine/boot/common.sh",
			`[ "$known" = "$1" ] || refuse`,
			`[ -n "$known" ] || refuse`,
			unit("./internal/engine/boot/"), "",
		},
		{
			"a volume with somebody else's files is written to", "CNPG #11006", "internal/engine/boot/common.sh",
			`		*) refuse "$foreign_data" "The volume holds ${entry#/data/}, which`,
			`		/data/.*) refuse "$foreign_data" "The volume holds ${entry#/data/}, which`,
			unit("./internal/engine/boot/"), "",
		},
		{
			"data are given up before the new ones are whole", "engines.md H6", "internal/engine/boot/common.sh",
			"\trm -rf /data/init /data/gone\n\tmkdir /data/init\n\tinterruptible",
			"\trm -rf /data/init /data/gone /data/db\n\tmkdir /data/init\n\tinterruptible",
			unit("./internal/engine/boot/"), "",
		},
		{
			"a member gives up its data at every start", "engines.md H6", "internal/engine/boot/common.sh",
			`if [ "${wish%%:*}" = "$pod" ] && [ "${wish#*:}" != "$granted" ]; then`,
			`if [ "${wish%%:*}" = "$pod" ]; then`,
			unit("./internal/engine/boot/"), "",
		},
		{
			"a parameter that the server refuses keeps a member from starting", "VictoriaMetrics #271", "internal/engine/boot/common.sh",
			"\trm \"/data/$1.new\"\n",
			`	mv "/data/$1.new" "/data/$1"
`,
			unit("./internal/engine/boot/"), "",
		},
	}
}

// roleMutants are of what a start makes a member.
func roleMutants() []mutant {
	return []mutant{
		{
			"a new member of Redis starts as a primary", "boot.go, no boot script makes a primary", "internal/engine/redis/boot.sh",
			"\tinitialise make_data \"$nowhere\"\n",
			"\tinitialise make_data ''\n",
			engines("./internal/dbclient/redis/", "^TestANewMemberTakesNoWritesUntilItIsPromoted$"), "",
		},
		{
			"a former primary of PostgreSQL starts as one", "CNPG #10409", "internal/engine/postgresql/boot.sh",
			"\tdemote /data/db\n",
			"\tsync\n",
			engines("./internal/dbclient/postgresql/", "^TestAFormerPrimaryTakesNoWritesFromItsStartOn$"), "",
		},
	}
}
