#!/bin/sh
# Starts one member of a Redis or Valkey database; $1 is which of them, and the
# beginning of its programs' names. It ends in exec, so that the server is the
# container's first process and gets its signals.
# shellcheck source=internal/engine/boot/common.sh
. /boot/common.sh

engine=$1
version=$("$engine-server" --version | sed -n 's/.* v=\([0-9]*\.[0-9]*\).*/\1/p')
[ -n "$version" ] || refuse 1 "$engine-server doesn't say which version it is."

# What the member decides for itself, and keeps with its data by CONFIG REWRITE.
# A new one follows nobody and takes no writes, until it is promoted.
make_data() {
	printf '%s\n' 'dir /data/db' 'aclfile /data/db/users.acl' 'replicaof 127.0.0.1 1' >/data/init/server.conf
}

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
if [ "$has_data" = false ]; then
	record_version "$engine" "$version"
	initialise make_data
fi
record_version "$engine" "$version"

# The passwords as the server stores them. The files hold the exact bytes,
# without a newline at the end.
app=$(sha256sum </secrets/auth/password | cut -c1-64)
operator=$(sha256sum </secrets/admin/password | cut -c1-64)

# Every start sets the accounts from the Secrets' files.
#   default   whoever gives no password, such as the kubelet's probe: PING only.
#   operator  the operator: everything.
#   app       the application: everything about data, nothing about the server.
#             @dangerous goes, and what applications need and can't harm anybody
#             but themselves with comes back. KEYS stays out: it stops the
#             server for as long as it takes, and SCAN does the same without.
{
	printf '%s\n' 'user default on nopass resetkeys resetchannels -@all +ping'
	printf '%s\n' "user operator on #$operator ~* &* +@all"
	printf '%s\n' "user app on #$app ~* &* +@all -@admin -@dangerous +info +role +sort +sort_ro +flushdb"
} >/data/db/users.acl.new
mv /data/db/users.acl.new /data/db/users.acl

# Given as arguments, the includes win over whatever a rewrite has written into
# server.conf, so the spec stays in charge of what it sets.
exec "$engine-server" /data/db/server.conf --include "/boot/$engine.conf" --include /data/live.conf
