#!/bin/sh
# Starts one member of a PostgreSQL database. It ends in exec, so that the server
# is the container's first process and gets its signals.
# shellcheck source=internal/engine/boot/common.sh
. /boot/common.sh

# A minor version neither changes the format of the data nor adds anything.
major=$(postgres --version | sed -n 's/^postgres (PostgreSQL) \([0-9]*\).*/\1/p')
[ -n "$major" ] || refuse 1 "postgres doesn't say which version it is."

# The pod's name, which the container runtime sets.
# shellcheck disable=SC3028
name=${HOSTNAME-}

# literal FILE prints a file's content as a string constant on one line.
literal() {
	printf "E'"
	LC_ALL=C sed -z -e 's/\\/\\\\/g' -e "s/'/''/g" -e 's/\n/\\n/g' "$1"
	printf "'"
}

# account NAME SECRET ATTRIBUTES makes an account what it should be, whatever it
# was. The server keeps a verifier of the password, and not the password.
account() {
	printf '%s\n' "DO \$\$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '$1') THEN CREATE ROLE \"$1\"; END IF; END \$\$;"
	printf '%s' "ALTER ROLE \"$1\" LOGIN $3 PASSWORD "
	literal "/secrets/$2/password"
	printf ';\n'
}

#   operator    the operator: everything.
#   replicator  members that copy from another one: that, and nothing else.
#   app         the application: all in the database that it owns, and nothing of
#               the server.
accounts() {
	account operator admin SUPERUSER
	account replicator admin 'REPLICATION NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS'
	account app auth 'NOREPLICATION NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS'
}

# execute DIRECTORY runs the statements of its input, one a line, in a server
# without a network, and ends at the first that fails. A failing statement isn't
# logged, and ALTER SYSTEM can't make it read-only, nor a parameter end it. It
# waits for no replica: there is none.
execute() {
	postgres --single -D "$1" -c config_file=/boot/postgresql.conf -c exit_on_error=on \
		-c log_checkpoints=off -c log_min_error_statement=panic -c log_statement=none -c log_min_duration_statement=-1 \
		-c statement_timeout=0 -c transaction_timeout=0 -c lock_timeout=0 -c synchronous_standby_names= \
		-c password_encryption=scram-sha-256 -c default_transaction_read_only=off postgres >/dev/null
}

# Of both passwords at once, so that one that somebody chose can't be guessed
# from it: the other is random.
digest() { sha256sum /secrets/admin/password /secrets/auth/password | sha256sum; }

# record DIRECTORY notes what was set in it.
record() {
	digest >"$1/accounts"
	sha256sum /boot/postgresql.conf >"$1/configuration"
}

# is_recorded tells whether all is as it was set last.
is_recorded() { [ "$(digest)" = "$(cat /data/db/accounts 2>/dev/null || :)" ] && is_configured; }

# is_configured: a standby starts with no less room, for connections for instance,
# than the server had that wrote what it has read. One that was never promoted has
# read what it wrote itself, and so has to write again with what is new.
is_configured() { [ ! -e /data/db/standby.signal ] || sha256sum --status -c /data/db/configuration 2>/dev/null; }

# read_config DIRECTORY FILE has the server read a configuration, and nothing
# else; it says what it doesn't take.
read_config() { postgres -C port -D "$1" -c log_line_prefix= -c config_file="$2"; }

check_live() {
	answer=$(read_config /data "$1" 2>&1) || {
		printf '%s\n' "$answer" >&2
		return 1
	}
}

# drop_overrides: what ALTER SYSTEM has set wins over the files, which are newer.
# What it has set besides is the member's own.
drop_overrides() {
	names=$(sed -n 's/^\([A-Za-z_]*\) = .*/^\1 = /p' /boot/postgresql.conf /data/live.conf)
	if printf '%s\n' "$names" | grep -qif - /data/db/postgresql.auto.conf; then
		printf '%s\n' "$names" | grep -vif - /data/db/postgresql.auto.conf >/data/db/postgresql.auto.conf.new || [ $? = 1 ]
		sync
		mv /data/db/postgresql.auto.conf.new /data/db/postgresql.auto.conf
	fi
}

# sourceless FILE prints what ALTER SYSTEM has set, but whom to copy from.
sourceless() { sed '/^primary_conninfo = /d' "$1"; }

# demote DIRECTORY makes the data a replica's that follows nobody. The server takes
# no writes with them, whatever was said in it.
demote() {
	sourceless "$1/postgresql.auto.conf" >"$1/postgresql.auto.conf.new"
	mv "$1/postgresql.auto.conf.new" "$1/postgresql.auto.conf"
	sync
	: >"$1/standby.signal"
	sync
}

