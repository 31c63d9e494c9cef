#!/bin/sh
# Starts one member of a MariaDB database. It ends in exec, so that the server is
# the container's first process and gets its signals.
# shellcheck source=internal/engine/boot/common.sh
. /boot/common.sh

binary=$(mariadbd --no-defaults --version 2>/dev/null | sed -n 's/.* Ver \([0-9]*\.[0-9]*\).*/\1/p')
[ -n "$binary" ] || refuse 1 "mariadbd doesn't say which version it is."

# The number of a server is one more than the one at the end of its pod's name,
# and 1 where there is none.
ordinal=$(printf '%s\n' "$pod" | sed -n 's/^.*-0*\([0-9]\{1,6\}\)$/\1/p')
server_id=$((${ordinal:-0} + 1))
readonly private=/run/database/private.sock

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

# start_privately DATADIR OPTION… starts a server that nobody but this script
# reaches. It can be interrupted at any time. The server has its binary log,
# without which it can't recover after a crash.
start_privately() {
	datadir=$1
	shift
	mariadbd --defaults-file=/boot/mariadb.cnf --datadir="$datadir" --server-id="$server_id" --socket="$private" --pid-file=/run/database/private.pid \
		--skip-networking --max-statement-time=0 --event-scheduler=OFF "$@" &
	server=$!
	trap 'kill -TERM "$server" 2>/dev/null || :; wait "$server" || :; exit 143' TERM INT
	until mariadb-admin --no-defaults --socket="$private" --user=nobody ping >/dev/null 2>&1; do
		kill -0 "$server" 2>/dev/null || refuse 1 "The server doesn't open the data; see the container's log."
		sleep 0.1
	done
}

stop_privately() {
	kill -TERM "$server"
	wait "$server" || refuse 1 "The server didn't stop cleanly before its start; see the container's log."
	stop_when_asked
}

# upgrade brings the system's tables to this version, and is done again if it is
# interrupted. It writes nothing to the binary log.
upgrade() {
	start_privately /data/db --skip-grant-tables
	mariadb-upgrade --no-defaults --socket="$private" --silent &
	wait $! || say "The system's tables aren't those of version $binary, and the server does without; the next start tries again."
	stop_privately
}

# admit_script has a server that is started privately admit this script. It isn't
# started without accounts, since it would then take no statements about accounts
# or events, which its source may have sent.
admit_script() {
	secret=$(random)
	printf '%s\n' 'SET SESSION sql_log_bin = OFF;' "CREATE OR REPLACE USER boot@localhost IDENTIFIED BY '$secret';" \
		'GRANT ALL ON *.* TO boot@localhost WITH GRANT OPTION;' >/run/database/private.sql
	printf '%s\n' '[client]' "socket=$private" 'user=boot' "password=$secret" >/run/database/private.cnf
}

# ask STATEMENT prints the answer of a server that was started privately.
ask() { mariadb --defaults-file=/run/database/private.cnf --batch --quick --skip-column-names --execute="$1"; }

# ask_slave FIELD prints a part of what it says of copying.
ask_slave() { mariadb --defaults-file=/run/database/private.cnf --execute='SHOW SLAVE STATUS\G' | sed -n "s/^ *$1: //p"; }

# received_after NUMBER prints what is in the relay log after the transaction of
# that number: "NUMBER FILE OFFSET" for the first one, and for the last. The place
# that the server remembers may be that of a transaction which it has executed.
received_after() {
	tab=$(printf '\t')
	{
		while read -r file; do
			# An event at the end may be cut off.
			ask "SHOW RELAYLOG EVENTS IN '${file##*/}'" 2>/dev/null |
				sed -n "s/^\([^$tab]*\)$tab\([0-9]*\)${tab}Gtid$tab.*GTID 0-[0-9]*-\([0-9]*\).*/\3 \1 \2/p"
		done </data/db/relay.index
		printf '%s executed\n' "$1"
	} | sort -s -n -k 1,1 | sed -n '/ executed$/ { n; p; }; $ p'
}

executed() {
	position=$(ask 'SELECT @@GLOBAL.gtid_slave_pos')
	printf '%s\n' "${position##*-}"
}

