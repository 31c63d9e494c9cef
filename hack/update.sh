#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes everything in this repository that is generated: the companions of the
# API types, the clients in pkg/generated, the CustomResourceDefinition, and the
# manifests to install from. It writes nothing else, and needs no network beyond
# a Go module proxy. hack/verify.sh tells whether it has to be run.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly module=coolops.cn/database-manager
readonly api=${module}/pkg/apis/coolops/v1alpha1
readonly generated=pkg/generated
readonly boilerplate=hack/boilerplate.go.txt

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

# generator NAME [ARGS...] runs a generator at the version that hack/tools/go.mod pins.
generator() {
	local name=$1
	shift
	echo "${name}" >&2
	go tool -modfile=hack/tools/go.mod "${name}" "$@"
}

# code NAME [ARGS...] runs a generator of Go code.
code() {
	generator "$@" --go-header-file="${boilerplate}"
}

# into SUBFOLDER prints the flags that send output to pkg/generated/SUBFOLDER.
into() {
	printf -- '--output-dir=%s\n--output-pkg=%s\n' "${generated}/$1" "${module}/${generated}/$1"
}

# Starting from nothing, so that what is no longer generated goes.
find pkg/apis -name 'zz_generated.*.go' -delete
rm -rf "${generated}" config/crd

mapfile -t openapi < <(into openapi)
mapfile -t applyconfiguration < <(into applyconfiguration)
mapfile -t clientset < <(into clientset)
mapfile -t listers < <(into listers)
mapfile -t informers < <(into informers)

code deepcopy-gen --output-file=zz_generated.deepcopy.go "${api}"
code register-gen --output-file=zz_generated.register.go "${api}"

code openapi-gen "${openapi[@]}" --output-file=zz_generated.openapi.go \
	--report-filename="${scratch}/openapi-violations" \
	--readonly-pkg=k8s.io/apimachinery/pkg/apis/meta/v1 \
	--readonly-pkg=k8s.io/apimachinery/pkg/api/resource \
	--readonly-pkg=k8s.io/apimachinery/pkg/runtime \
	k8s.io/apimachinery/pkg/apis/meta/v1 \
	k8s.io/apimachinery/pkg/api/resource \
	k8s.io/apimachinery/pkg/runtime \
	"${api}"
# A list without a type can't be merged. (The other rules are about how Go names
# and JSON names relate; two of ours, dbtype and ephemeral-storage, were given.)
if grep --fixed-strings "list_type_missing,${module}" "${scratch}/openapi-violations" >&2; then
	echo "the lists above have no +listType: add one" >&2
	exit 1
fi
go run ./hack/modelschema >"${scratch}/swagger.json"

code applyconfiguration-gen "${applyconfiguration[@]}" --openapi-schema="${scratch}/swagger.json" "${api}"
code client-gen "${clientset[@]}" --clientset-name=versioned \
	--input-base="${module}/pkg/apis" --input=coolops/v1alpha1 \
	--apply-configuration-package="${module}/${generated}/applyconfiguration"
code lister-gen "${listers[@]}" "${api}"
code informer-gen "${informers[@]}" \
	--versioned-clientset-package="${module}/${generated}/clientset/versioned" \
	--listers-package="${module}/${generated}/listers" "${api}"

generator controller-gen crd paths=./pkg/apis/... output:crd:dir=config/crd
