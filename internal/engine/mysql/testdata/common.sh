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
#   /data/gone    a data directory that was given up, on its way out
#   /data/cloned  the topology's last wish that the data be given up, granted
#   /data/live.*  the last live parameters that the server took

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

# The name of the member's pod, which each container has in its environment.
# shellcheck disable=SC3028
pod=${HOSTNAME-}

# random prints 32 hexadecimal digits.
random() { od -An -v -N 16 -tx1 /dev/urandom | tr -d ' \n'; }

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

# is_newer A B: version A, as in 9.7, comes after version B.
is_newer() {
	[ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1)" = "$1" ]
}

# open_data ENGINE VERSION takes the lock on the volume, and looks at what is on
# it: true where there are data that this version opens, false where there is
# nothing and a database is to be made, or copied: see must_copy. Everything else
# ends the script. The lock's descriptor is inherited through exec, so it is held
# while the server runs; two servers on one data directory ruin it.
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
		'/data/*' | '/data/.[!.]*' | /data/.lock | /data/lost+found | /data/init | /data/gone | /data/cloned | /data/engine | /data/engine.new | /data/live.*) ;;
		*) refuse "$foreign_data" "The volume holds ${entry#/data/}, which no database of this operator put there; it was left as it is." ;;
		esac
	done
	# Resolved from the topology at each start of the container. Where it is
	# absent, or says that there are data somewhere, nothing is made; at most they
	# are copied.
	[ "${TOPOLOGY_STATE-}" = new ] || has_source || refuse "$no_data" "The volume is empty, and the database was initialised before; nothing was made in its place."
	return 1
}

# interruptible COMMAND… runs a command that a signal needn't wait for.
interruptible() {
	"$@" &
	wait "$!" || refuse 1 "The server can't be prepared: $1 failed; see the container's log."
}

# initialise COMMAND… makes the data directory: COMMAND fills /data/init, which
# is moved into place once it is whole. What is in that place goes then, and not
# before.
initialise() {
	rm -rf /data/init /data/gone
	mkdir /data/init
	interruptible "$@"
	sync
	if [ -e /data/db ]; then mv /data/db /data/gone; fi
	mv /data/init /data/db
	sync
	rm -rf /data/gone
}

# has_source: the topology names another member as the primary, and members find
# each other. The source is source_host.
has_source() {
	[ -n "${MEMBERS_DOMAIN-}" ] && names_another_primary
}
names_another_primary() {
	[ -n "${TOPOLOGY_PRIMARY-}" ] && [ "$TOPOLOGY_PRIMARY" != "$pod" ]
}
source_host() { printf '%s\n' "$TOPOLOGY_PRIMARY.$MEMBERS_DOMAIN"; }

# must_copy HAS_DATA: the member is to copy the primary's data, since it has none
# in a database that has some, or since the topology wishes it to give up its own
# and it hasn't yet. Whoever has done so calls grant_wish.
must_copy() {
	has_source || return 1
	if [ "$1" = true ]; then [ -n "$(ungranted_wish)" ]; else [ "${TOPOLOGY_STATE-}" != new ]; fi
}

# ungranted_wish prints the token of the topology's wish that the member give up
# its data, if there is one that isn't granted.
ungranted_wish() {
	granted=''
	[ ! -r /data/cloned ] || read -r granted </data/cloned
	for wish in ${TOPOLOGY_CLONE-}; do
		if [ "${wish%%:*}" = "$pod" ] && [ "${wish#*:}" != "$granted" ]; then
			printf '%s\n' "${wish#*:}"
		fi
	done
}

# grant_wish notes that the data that are there now were copied from the primary,
# whatever was there before.
grant_wish() {
	token=$(ungranted_wish)
	[ -n "$token" ] || return 0
	printf '%s\n' "$token" >/data/cloned
	sync
}

# await_source COMMAND… runs a command until it succeeds, which tells whether the
# source can be copied from, for about a minute. A signal needn't wait for it.
await_source() {
	deadline=$(($(date +%s) + 60)) is_said=false
	until "$@" & wait "$!"; do
		[ "$is_said" = true ] || say "Waiting for $TOPOLOGY_PRIMARY, whose data are to be copied."
		is_said=true
		[ "$(date +%s)" -lt "$deadline" ] ||
			refuse "$no_source" "The data of $TOPOLOGY_PRIMARY, the primary, can't be copied, since it isn't reached, or takes no replica; nothing was changed, and the member tries again."
		sleep 1 &
		wait "$!"
	done
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