# drain has a member that has copied from another execute what it has received. A
# server throws that away when it begins to copy again, and asks its source for
# it, which may be gone: so an acknowledged transaction would be lost. If it can't
# be executed, nothing is thrown away, and the member copies from nobody until it
# is told to.
drain() {
	admit_script
	start_privately /data/db --init-file=/run/database/private.sql
	is_drained=yes
	received=$(received_after "$(executed)")
	if [ -n "$received" ]; then
		execute_received "$received" || is_drained=''
	fi
	[ -z "$is_drained" ] || ask 'STOP SLAVE; RESET SLAVE ALL'
	stop_privately
}

# execute_received LINES: those of received_after. The server is told a place in
# its relay log, which it takes only if it isn't to ask its source by number.
execute_received() {
	read -r _ file offset <<-END
		$1
	END
	last=$(printf '%s\n' "$1" | tail -n 1)
	last=${last%% *}
	ask "CHANGE MASTER TO RELAY_LOG_FILE='$file', RELAY_LOG_POS=$offset, MASTER_USE_GTID=no; START SLAVE SQL_THREAD"
	until [ "$(executed)" -ge "$last" ]; do
		case $(ask_slave Slave_SQL_Running_State) in
		# The last transaction isn't whole, and so wasn't acknowledged.
		*'read all relay log'*) return 0 ;;
		esac
		if [ "$(ask_slave Slave_SQL_Running)" = No ] && [ "$(executed)" -lt "$last" ]; then
			say "What was received can't be executed: $(ask_slave Last_SQL_Error)"
			return 1
		fi
		sleep 0.1
	done
}

# replicator_password prints the password of the account that members copy from
# each other with. It is made of the operator's, since a server keeps it on its
# volume, and no more of it than a server remembers.
replicator_password() { sha256sum </secrets/admin/password | cut -c 1-40; }

# Newer versions ask for a certificate that older ones, which may be the source,
# don't have; what members send each other isn't protected yet.

# ask_source has the source tell what each server wrote last, as far as it is now.
ask_source() {
	printf '%s\n' '[client]' 'user=replicator' "password=$(replicator_password)" "host=$(source_host)" 'port=3306' 'ssl-verify-server-cert=0' >/run/database/source.cnf
	mariadb --defaults-file=/run/database/source.cnf --connect-timeout=3 --batch --skip-column-names --execute='SELECT @@GLOBAL.gtid_binlog_state' >/run/database/history 2>/dev/null
}

# copy_data fills /data/init with all databases of the source but those that each
# member has of its own. They are those of one moment, whose position in the
# source's history is noted with them. What follows the dump is executed only if
# the dump is whole.
copy_data() {
	(make_data)
	admit_script
	start_privately /data/init --init-file=/run/database/private.sql --innodb-flush-log-at-trx-commit=0 --max-allowed-packet=1G
	pour_data
	if [ "$(ask 'SELECT host FROM database_manager.member')" != "$(source_host)" ]; then
		say "The copy of the data of $TOPOLOGY_PRIMARY broke off."
		exit 1
	fi
	stop_privately
}

# What each server of the history wrote last is known of the whole history, and of
# the copied part for the one that still writes.
pour_data() {
	{
		printf '%s\n' 'SET SESSION sql_log_bin = OFF;'
		mariadb-dump --defaults-file=/run/database/source.cnf --all-databases --ignore-database=mysql --ignore-database=sys --ignore-database=database_manager \
			--add-drop-database --single-transaction --master-data=1 --gtid --routines --events --triggers --hex-blob \
			--default-character-set=utf8mb4 --max-allowed-packet=1G &&
			printf '%s\n' 'RESET MASTER;' 'SET @copied = @@GLOBAL.gtid_slave_pos;' \
				"SET @server = CONCAT('0-', SUBSTRING_INDEX(SUBSTRING_INDEX(@copied, '-', 2), '-', -1), '-');" \
				"SET GLOBAL gtid_binlog_state = TRIM(BOTH ',' FROM CONCAT(REGEXP_REPLACE('$(cat /run/database/history)', CONCAT('(^|,)', @server, '[0-9]+'), ''), ',', @copied));" \
				'RESET SLAVE ALL;' "UPDATE database_manager.member SET role = 'replica', host = '$(source_host)', port = 3306 WHERE id = 1;"
	} | mariadb --defaults-file=/run/database/private.cnf --max-allowed-packet=1G
}

