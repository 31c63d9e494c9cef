#!/bin/sh
# Starts one member of a MySQL database. It ends in exec, so that the server is
# the container's first process and gets its signals.
# shellcheck source=internal/engine/boot/common.sh
. /boot/common.sh

binary=$(mysqld --no-defaults --version | sed -n 's/.* Ver \([0-9]*\.[0-9]*\).*/\1/p')
[ -n "$binary" ] || refuse 1 "mysqld doesn't say which version it is."

# takes FILE tells whether the server takes its configuration with the live
# parameters in FILE, or prints what it has against it, without the time.
takes() {
	sed "s|^!include .*|!include $1|" /boot/mysql.cnf >/run/database/check.cnf
	failed=''
	printed=$(mysqld --defaults-file=/run/database/check.cnf --validate-config 2>&1) || failed=yes
	errors=$(printf '%s\n' "$printed" | sed -n '/Aborting$/d; s/.*\[ERROR\] //p')
	printf '%s\n' "$errors"
	[ -z "$failed$errors" ]
}

make_data() {
	exec mysqld --defaults-file=/boot/mysql.cnf --datadir=/data/init \
		--initialize-insecure --init-file=/boot/initialise.sql
}

# A new member takes no writes, until it is promoted: the configuration says so,
# and promotion has the server write into its data that it is otherwise.
has_data=yes
open_data mysql "$binary" || has_data=
accept_live live.cnf takes
if [ -z "$has_data" ]; then
	record_version mysql "$binary"
	initialise make_data
fi
record_version mysql "$binary"

# account NAME PRIVILEGES PASSWORD-FILE [OPTION] prints the SQL that makes an
# account, or sets its password and what it may do at least. The password is
# given as the bytes' hexadecimal digits, and quoted by the server itself, so
# that it may hold anything. The account stays locked if that fails.
account() {
	password=$(od -An -v -tx1 "$3" | tr -d ' \n')
	[ -n "$password" ] || refuse 1 "The password of the account $1 is empty."
	printf '%s\n' \
		"CREATE USER IF NOT EXISTS $1@'%' ACCOUNT LOCK;" \
		"ALTER USER $1@'%' ACCOUNT LOCK;" \
		"SET @set = CONCAT(\"ALTER USER $1@'%' IDENTIFIED WITH caching_sha2_password BY \", QUOTE(_latin1 x'$password'), ' REQUIRE NONE PASSWORD EXPIRE NEVER ACCOUNT UNLOCK');" \
		'PREPARE set_password FROM @set;' \
		'EXECUTE set_password;' \
		"ALTER USER $1@'%' DISCARD OLD PASSWORD;" \
		"GRANT $2 TO $1@'%' ${4-};"
}

# Every start sets the accounts from the Secrets' files, before it serves
# anybody. It isn't logged for other members, which have the same files. In
# latin1 each byte is a character, so that no password is changed on its way.
{
	printf '%s\n' "SET SESSION sql_log_bin = OFF, sql_mode = '', character_set_client = latin1, collation_connection = latin1_bin;"
	account operator 'ALL ON *.*' /secrets/admin/password 'WITH GRANT OPTION'
	account replicator 'REPLICATION SLAVE, REPLICATION CLIENT, BACKUP_ADMIN ON *.*' /secrets/admin/password
	account app 'ALL ON app.*' /secrets/auth/password
} >/run/database/accounts.sql

exec mysqld --defaults-file=/boot/mysql.cnf --init-file=/run/database/accounts.sql