# write_password: the server reads it whenever it connects to its source. Such a file
# holds no newline within a password, and no carriage return at its end; the operator
# makes none like that.
write_password() {
	printf '*:*:*:*:' >/run/database/source.new
	LC_ALL=C sed -z -e 's/\\/\\\\/g' -e 's/:/\\:/g' /secrets/admin/password >>/run/database/source.new
	mv /run/database/source.new /run/database/source
}

# reach prints how the source is reached. As long as it says nothing, it is waited
# for a while, and given up if even the kernel is silent.
reach() {
	printf 'host=%s port=5432 passfile=/run/database/source require_auth=scram-sha-256 sslmode=disable gssencmode=disable connect_timeout=5 tcp_user_timeout=20000' "$(source_host)"
}

# quietly COMMAND… prints what a command has to say when it fails, unless it has
# said so before: it is tried again and again.
quietly() {
	complaint=$("$@" 2>&1) && return 0
	if [ "$complaint" != "$(cat /run/database/complaint 2>/dev/null || :)" ]; then
		printf '%s\n' "$complaint" | tee /run/database/complaint >&2
	fi
	return 1
}

source_answers() { quietly pg_isready --quiet --timeout=5 --host="$(source_host)" --port=5432; }

# copy_source fills /data/init with the source's data, and what happens to them
# meanwhile.
copy_source() {
	source_answers || return 1
	rm -rf /data/init
	quietly pg_basebackup --pgdata=/data/init --dbname="$(reach) user=replicator" --no-password \
		--wal-method=stream --checkpoint=fast --no-sync
}

# rewind_data takes back in /data/init what the source doesn't have, and brings what
# it has besides. It has to be a primary's for that, and of a server that ended well:
# that is seen to. False also if there is nothing to take back: whatever keeps the
# data from following the source, as that it has nothing to go on from any more, stays.
rewind_data() {
	rm -f /data/init/standby.signal /data/init/standby.parked /data/init/postmaster.pid
	LC_ALL=C pg_rewind --target-pgdata=/data/init --source-server="$(reach) user=operator dbname=postgres" \
		--config-file=/boot/postgresql.conf --no-sync >/run/database/rewound 2>&1 || {
		cat /run/database/rewound >&2
		return 1
	}
	! grep -q 'no rewind required' /run/database/rewound
}

# follow_source makes the data in /data/init those of a replica of the source. Whether
# commits rest on it is for the source to know.
follow_source() {
	rm -f /data/init/standby.parked /data/init/postmaster.pid
	sourceless /data/init/postgresql.auto.conf >/data/init/postgresql.auto.conf.new
	printf "primary_conninfo = '%s user=replicator application_name=%s'\n" "$(reach)" "$name" >>/data/init/postgresql.auto.conf.new
	mv /data/init/postgresql.auto.conf.new /data/init/postgresql.auto.conf
	: >/data/init/standby.signal
	sync
	mv /data/init /data/db
	sync
	grant_wish
}

# copy_data copies the primary's data to where there are none.
copy_data() {
	await_source copy_source
	follow_source
}

# renew_data gives up the data for the primary's. From the moment on when they may be
# neither the one nor the other, they aren't in place, and of no value: ended there,
# the next start copies all.
renew_data() {
	await_source source_answers
	rm -rf /data/init
	mv /data/db /data/init
	sync
	rewind_data &
	if wait "$!"; then
		follow_source
	else
		say "It doesn't help to rewind the data: they are copied as a whole."
		copy_data
	fi
}

# forget_unfollowed: a replica whose data have parted from its source's has heard of
# the source's timeline, and its server would refuse to start rather than tell. What
# timelines it has nothing of it forgets; it hears of them again.
forget_unfollowed() {
	newest=$(cd /data/db/pg_wal && printf '%s\n' [0-9A-F]* | sed -n 's/^\([0-9A-F]\{8\}\)[0-9A-F]\{16\}$/\1/p' | sort | tail -n 1)
	for part in /data/db/pg_wal/*.history; do
		timeline=${part##*/}
		timeline=${timeline%.history}
		if [ -e "$part" ] && [ -n "$newest" ] && [ "$timeline" != "$newest" ] &&
			[ "$(printf '%s\n%s\n' "$timeline" "$newest" | sort | tail -n 1)" = "$timeline" ]; then
			rm "$part"
		fi
	done
}

