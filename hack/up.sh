#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Usage: NAME=dev hack/up.sh
#
# From nothing to a database that has answered a query: a Kubernetes on this
# machine, the operator in it, a sample database, and one query through its
# Service. Run again, it brings the operator and the sample up to date.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly name=${NAME:-dev}
readonly sample=config/samples/redis-durable.yaml client=config/samples/clients/redis.yaml

say() { printf '\n==> %s\n' "$*"; }
cluster() { bin/localcluster --name "${name}" "$@"; }
kubectl() { cluster kubectl -- "$@"; }

# show runs a command and prints it first, as a shell that traces does.
show() {
	printf '+ %s\n' "$*"
	"$@"
}

say "Building the operator and localcluster"
hack/build.sh

say "Starting the cluster ${name} (the first time, Kubernetes is built: 10 to 30 minutes)"
cluster up

say "Installing the operator"
hack/build.sh image
cluster load-image bin/database-manager.tar
kubectl apply --server-side --force-conflicts --filename=config/install.yaml
# The image's name stays the same from build to build; this makes a changed one run.
kubectl --namespace=database-manager-system patch deployment/database-manager --type=merge --patch \
	"{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"image-digest\":\"$(sha256sum <bin/database-manager | cut -c1-64)\"}}}}}"
kubectl --namespace=database-manager-system rollout status deployment/database-manager --timeout=2m

say "Making a database from ${sample}"
show kubectl apply --filename="${sample}"
show kubectl wait --for=condition=Ready --timeout=3m databasemanager/orders
show kubectl get databasemanagers

say "Asking it, as an application in the cluster would"
kubectl delete job orders-client --ignore-not-found --cascade=foreground >/dev/null
kubectl apply --filename="${client}"
kubectl wait --for=condition=Complete --timeout=1m job/orders-client >/dev/null
kubectl logs job/orders-client

cat <<END

The database answered. To go on:

  eval "\$($(printf %q "${PWD}/bin/localcluster") --name ${name} env)"

  kubectl get databasemanagers               # or: dm
  kubectl describe dm orders
  kubectl apply -f config/samples/redis-ephemeral.yaml
  kubectl exec -it orders-db-0 -- sh -c 'REDISCLI_AUTH=\$(cat /secrets/auth/password) redis-cli --user app'
  kubectl delete dm orders                   # its volume and its Secrets stay

  make down                                  # removes all of it
END
