#!/bin/sh
# Starts one member of a Redis or Valkey database; $1 is which of them, and the
# beginning of its programs' names. It ends in exec, so that the server is the
# container's first process and gets its signals.
# shellcheck source=internal/engine/boot/common.sh
. /boot/common.sh

engine=$1
version=$("$engine-server" --version | sed -n 's/.* v=\([0-9]*\.[0-9]*\).*/\1/p')
[ -n "$version" ] || refuse 1 "$engine-server doesn't say which version it is."

# The file of the member's role: what it decides for itself, and keeps with its
# data by CONFIG REWRITE. One that follows nobody takes no writes, until it is
# promoted; one without the line replicaof is the primary.
role_file=/data/db/server.conf
nowhere='replicaof 127.0.0.1 1'

# make_data SOURCE [LINE] makes data that follow the source.
make_data() {
	printf '%s\n' 'dir /data/db' 'aclfile /data/db/users.acl' "$1" ${2+"$2"} >/data/init/server.conf
}

# replace_role COMMAND… has a command, which reads the file of the role, print
# another one.
replace_role() {
	"$@" <"$role_file" >"$role_file.new"
	sync
	mv "$role_file.new" "$role_file"
	sync
}

add_line() { cat && printf '%s\n' "$1"; }

# A file's exact bytes, in the form in which the server reads a word.
quote_file() { printf '"%s"\n' "$(od -An -v -tx1 "$1" | tr -d '\n' | sed 's/ /\\x/g')"; }

# source_answers tells whether the source takes this member as a replica and has
# whole data: a replica that isn't connected to a source of its own answers
# MASTERDOWN. The password goes through a pipe.
source_answers() {
	reply=$(printf 'AUTH replicator %s\nPING\n' "$(quote_file /secrets/admin/password)" |
		timeout 5 "$engine-cli" -h "$(source_host)" -p 6379 2>&1) || return 1
	[ "$reply" = "$(printf 'OK\nPONG')" ]
}

# has_history: an append-only file was begun in the data directory. The server
# makes one at its first start, before it serves anybody.
has_history() {
	for manifest in /data/db/appendonlydir/*.manifest; do
		[ ! -e "$manifest" ] || return 0
	done
	return 1
}

# has_copied: the file was begun anew since, as it is at the end of a copy, when
# all is in memory. Before that nothing is written to it that could make it grow.
has_copied() { ! grep -q ' seq 1 type b' /data/db/appendonlydir/*.manifest; }

# check_config FILE tells whether the server takes all that a file sets. It reads
# one line behind it that no server takes, so that it says so and ends; if it
# gets as far as that, it has taken the rest.
check_config() {
	answer=$("$engine-server" "$1" --end-of-configuration 2>&1) || :
	case $answer in
	*">>> 'end-of-configuration"*) return 0 ;;
	esac
	printf '%s\n' "$answer" >&2
	return 1
}

if open_data "$engine" "$version"; then has_data=true; else has_data=false; fi
require_config check_config "/boot/$engine.conf"
accept_live live.conf check_config
if must_copy "$has_data"; then
	# The server itself copies, once it runs: until then it says that it has
	# nothing, it serves nobody, and as long as its priority is 0 it is never
	# promoted. The source is waited for before anything is given up.
	await_source source_answers
	record_version "$engine" "$version"
	initialise make_data "replicaof $(source_host) 6379" 'replica-priority 0'
	grant_wish
elif [ "$has_data" = false ]; then
	record_version "$engine" "$version"
	initialise make_data "$nowhere"
elif ! grep -q '^replicaof ' "$role_file"; then
	# A primary that starts without its data would empty its replicas.
	has_history || refuse "$no_data" "The volume says that this is the primary, and the append-only file with its data is missing; nothing was made in its place."
	if names_another_primary; then
		say "$TOPOLOGY_PRIMARY is the primary now: this member, which was it, takes no writes until the operator has compared their data."
		replace_role add_line "$nowhere"
	fi
elif grep -q '^replica-priority 0$' "$role_file" && has_history && has_copied; then
	replace_role sed '/^replica-priority 0$/d'
fi
record_version "$engine" "$version"

# What was left of copies that were broken off.
rm -f /data/db/temp-*.rdb /data/db/temp-*.aof

# The passwords as the server stores them. The files hold the exact bytes,
# without a newline at the end.
app=$(sha256sum </secrets/auth/password | cut -c1-64)
operator=$(sha256sum </secrets/admin/password | cut -c1-64)

# Every start sets the accounts from the Secrets' files.
#   default     whoever gives no password, such as the kubelet's probe: PING only.
#   operator    the operator: everything.
#   replicator  the replicas of this member, with the operator's password: what
#               they need to copy from it.
#   app         the application: everything about data, nothing about the server.
#               @dangerous goes, and what applications need and can't harm anybody
#               but themselves with comes back. KEYS stays out: it stops the
#               server for as long as it takes, and SCAN does the same without.
{
	printf '%s\n' 'user default on nopass resetkeys resetchannels -@all +ping'
	printf '%s\n' "user operator on #$operator ~* &* +@all"
	printf '%s\n' "user replicator on #$operator resetchannels -@all +psync +replconf +ping"
	printf '%s\n' "user app on #$app ~* &* +@all -@admin -@dangerous +info +role +sort +sort_ro +flushdb"
} >/data/db/users.acl.new
mv /data/db/users.acl.new /data/db/users.acl

# How the member signs in at its source, and by what name it is known there. The
# folder is in memory. The operator keeps the password out of each rewrite.
: >/run/database/source.conf
if [ -n "${MEMBERS_DOMAIN-}" ]; then
	printf '%s\n' "replica-announce-ip $pod.$MEMBERS_DOMAIN" 'masteruser replicator' \
		"masterauth $(quote_file /secrets/admin/password)" >/run/database/source.conf
fi

# Given as arguments, the includes win over whatever a rewrite has written into
# server.conf, so the spec stays in charge of what it sets.
exec "$engine-server" "$role_file" --include "/boot/$engine.conf" --include /data/live.conf --include /run/database/source.conf
