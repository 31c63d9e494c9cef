// SPDX-License-Identifier: Apache-2.0

// Package addons holds the manifests of what a cluster with nodes has in itself: DNS, storage classes, and the rights of kwok.
package addons

import (
	"bytes"
	_ "embed"
)

// CoreDNSImage is the image of the cluster's DNS.
const CoreDNSImage = "localcluster.internal/coredns:1"

//go:embed coredns.yaml
var coreDNS []byte

//go:embed standard.yaml
var standard []byte

//go:embed sized.yaml
var sized []byte

//go:embed kwok.yaml
var kwok []byte

//go:embed kwok-leases.yaml
var kwokLeases []byte

// KwokUser is whom the API server knows the player of fake nodes as.
const KwokUser = "localcluster:kwok"

const (
	// FakeNodeKey is the key of the annotation, label and taint by which fake nodes are told from real ones. The
	// annotation is kwok's own.
	FakeNodeKey = "kwok.x-k8s.io/node"
	// FakeNodeValue is the value of all three.
	FakeNodeValue = "fake"
)

// ForNodes are the objects of a cluster with nodes, as YAML documents.
func ForNodes() []byte { return join(coreDNS, standard, sized) }

// ForFake are those that fake nodes need besides: the rights of who plays them. Alone, without real nodes, they have the
// storage class that needs none.
func ForFake(alone bool) []byte {
	if alone {
		return join(kwok, standard)
	}
	return join(kwok, kwokLeases)
}

func join(documents ...[]byte) []byte { return bytes.Join(documents, []byte("---\n")) }
