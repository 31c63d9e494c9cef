// SPDX-License-Identifier: Apache-2.0

// Package addons holds the manifests of what a cluster with nodes runs in itself: DNS and storage classes.
package addons

import (
	"bytes"
	_ "embed"
)

// CoreDNSImage is the image of the cluster's DNS.
const CoreDNSImage = "localcluster.internal/coredns:1"

//go:embed coredns.yaml
var coreDNS []byte

//go:embed storage.yaml
var storage []byte

// Manifests are all objects, as YAML documents.
func Manifests() []byte { return bytes.Join([][]byte{coreDNS, storage}, []byte("---\n")) }
