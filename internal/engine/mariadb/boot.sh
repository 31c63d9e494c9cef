#!/bin/sh
# Starts one member of a MariaDB database. It ends in exec, so that the server is
# the container's first process and gets its signals.
# shellcheck source=internal/engine/boot/common.sh
. /boot/common.sh

binary=$(mariadbd --no-defaults --version 2>/dev/null | sed -n 's/.* Ver \([0-9]*\.[0-9]*\).*/\1/p')
[ -n "$binary" ] || refuse 1 "mariadbd doesn't say which version it is."

# takes FILE tells whether the server takes its configuration with the live
# parameters in FILE, or prints what it has against it, without the time. What it has
# against an option of InnoDB it says, and ends with 0.
takes() {
	sed "s|^!include .*|!include $1|" /boot/mariadb.cnf >/run/database/check.cnf
	failed=''
	printed=$(mariadbd --defaults-file=/run/database/check.cnf --help --verbose 2>&1 >/dev/null) || failed=yes
	errors=$(printf '%s\n' "$printed" | sed -n '/Aborting$/d; s/.*\[ERROR\] //p')
	printf '%s\n' "$errors"
	[ -z "$failed$errors" ]
}

# What is printed is advice for people who do this by hand. Errors are printed
# elsewhere.
make_data() {
	exec mariadb-install-db --defaults-file=/boot/mariadb.cnf --datadir=/data/init \
		--skip-log-bin --max-statement-time=0 --cross-bootstrap --skip-test-db --extra-file=/boot/initialise.sql \
		--auth-root-authentication-method=socket --auth-root-socket-user=root >/dev/null
}

# upgrade brings the system's tables to this version, with a server that nobody
# but mariadb-upgrade reaches. It can be interrupted, and is done again then. The
# server has its binary log, without which it can't recover after a crash, and
# mariadb-upgrade writes nothing to it.
upgrade() {
	set -- --no-defaults --socket=/run/database/upgrade.sock
	mariadbd --defaults-file=/boot/mariadb.cnf "$2" --skip-networking --skip-grant-tables --max-statement-time=0 &
	server=$!
	trap 'kill -TERM "$server" 2>/dev/null || :; wait "$server" || :; exit 143' TERM INT
	until mariadb-admin "$@" ping >/dev/null 2>&1; do
		kill -0 "$server" 2>/dev/null || refuse 1 "The data can't be brought to version $binary; see the container's log."
		sleep 0.2
	done
	mariadb-upgrade "$@" --silent &
	wait $! || say "The system's tables aren't those of version $binary, and the server does without; the next start tries again."
	kill -TERM "$server"
	wait "$server" || refuse 1 "The server didn't stop cleanly after its upgrade; see the container's log."
	stop_when_asked
}

# A new member takes no writes, until it is promoted: the configuration says so,
# and promotion changes the row that is read below.
has_data=yes
open_data mariadb "$binary" || has_data=
accept_live live.cnf takes
if [ -z "$has_data" ]; then
	record_version mariadb "$binary"
	initialise make_data
fi
record_version mariadb "$binary"

# Older versions have another name for the file that mariadb-upgrade leaves.
upgraded=$(cat /data/db/mariadb_upgrade_info /data/db/mysql_upgrade_info 2>/dev/null | head -n 1)
case $upgraded in
"$binary".*) ;;
*) upgrade ;;
esac

# account NAME PRIVILEGES PASSWORD-FILE [OPTION] prints the SQL that makes an
# account, or sets its password and what it may do at least. The password is
# given as the bytes' hexadecimal digits, so that it may hold anything. The
# account stays locked if that fails.
account() {
	password=$(od -An -v -tx1 "$3" | tr -d ' \n')
	[ -n "$password" ] || refuse 1 "The password of the account $1 is empty."
	printf '%s\n' \
		"CREATE USER IF NOT EXISTS $1@'%' ACCOUNT LOCK;" \
		"ALTER USER $1@'%' ACCOUNT LOCK;" \
		"EXECUTE IMMEDIATE CONCAT(\"ALTER USER $1@'%' IDENTIFIED VIA mysql_native_password USING '\", PASSWORD(x'$password'), \"' REQUIRE NONE PASSWORD EXPIRE NEVER ACCOUNT UNLOCK\");" \
		"GRANT $2 TO $1@'%' ${4-};"
}

# Every start sets the accounts from the Secrets' files, before it serves
# anybody. It isn't logged for other members, which have the same files. The
# role comes last; without its row, the member stays read-only. All that is done
# without a limit of time, which is set afterwards.
limit=$(sed -n 's/^max-statement-time=\([0-9.]*\)$/\1/p' /data/live.cnf)
{
	printf '%s\n' "SET SESSION sql_log_bin = OFF, sql_mode = '', old_passwords = OFF;"
	account operator 'ALL ON *.*' /secrets/admin/password 'WITH GRANT OPTION'
	account replicator 'REPLICATION SLAVE, BINLOG MONITOR ON *.*' /secrets/admin/password
	account app 'ALL ON app.*' /secrets/auth/password
	printf '%s\n' "SET GLOBAL max_statement_time = ${limit:-0};"
	printf '%s\n' "SET GLOBAL read_only = (SELECT IF(role = 'primary', 0, 1) FROM database_manager.member WHERE id = 1);"
} >/run/database/start.sql

exec mariadbd --defaults-file=/boot/mariadb.cnf --max-statement-time=0 --init-file=/run/database/start.sql