make_data() {
	initdb --pgdata=/data/init --username=operator --pwfile=/secrets/admin/password --auth=scram-sha-256 \
		--encoding=UTF8 --locale=C.UTF-8 --locale-provider=builtin --builtin-locale=C.UTF-8 \
		--data-checksums --no-sync --no-instructions >/dev/null
	{
		accounts
		printf '%s\n' 'CREATE DATABASE "app" OWNER "app";' 'REVOKE ALL ON DATABASE "postgres", "template1" FROM PUBLIC;'
	} | execute /data/init
	record /data/init
	# It follows nobody, and takes no writes until it is promoted.
	: >/data/init/standby.signal
}

# set_accounts sets them from the Secrets' files. A standby can't: it has what
# its primary has. But one that was never promoted, and so has no history, has no
# primary either, and is one no more for the moment.
set_accounts() {
	[ ! -e /data/db/standby.signal ] || mv /data/db/standby.signal /data/db/standby.parked
	accounts | execute /data/db
	record /data/db
	[ ! -e /data/db/standby.parked ] || mv /data/db/standby.parked /data/db/standby.signal
}

# check_passwords refuses what the server would: it can be told a password only in
# the encoding of its data, and would log the bytes that aren't.
check_passwords() {
	for secret in admin auth; do
		! LC_ALL=C.UTF-8 grep -qaxv '.*' "/secrets/$secret/password" ||
			refuse 1 "The password in the $secret Secret isn't UTF-8, and PostgreSQL takes no other; the accounts were left as they are. Write another one into the Secret."
	done
}

# was_promoted: each promotion begins a part of the history, and a clone of what
# was promoted has its history.
was_promoted() {
	for part in /data/db/pg_wal/*.history; do
		[ ! -e "$part" ] || return 0
	done
	return 1
}

# has_primary: it follows somebody, or did.
has_primary() { was_promoted || grep -q "^primary_conninfo = '." /data/db/postgresql.auto.conf; }

write_password
if open_data postgresql "$major"; then
	format=$(cat /data/db/PG_VERSION 2>/dev/null || :)
	# shellcheck disable=SC2154 # of common.sh
	[ "$format" = "$major" ] || refuse "$foreign_data" "The data have the format of PostgreSQL ${format:-(unknown)}, and this is PostgreSQL $major, which opens no other than its own; they were left as they are. Set spec.version to ${format:-their version}, or have a new database restore a dump of them."
	# The server insists, and a kubelet that gives the volume to a group undoes it.
	chmod 700 /data/db || refuse "$foreign_data" "The data belong to another user than $(id -u), and PostgreSQL opens none but its own; they were left as they are."
	accept_live live.conf check_live
	drop_overrides
	require_config read_config /data/db /boot/postgresql.conf
	record_version postgresql "$major"
	if must_copy true; then
		renew_data
		drop_overrides
	fi
else
	check_passwords
	accept_live live.conf check_live
	require_config read_config /data /boot/postgresql.conf
	record_version postgresql "$major"
	if must_copy false; then
		copy_data
		drop_overrides
	else
		initialise make_data
	fi
fi

# A kill in the middle of set_accounts leaves it so.
[ ! -e /data/db/standby.parked ] || mv /data/db/standby.parked /data/db/standby.signal
# The lock says that no server runs. What one left that was killed says that the
# first process is one, and that is this script.
rm -f /data/db/postmaster.pid

if [ ! -e /data/db/standby.signal ] && names_another_primary; then
	say "This member was the primary, and $TOPOLOGY_PRIMARY is: it follows nobody until it is told to."
	demote /data/db
fi
[ ! -e /data/db/standby.signal ] || forget_unfollowed

if ! is_recorded; then
	if [ -e /data/db/standby.signal ] && has_primary; then
		say "This member is a standby: it gets its accounts' passwords from its primary."
	else
		check_passwords
		interruptible set_accounts
	fi
fi

# A standby doesn't start with less room than its primary has: where the files have
# less, it keeps what it had, and says so, until it has read that the primary has less.
set --
if [ -e /data/db/standby.signal ]; then
	LC_ALL=C pg_controldata -D /data/db >/run/database/control
	for limit in max_connections:max_connections max_worker_processes:max_worker_processes max_wal_senders:max_wal_senders \
		max_prepared_xacts:max_prepared_transactions max_locks_per_xact:max_locks_per_transaction; do
		written=$(sed -n "s/^${limit%:*} setting: *\([0-9]*\)$/\1/p" /run/database/control)
		configured=$(postgres -C "${limit#*:}" -D /data/db -c log_line_prefix= -c config_file=/boot/postgresql.conf)
		[ "${written:-0}" -le "$configured" ] || set -- "$@" -c "${limit#*:}=$written" -c database_manager.former_limits=on
	done
fi

exec postgres -D /data/db -c config_file=/boot/postgresql.conf -c cluster_name="$name" "$@"
