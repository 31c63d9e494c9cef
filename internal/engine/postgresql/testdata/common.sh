# shellcheck shell=sh
# Shared by the boot scripts of all engines, which read it first. POSIX sh, and
# no tools but those of coreutils and util-linux. Nothing here prints a secret,
# or puts one into an argument list or the environment.
#
# On a member's volume:
#
#   /data/.lock   locked for as long as a server runs on the volume
#   /data/engine  which engine, and which version of it, opened the data last
#   /data/init    a data directory that is still being made; of no value
#   /data/db      the data directory
#   /data/live.*  the last live parameters that the server took
#   /data/cloned  which directive to copy the data anew was carried out last

set -eu
umask 077

# A shell that is a container's first process ignores a signal that it doesn't
# trap, and a trap waits for the command in the foreground to end: what takes
# long is run by interruptible. All else in the container ends with the script.
stop_when_asked() { trap 'exit 143' TERM INT; }
stop_when_asked

# The exit codes that tell the operator why a member doesn't start; the sentence
# beside them is in the container's termination message.
readonly foreign_data=65 no_data=66 no_source=69 in_use=75 bad_config=78

say() { printf 'boot: %s\n' "$*" >&2; }

# refuse CODE SENTENCE ends the script.
refuse() {
	code=$1
	shift
	say "$*"
	if [ -w /dev/termination-log ]; then
		printf '%s\n' "$*" >/dev/termination-log
	fi
	exit "$code"
}

# What the topology says of the member, where there is one. source_host is where
# it copies its data from if it has none; empty if it is the primary itself, or
# there is none. clone_token is set if it is to give up its data, and hasn't yet.
source_host='' is_primary_elsewhere='' clone_token=''
: "${HOSTNAME=$(cat /proc/sys/kernel/hostname)}"
if [ -n "${TOPOLOGY_PRIMARY-}" ] && [ "$TOPOLOGY_PRIMARY" != "$HOSTNAME" ]; then
	is_primary_elsewhere=yes
	[ -z "${MEMBERS_DOMAIN-}" ] || source_host=$TOPOLOGY_PRIMARY.$MEMBERS_DOMAIN