# A new member takes no writes, until it is promoted: the configuration says so,
# and promotion changes the row that is read below.
has_data=true is_drained=yes
open_data mariadb "$binary" || has_data=false
accept_live live.cnf takes
if must_copy "$has_data"; then
	record_version mariadb "$binary"
	await_source ask_source
	initialise copy_data
	grant_wish
elif [ "$has_data" = false ]; then
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

# A server has this file while it is told of a source.
[ ! -e /data/db/master.info ] || drain

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

# columns prints the SQL that brings the table of the role to this form. One that
# was made by an older script has but the role.
columns() {
	printf '%s\n' "ALTER TABLE database_manager.member ADD COLUMN IF NOT EXISTS host VARCHAR(255) NOT NULL DEFAULT '', ADD COLUMN IF NOT EXISTS port INT UNSIGNED NOT NULL DEFAULT 3306, ADD COLUMN IF NOT EXISTS acknowledges BOOLEAN NOT NULL DEFAULT 0, ADD COLUMN IF NOT EXISTS required INT UNSIGNED NOT NULL DEFAULT 0;"
}

# demote prints the SQL that keeps the primary's role from a member that isn't the
# topology's primary. It copies from nobody until it is told to.
demote() {
	! names_another_primary || printf '%s\n' "UPDATE database_manager.member SET role = 'fenced' WHERE role = 'primary';"
}

# follow prints the SQL that has a replica go on copying, with the newest password.
# A former primary has its own transactions behind it: they count, too.
follow() {
	[ -n "$is_drained" ] || return 0
	printf '%s\n' "SET @is_following = (SELECT role = 'replica' AND host <> '' FROM database_manager.member WHERE id = 1);" \
		"SET GLOBAL rpl_semi_sync_slave_enabled = (SELECT @is_following AND acknowledges FROM database_manager.member WHERE id = 1);" \
		"SET @source = (SELECT CONCAT('MASTER_HOST=', QUOTE(host), ', MASTER_PORT=', port) FROM database_manager.member WHERE id = 1);" \
		"SET @follow = CONCAT('CHANGE MASTER TO ', @source, ', MASTER_USER=''replicator'', MASTER_PASSWORD=''$(replicator_password)'', ', 'MASTER_SSL_VERIFY_SERVER_CERT=0, MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1, MASTER_USE_GTID=slave_pos, MASTER_DEMOTE_TO_SLAVE=1');" \
		"SET @follow = IF(@is_following, @follow, 'DO 0'), @start = IF(@is_following, 'START SLAVE', 'DO 0');" \
		'EXECUTE IMMEDIATE @follow;' 'EXECUTE IMMEDIATE @start;'
}

# Every start sets the accounts from the Secrets' files, before it serves
# anybody. It isn't logged for other members, which have the same files. The
# role comes last; without its row, the member stays read-only, and follows
# nobody. What a primary waits for is set before it takes writes. All that is done
# without a limit of time, which is set afterwards.
limit=$(sed -n 's/^max-statement-time=\([0-9.]*\)$/\1/p' /data/live.cnf)
{
	printf '%s\n' "SET SESSION sql_log_bin = OFF, sql_mode = '', old_passwords = OFF;" 'DROP USER IF EXISTS boot@localhost;'
	account operator 'ALL ON *.*' /secrets/admin/password 'WITH GRANT OPTION'
	printf '%s' "$(replicator_password)" >/run/database/replicator
	account replicator 'REPLICATION SLAVE, BINLOG MONITOR, SELECT, SHOW VIEW, TRIGGER, EVENT ON *.*' /run/database/replicator
	account app 'ALL ON app.*' /secrets/auth/password
	printf '%s\n' "SET GLOBAL max_statement_time = ${limit:-0};"
	columns
	demote
	follow
	printf '%s\n' "SET GLOBAL rpl_semi_sync_master_enabled = (SELECT role = 'primary' AND required > 0 FROM database_manager.member WHERE id = 1);"
	printf '%s\n' "SET GLOBAL read_only = (SELECT IF(role = 'primary', 0, 1) FROM database_manager.member WHERE id = 1);"
} >/run/database/start.sql

# The operator tells this start from all others by the file's name.
rm -f /data/db/*.pid
exec mariadbd --defaults-file=/boot/mariadb.cnf --max-statement-time=0 --server-id="$server_id" --report-host="$pod" --init-file=/run/database/start.sql \
	--pid-file="/data/db/$(random).pid"
