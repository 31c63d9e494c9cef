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

# What the replicas of a member log in with. The server keeps 32 bytes of a
# source's password, and the operator's may be longer: so it is made of that one,
# which no other member is sent.
replicator=/run/database/replicator
{ printf 'replicator:' && cat /secrets/admin/password; } | sha256sum | cut -c 1-32 | tr -d '\n' >"$replicator"

# once SQL FOLDER runs a server that nobody reaches on a data directory, to carry
# out a file of SQL that ends it. It fails at the first error, which it says.
once() {
	pipe=/run/database/once
	rm -f "$pipe"
	mkfifo "$pipe"
	mysqld --defaults-file=/boot/mysql.cnf --datadir="$2" --skip-networking --innodb-buffer-pool-size=32M \
		--socket=/run/database/once.sock --pid-file=/run/database/once.pid --init-file="$1" >"$pipe" 2>&1 &
	server=$! failed=''
	while read -r line; do
		case $line in
		*'[ERROR]'*)
			failed=yes
			printf '%s\n' "${line##*\[ERROR\] }" >&2
			# It would go on serving. What it has done is thrown away.
			kill -9 "$server"
			;;
		esac
	done <"$pipe"
	wait "$server" && [ -z "$failed" ]
}

# A server of its own copies the source's data beside its own, which are empty.
make_copier() {
	exec mysqld --defaults-file=/boot/mysql.cnf --datadir=/data/init/copier --initialize-insecure
}

copy_source() {
	mysqladmin --no-defaults --host="$(source_host)" --connect-timeout=2 --user=nobody ping >/dev/null 2>&1 || return 1
	rm -rf /data/init/db
	printf '%s\n' \
		"SET GLOBAL clone_valid_donor_list = '$(source_host):3306';" \
		"CLONE INSTANCE FROM replicator@'$(source_host)':3306 IDENTIFIED BY '$(cat "$replicator")' DATA DIRECTORY = '/data/init/db';" \
		'SHUTDOWN;' >/run/database/copy.sql
	once /run/database/copy.sql /data/init/copier
}

# The copy follows the source, and goes on doing so, whoever is there to tell it.
# Its commits don't rest on the copy, unless the operator says so. What the source
# may follow itself is in the copy, too.
follow_source() {
	printf '%s\n' 'RESET REPLICA ALL;' \
		"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '$(source_host)', SOURCE_PORT = 3306, SOURCE_USER = 'replicator', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 0, SOURCE_HEARTBEAT_PERIOD = 1;" \
		'SHUTDOWN;' >/run/database/follow.sql
	once /run/database/follow.sql /data/init/db
}

# copy_data has the member's data, if there are any, give way to the primary's once
# these are whole.
copy_data() {
	rm -rf /data/init /data/gone
	mkdir /data/init
	interruptible make_copier
	await_source copy_source
	interruptible follow_source
	sync
	[ ! -e /data/db ] || mv /data/db /data/gone
	mv /data/init/db /data/db
	sync
	rm -rf /data/init /data/gone
	grant_wish
}

# is_primary: what was promoted has written down that it takes writes.
is_primary() {
	[ -e "$persisted" ] && sed 's/"\(super_\)\{0,1\}read_only": {"Value": "ON"//g' "$persisted" | grep -q read_only
}
persisted=/data/db/mysqld-auto.cnf

# A new member takes no writes, until it is promoted: the configuration says so,
# and promotion has the server write into its data that it is otherwise.
has_data=true
open_data mysql "$binary" || has_data=false
accept_live live.cnf takes
if must_copy "$has_data"; then
	[ "$has_data" = true ] || record_version mysql "$binary"
	copy_data
elif [ "$has_data" = false ]; then
	record_version mysql "$binary"
	initialise make_data
elif names_another_primary && is_primary; then
	# It was replaced while it was away. It follows nobody until it has been compared.
	rm "$persisted"
	sync
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

# A replica goes on by itself, with the newest password, which stays in memory. One
# that is fenced executes what it has received. See internal/dbclient/mysql.
start_replication() {
	printf '%s\n' \
		"SET @start = (SELECT CASE WHEN NOT @@GLOBAL.super_read_only THEN 'DO 0' WHEN @@GLOBAL.init_replica <> '' THEN 'START REPLICA SQL_THREAD'" \
		" ELSE \"START REPLICA USER = 'replicator' PASSWORD = '$(cat "$replicator")'\" END FROM mysql.slave_master_info WHERE Channel_name = '');" \
		"SET @start = COALESCE(@start, 'DO 0');" \
		'PREPARE start FROM @start;' \
		'EXECUTE start;'
}

# Every start sets the accounts from the Secrets' files, before it serves
# anybody. It isn't logged for other members, which have the same files. In
# latin1 each byte is a character, so that no password is changed on its way.
{
	printf '%s\n' "SET SESSION sql_log_bin = OFF, sql_mode = '', character_set_client = latin1, collation_connection = latin1_bin;"
	account operator 'ALL ON *.*' /secrets/admin/password 'WITH GRANT OPTION'
	account replicator 'REPLICATION SLAVE, REPLICATION CLIENT, BACKUP_ADMIN ON *.*' "$replicator"
	account app 'ALL ON app.*' /secrets/auth/password
	start_replication
} >/run/database/accounts.sql

# The number of the server, which no other member has.
number=${pod##*-}
case $number in
0 | [1-9] | [1-9]*[0-9]) ;;
*) number=0 ;;
esac
case $number in *[!0-9]* | ?????????*) number=0 ;; esac

# The operator tells this start from all others by the file's name.
rm -f /data/db/*.pid
exec mysqld --defaults-file=/boot/mysql.cnf --init-file=/run/database/accounts.sql \
	--server-id="$((number + 1))" --report-host="$pod" --pid-file="/data/db/$(random).pid"
