#!/bin/sh
# Starts one member of a PostgreSQL database. It ends in exec, so that the server
# is the container's first process and gets its signals.
# shellcheck source=internal/engine/boot/common.sh
. /boot/common.sh

# A minor version neither changes the format of the data nor adds anything.
major=$(postgres --version | sed -n 's/^postgres (PostgreSQL) \([0-9]*\).*/\1/p')
[ -n "$major" ] || refuse 1 "postgres doesn't say which version it is."

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
# logged, and ALTER SYSTEM can't make it read-only, nor a parameter end it.
execute() {
	postgres --single -D "$1" -c config_file=/boot/postgresql.conf -c exit_on_error=on \
		-c log_checkpoints=off -c log_min_error_statement=panic -c log_statement=none -c log_min_duration_statement=-1 \
		-c statement_timeout=0 -c transaction_timeout=0 -c lock_timeout=0 \
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
else
	check_passwords
	accept_live live.conf check_live
	require_config read_config /data /boot/postgresql.conf
	record_version postgresql "$major"
	initialise make_data
fi

# A kill in the middle of set_accounts leaves it so.
[ ! -e /data/db/standby.parked ] || mv /data/db/standby.parked /data/db/standby.signal
# The lock says that no server runs. What one left that was killed says that the
# first process is one, and that is this script.
rm -f /data/db/postmaster.pid

if ! is_recorded; then
	if [ -e /data/db/standby.signal ] && was_promoted; then
		say "This member is a standby: it gets its accounts' passwords from its primary."
	else
		check_passwords
		interruptible set_accounts
	fi
fi

exec postgres -D /data/db -c config_file=/boot/postgresql.conf
