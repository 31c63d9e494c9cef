#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
	cat <<-'END'
		Usage: hack/smoke-upstream.sh [FLAG…] [ENGINE[:VERSION]…]

		Tries each engine and version that the operator knows on a cluster of yours, with
		the images that its nodes pull: upstream's. Each is tried twice, without storage
		and with it: a database is made, becomes Ready, is written to and read from by the
		client in its own pod, loses its pod, and must have its data again, or, without
		storage, none. It needs kubectl, an installed operator (config/install.yaml), and
		for the databases with storage a StorageClass. Everything happens in a namespace of
		its own, under Pod Security "restricted", which is deleted at the end.

		  ENGINE[:VERSION]     only these, as in "mysql" or "redis:8.0"; default: all that
		                       docs/engines.md lists
		  --only WHAT          ephemeral or durable; default: both
		  --registry PREFIX    take the images from a mirror: PREFIX/mysql:9.7 and so on;
		                       default: the operator's own table
		  --storage-class NAME class of the volumes; default: the cluster's default class
		  --timeout SECONDS    how long each wait may take; default: 300
		  --keep               leave what failed, and its namespace, to be looked at
		  --help               print this

		The variable KUBECTL is the command to reach the cluster with; default: kubectl.
		With the local cluster of this repository, whose images are Debian builds and not
		upstream's: KUBECTL="bin/localcluster --name dev kubectl --"

		It prints a table, and ends with 0 if all went well, with 1 if a try failed, and
		with 2 if it couldn't begin.
	END
}

fail() {
	printf '%s\n' "$*" >&2
	exit 2
}

modes=(ephemeral durable)
registry='' class='' timeout=300 keep=false
wanted=()
while (($#)); do
	case $1 in
	--help | -h)
		usage
		exit
		;;
	--keep) keep=true ;;
	--only | --registry | --storage-class | --timeout)
		(($# > 1)) || fail "$1 needs a value; see --help"
		case $1 in
		--only)
			[[ $2 == ephemeral || $2 == durable ]] || fail "--only is ephemeral or durable, not $2"
			modes=("$2")
			;;
		--registry) registry=${2%/}/ ;;
		--storage-class) class=$2 ;;
		--timeout)
			[[ $2 =~ ^[1-9][0-9]*$ ]] || fail "--timeout is a number of seconds, not $2"
			timeout=$2
			;;
		esac
		shift
		;;
	-*) fail "there is no flag $1; see --help" ;;
	*) wanted+=("$1") ;;
	esac
	shift
done
read -r -a kubectl_command <<<"${KUBECTL:-kubectl}"
readonly modes registry class timeout keep wanted kubectl_command

readonly namespace=database-smoke-$$
kubectl() { "${kubectl_command[@]}" --namespace="${namespace}" "$@"; }

# releases prints ENGINE VERSION IMAGE of each release that is to be tried, from
# the table that is generated from the operator's own.
releases() {
	awk -F '`' '/begin generated: releases/ { on = 1 } /end generated: releases/ { on = 0 } on && NF > 6 { print $2, $4, $6 }' docs/engines.md |
		while read -r engine version image; do
			if ((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" ${engine} "* || " ${wanted[*]} " == *" ${engine}:${version} "* ]]; then
				printf '%s %s %s\n' "${engine}" "${version}" "${image}"
			fi
		done
}

# manifest NAME ENGINE VERSION IMAGE MODE
manifest() {
	printf '%s\n' 'apiVersion: coolops.cn/v1alpha1' 'kind: DatabaseManager' "metadata: {name: $1}" \
		'spec:' "  deploymentName: $1" "  dbtype: $2" "  version: \"$3\""
	[[ -z ${registry} ]] || printf '  image: %s\n' "${registry}$4"
	if [[ $5 == durable ]]; then
		printf '%s\n' '  storage:' '    size: 1Gi' '    retention: {whenDeleted: Delete}'
		[[ -z ${class} ]] || printf '    storageClassName: %s\n' "${class}"
	fi
}

# in_pod NAME runs the script on standard input in the member's container. The
# password is read there, from its file, and stands in no argument list.
in_pod() {
	local pod
	pod=$(kubectl get pods --selector="coolops.cn/stem=$1" --field-selector=status.phase=Running --output=name | head -n 1)
	[[ -n ${pod} ]] || return 1
	kubectl exec --stdin "${pod}" -- /bin/sh -eu
}

# ask NAME ENGINE WHAT has the application's account write a value, or print it,
# or print how many there are.
ask() {
	case $2 in
	mysql | mariadb)
		in_pod "$1" <<-END
			umask 077
			trap 'rm -f /tmp/smoke.cnf' EXIT
			{ printf '[client]\nuser=app\npassword='; cat /secrets/auth/password; } >/tmp/smoke.cnf
			query() { $2 --defaults-extra-file=/tmp/smoke.cnf --host=127.0.0.1 --protocol=tcp --batch --skip-column-names app --execute="\$1"; }
			case $3 in
			write) query "CREATE TABLE IF NOT EXISTS smoke (value VARCHAR(64)); DELETE FROM smoke; INSERT INTO smoke VALUES ('here')" ;;
			read) query "SELECT value FROM smoke" ;;
			count) query "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'smoke'" ;;
			esac
		END
		;;
	postgresql)
		in_pod "$1" <<-END
			umask 077
			trap 'rm -f /tmp/smoke.pgpass' EXIT
			{ printf '*:*:*:*:'; cat /secrets/auth/password; } >/tmp/smoke.pgpass
			query() { PGPASSFILE=/tmp/smoke.pgpass psql --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --host=127.0.0.1 --username=app --dbname=app --command="\$1"; }
			case $3 in
			write) query "CREATE TABLE IF NOT EXISTS smoke (value text); DELETE FROM smoke; INSERT INTO smoke VALUES ('here')" ;;
			read) query "SELECT value FROM smoke" ;;
			count) query "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'smoke'" ;;
			esac
		END
		;;
	redis | valkey)
		in_pod "$1" <<-END
			query() { { printf 'AUTH app '; cat /secrets/auth/password; printf '\n%s\n' "\$1"; } | $2-cli -e; }
			case $3 in
			write) query 'SET smoke here' ;;
			read) query 'GET smoke' | tail -n 1 ;;
			count) query 'EXISTS smoke' | tail -n 1 ;;
			esac
		END
		;;
	esac
}

