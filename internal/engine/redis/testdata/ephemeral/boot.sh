#!/bin/sh
# Starts one member of a Redis database. It ends in exec, so that Redis is the
# container's first process and gets its signals. Nothing here prints a secret
# or puts one into an argument list.
set -eu
umask 077

# Two servers on one data directory ruin it. The descriptor is inherited through
# exec, so the lock is held for as long as Redis runs.
exec 9>/data/.lock
if ! flock -n 9; then
	echo "boot: /data is in use by another server; this one won't start beside it." >&2
	exit 1
fi

# The passwords as Redis stores them. The files hold the exact bytes, without a
# newline at the end.
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
} >/data/users.acl.new
mv /data/users.acl.new /data/users.acl

# What the member decides for itself and keeps with its data, by CONFIG REWRITE.
if [ ! -e /data/server.conf ]; then
	printf '%s\n' 'dir /data' 'aclfile /data/users.acl' >/data/server.conf.new
	sync
	mv /data/server.conf.new /data/server.conf
fi

# Given as an argument, the include wins over whatever a rewrite has written
# into server.conf, so the spec stays in charge of what it sets.
exec redis-server /data/server.conf --include /boot/redis.conf
