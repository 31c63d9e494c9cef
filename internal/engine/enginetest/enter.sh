#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Usage: enter.sh HOSTNAME ROOT FOLDER DATA COMMAND…
#
# Runs as the first process of its namespaces. It lays out what a member's
# container sees, of the image's file system in ROOT, the member's own folders
# in FOLDER and its volume DATA, and becomes COMMAND. Descriptor 3 is closed once
# all is in place.

set -eu

host=$1 root=$2 folder=$3 data=$4
shift 4
stage=$folder/root

bind() { mount --bind "$1" "$2"; }
bind_read_only() { bind "$1" "$2" && mount -o remount,bind,ro "$2"; }

mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs "$stage"

# The image, read-only. What is a mount of its own below, comes below; /etc is
# small and gets files of the kubelet's.
for entry in "$root"/*; do
	name=${entry##*/}
	case $name in
	boot | data | dev | live | proc | run | sys | tmp) mkdir "$stage/$name" ;;
	etc) cp -a "$entry" "$stage/etc" ;;
	*)
		if [ -L "$entry" ]; then
			cp -P "$entry" "$stage/$name"
		else
			mkdir "$stage/$name"
			bind_read_only "$entry" "$stage/$name"
		fi
		;;
	esac
done
printf '%s\n' "$host" >/proc/sys/kernel/hostname
printf '%s\n' "$host" >"$stage/etc/hostname"
# In a folder of its own, since what is written anew takes the old file's place.
mkdir "$stage/etc/names"
bind_read_only "$folder/names" "$stage/etc/names"
ln -sf names/hosts "$stage/etc/hosts"

# What the container runtime mounts.
mount -t proc proc "$stage/proc"
mount -t sysfs -o ro sysfs "$stage/sys"
mount -t tmpfs -o mode=0755 tmpfs "$stage/dev"
for device in null zero full random urandom; do
	: >"$stage/dev/$device"
	bind "/dev/$device" "$stage/dev/$device"
done
ln -s /proc/self/fd "$stage/dev/fd"
ln -s /proc/self/fd/0 "$stage/dev/stdin"
ln -s /proc/self/fd/1 "$stage/dev/stdout"
ln -s /proc/self/fd/2 "$stage/dev/stderr"
mkdir "$stage/dev/shm"
mount -t tmpfs -o mode=1777 shm "$stage/dev/shm"
: >"$stage/dev/termination-log"
bind "$folder/termination-log" "$stage/dev/termination-log"

# The pod's volumes.
mkdir -p "$stage/live" "$stage/secrets" "$stage/run/database"
bind "$data" "$stage/data"
bind "$folder/run" "$stage/run/database"
bind "$folder/tmp" "$stage/tmp"
bind_read_only "$folder/boot" "$stage/boot"
bind_read_only "$folder/live" "$stage/live"
bind_read_only "$folder/secrets" "$stage/secrets"

mount -o remount,ro "$stage"
# shellcheck disable=SC2016 # the inner shell expands it
exec chroot "$stage" /bin/sh -c 'exec 3>&- && exec "$@"' enter \
	setpriv --reuid=999 --regid=999 --clear-groups --no-new-privs \
	--inh-caps=-all --bounding-set=-all --pdeathsig=KILL "$@"