fi
if [ -n "$source_host" ]; then
	for directive in ${TOPOLOGY_CLONE-}; do
		case $directive in "$HOSTNAME":*) clone_token=${directive#*:} ;; esac
	done
	[ "$clone_token" != "$(cat /data/cloned 2>/dev/null)" ] || clone_token=''
fi

# ordinal prints the number at the end of the pod's name, or 0 where there is none.
ordinal() {
	number=${HOSTNAME##*-}
	case $number in
	'' | *[!0-9]* | ??????????* | "$HOSTNAME") number=0 ;;
	esac
	printf '%s\n' "$number" | sed 's/^0*\(.\)/\1/'
}

# is_newer A B: version A, as in 9.7, comes after version B.
is_newer() {
	[ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1)" = "$1" ]
}

# open_data ENGINE VERSION takes the lock on the volume, and looks at what is on
# it: true where there are data that this version opens, false where there is
# nothing, and a database is to be made, or copied from source_host, as
# is_to_be_copied tells. Everything else ends the script. The
# lock's descriptor is inherited through exec, so it is held while the server
# runs; two servers on one data directory ruin it.
open_data() {
	exec 9>/data/.lock
	flock -n 9 || refuse "$in_use" "The volume is in use by another server; this one won't start beside it."
	if [ -e /data/db ]; then
		known='' recorded=''
		[ ! -r /data/engine ] || read -r known recorded </data/engine
		[ -n "$known" ] || refuse "$foreign_data" "The volume holds a folder db of unknown origin, since the file that names its engine is missing; it was left as it is."
		[ "$known" = "$1" ] || refuse "$foreign_data" "The volume holds data of $known, and this is $1; they were left as they are."
		! is_newer "$recorded" "$2" || refuse "$foreign_data" "The data were last opened by $1 $recorded, and this is $1 $2, which is older; they were left as they are. Set spec.version to $recorded or newer."
		return 0
	fi
	for entry in /data/* /data/.[!.]*; do
		case $entry in
		'/data/*' | '/data/.[!.]*' | /data/.lock | /data/lost+found | /data/init | /data/engine | /data/engine.new | /data/live.* | /data/cloned | /data/cloned.new) ;;
		*) refuse "$foreign_data" "The volume holds ${entry#/data/}, which no database of this operator put there; it was left as it is." ;;
		esac
	done
	# Resolved from the topology at each start of the container. Where it is
	# absent, or says that there are data somewhere, nothing is made.
	[ "${TOPOLOGY_STATE-}" = new ] || [ -n "$source_host" ] || refuse "$no_data" "The volume is empty, and the database was initialised before; nothing was made in its place."
	return 1
}

# interruptible COMMAND… runs a command that a signal needn't wait for.
interruptible() {
	"$@" &
	wait "$!" || refuse 1 "The server can't be prepared: $1 failed; see the container's log."
}

# initialise COMMAND… makes the data directory: COMMAND fills /data/init, which
# is moved into place once it is whole.
initialise() {
	rm -rf /data/init
	mkdir /data/init
	interruptible "$@"
	sync
	mv /data/init /data/db
	sync
}

# is_to_be_copied tells whether a member without data, or one that is to give up
# its own, copies those of its source.
is_to_be_copied() { [ -n "$clone_token" ] || { [ "${TOPOLOGY_STATE-}" != new ] && [ -n "$source_host" ]; }; }

# await_source COMMAND… runs a command that asks the source for something, until
# it succeeds, for about a minute. What it prints is in /run/database/source.out.
await_source() {
	until=$(($(date +%s) + 60)) is_said=''
	until
		"$@" >/run/database/source.out 2>/run/database/source.err &
		wait "$!"
	do
		[ -n "$is_said" ] || say "$source_host, which the data are to be copied from, can't be reached yet: $(said "$(cat /run/database/source.err)")"
		is_said=yes
		[ "$(date +%s)" -lt "$until" ] ||
			refuse "$no_source" "The data are to be copied from $source_host, which can't be reached. Nothing was made in their place; the next start tries again."
		sleep 1 &
		wait "$!" || :
	done
}

# begin_copy makes an empty /data/init, once the source is there. Data that there
# are still are given up, at once as a whole.
begin_copy() {
	rm -rf /data/init
	[ ! -e /data/db ] || mv /data/db /data/init
	rm -rf /data/init
	mkdir /data/init
}

# settle_copy moves /data/init, which holds all of the source's data by now, into
# place. What the directive said is noted first: killed in between, the member has
# no data, and copies them again for that reason.
settle_copy() {
	if [ -n "$clone_token" ]; then
		printf '%s\n' "$clone_token" >/data/cloned.new
		mv /data/cloned.new /data/cloned
	fi
	sync
	mv /data/init /data/db
	sync
}

# record_version ENGINE VERSION notes who opens the data. An older server won't
# open them any more.
record_version() {
	printf '%s %s\n' "$1" "$2" >/data/engine.new
	sync
	mv /data/engine.new /data/engine
}

# require_config COMMAND… has the server look at its configuration. What it says
# against it goes to the user.
require_config() {
	report=$("$@" 2>&1) ||
		refuse "$bad_config" "The server doesn't take its configuration: $(said "$report")"
}

# said REPORT prints the end of what a command printed, in one line.
said() { printf '%s\n' "$1" | tail -n 3 | tr '\n' ' ' | sed 's/ *$//'; }

# accept_live FILE CHECK brings the newest live parameters into use, as
# /data/FILE. CHECK, which is given a file's name, tells whether the server takes
# them: if it doesn't, the last ones that it took stay in use, so that no value
# keeps a member from starting. If it doesn't take those either, it isn't the
# parameters: CHECK may look at the whole configuration, too.
accept_live() {
	cat "/live/$1" >"/data/$1.new"
	if report=$("$2" "/data/$1.new" 2>&1); then
		mv "/data/$1.new" "/data/$1"
		return 0
	fi
	rm "/data/$1.new"
	[ -e "/data/$1" ] || : >"/data/$1"
	refused=$report
	require_config "$2" "/data/$1"
	say "The server doesn't take the parameters in $1, and the last ones that it took stay in use: $(said "$refused")"
}