# until_done COMMAND… runs a command until it succeeds, or the time is up. What
# it printed last is in ${printed}.
until_done() {
	local deadline=$((SECONDS + timeout))
	until printed=$("$@" 2>&1); do
		((SECONDS < deadline)) || return 1
		sleep 1
	done
}

# answers TEXT NAME ENGINE WHAT: ask prints exactly this.
answers() {
	local answer
	answer=$(ask "$2" "$3" "$4") || return 1
	[[ ${answer} == "$1" ]] || {
		printf 'it answers %q\n' "${answer}"
		return 1
	}
}

# try NAME ENGINE MODE says in ${failure} what went wrong.
try() {
	failure='it became not Ready'
	kubectl wait --for=condition=Ready --timeout="${timeout}s" "databasemanager/$1" >/dev/null || return 1
	failure='its Secret opens nothing, or it takes no writes'
	until_done ask "$1" "$2" write || return 1
	failure="it didn't return what was written"
	answers here "$1" "$2" read || return 1
	runs=$(kubectl get databasemanager "$1" --output='jsonpath={.status.currentVersion}')

	failure="its pod can't be deleted"
	kubectl delete pods --selector="coolops.cn/stem=$1" --timeout="${timeout}s" >/dev/null || return 1
	if [[ $3 == durable ]]; then
		failure='the data are not there again'
		until_done answers here "$1" "$2" read || return 1
	else
		failure="it isn't there again, and empty"
		until_done answers 0 "$1" "$2" count || return 1
		until_done ask "$1" "$2" write || return 1
	fi
	failure='it became not Ready again'
	kubectl wait --for=condition=Ready --timeout="${timeout}s" "databasemanager/$1" >/dev/null || return 1

	failure="it wasn't removed"
	kubectl delete databasemanager "$1" --timeout="${timeout}s" >/dev/null || return 1
	until_done is_removed "$1" || return 1
	failure=''
}

is_removed() {
	[[ -z $(kubectl get statefulsets,deployments,pods,services,secrets,configmaps,persistentvolumeclaims \
		--selector="coolops.cn/stem=$1" --output=name) ]]
}

# explain NAME shows what there is to see of a database that failed.
explain() {
	{
		printf -- '--- %s: %s. %s\n' "$1" "${failure}" "${printed:-}"
		kubectl get databasemanager "$1" --output='jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}' || :
		kubectl get pods --selector="coolops.cn/stem=$1" --output=wide || :
		kubectl logs --selector="coolops.cn/stem=$1" --tail=20 --prefix || :
	} >&2
}

finish() {
	local code=$?
	if "${keep}" && ((code == 1)); then
		echo "left as it is: namespace ${namespace}" >&2
	elif "${is_begun}"; then
		"${kubectl_command[@]}" delete namespace "${namespace}" --timeout="${timeout}s" >/dev/null || code=1
	fi
	exit "${code}"
}

is_begun=false
mapfile -t todo < <(releases)
((${#todo[@]})) || fail "no release of ${wanted[*]:-any engine} is in docs/engines.md"
"${kubectl_command[@]}" get customresourcedefinition databasemanagers.coolops.cn --output=name >/dev/null ||
	fail "the cluster isn't reached, or has no operator: kubectl apply --server-side -f config/install.yaml"
trap finish EXIT
trap 'exit 130' INT TERM
"${kubectl_command[@]}" create namespace "${namespace}" >/dev/null
is_begun=true
"${kubectl_command[@]}" label namespace "${namespace}" pod-security.kubernetes.io/enforce=restricted >/dev/null

failures=0
printf '%-11s %-8s %-10s %-9s %-7s %s\n' ENGINE VERSION STORAGE RUNS SECONDS RESULT
for release in "${todo[@]}"; do
	read -r engine version image <<<"${release}"
	for mode in "${modes[@]}"; do
		name=smoke-${engine}-${version//./-}-${mode}
		start=${SECONDS}
		printed='' runs='' failure="it can't be made"
		if manifest "${name}" "${engine}" "${version}" "${image}" "${mode}" | kubectl apply --filename=- >/dev/null && try "${name}" "${engine}" "${mode}"; then
			result=well
		else
			result="FAILED: ${failure}"
			failures=$((failures + 1))
			explain "${name}"
			"${keep}" || kubectl delete databasemanager "${name}" --ignore-not-found --wait=false >/dev/null
		fi
		printf '%-11s %-8s %-10s %-9s %-7s %s\n' "${engine}" "${version}" "${mode}" "${runs:--}" "$((SECONDS - start))" "${result}"
	done
done
((failures == 0))
