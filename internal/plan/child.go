// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/base64"
	"maps"
	"net/url"
	"strings"
)

// Kind is the kind of a child.
type Kind string

// The kinds of children.
const (
	KindConfigMap  Kind = "ConfigMap"
	KindDeployment Kind = "Deployment"
	// KindDisruptionBudget is the PodDisruptionBudget.
	KindDisruptionBudget Kind = "PodDisruptionBudget"
	KindNetworkPolicy    Kind = "NetworkPolicy"
	KindSecret           Kind = "Secret"
	KindService          Kind = "Service"
	KindStatefulSet      Kind = "StatefulSet"
	KindVolumeClaim      Kind = "PersistentVolumeClaim"
)

// Ref names a child within the database's namespace.
type Ref struct {
	Kind Kind
	Name string
}

// String returns for example "Secret orders-db-auth".
func (r Ref) String() string { return string(r.Kind) + " " + r.Name }

// Child is one object as the spec wants it.
type Child struct {
	Ref

	// Fields are the fields that we own. Those of a Secret whose password is
	// still to be made lack the data.
	Fields map[string]any

	// Hash is the hash of Fields, which they carry as an annotation.
	Hash string

	// IsRetained is true for what may outlive its database: it is ours by its
	// label owner-uid, also without a controller reference.
	IsRetained bool

	// IsGiven is true for a Secret whose password is the user's own: what the
	// object holds gives way to it.
	IsGiven bool

	// Template is, for a Secret, its data with the marks PasswordMark and
	// PasswordInURIMark where the password goes; nil for other kinds.
	Template map[string]string
}

// The marks in Child.Template, which a password replaces.
const (
	PasswordMark      = "$(password)"
	PasswordInURIMark = "$(password|uri)"
)

// PasswordKey is the key of a Secret's data under which the password stands.
const PasswordKey = "password"

// NeedsPassword tells whether the child is a Secret without a password yet.
func (c Child) NeedsPassword() bool {
	return c.Template != nil && c.Fields["data"] == nil
}

// WithPassword returns the child, a Secret, with its data filled in.
func (c Child) WithPassword(password string) Child {
	// QueryEscape is stricter than a URI's user part needs, but for its blank.
	inURI := strings.ReplaceAll(url.QueryEscape(password), "+", "%20")
	marks := strings.NewReplacer(PasswordMark, password, PasswordInURIMark, inURI)
	data := make(map[string]any, len(c.Template))
	for key, value := range c.Template {
		data[key] = base64.StdEncoding.EncodeToString([]byte(marks.Replace(value)))
	}
	c.Fields = maps.Clone(c.Fields)
	c.Fields["data"] = data
	return c
}

// String names the child, and never shows its fields.
func (c Child) String() string { return c.Ref.String() }

// GoString is String, so that no formatting verb shows a password.
func (c Child) GoString() string { return c.Ref.String() }

// Desired is what the spec renders to.
type Desired struct {
	// Stem is the child whose creation claims the stem. It has a controller
	// reference, so that exactly one database can have it.
	Stem Child

	// Children are the others, in the order in which they are made. The
	// workload is the last.
	Children []Child

	// Claims are the volume claims that the workload will use, with the fields
	// that make them ours. The workload's own controller makes those that
	// don't exist.
	Claims []Child

	// Topology is the step that the child of that name takes.
	Topology TopologyStep

	// Members is how many members the workload runs; none under spec.shutdown.
	Members int32

	// CopiesAccounts tells whether replicas get their accounts from the primary.
	CopiesAccounts bool

	// Live are the parameters that running servers are to have.
	Live Settings

	// ConfigName is the name of the ConfigMap with the files that members start
	// with.
	ConfigName string

	// Parameters are those that the spec sets, ordered by name.
	Parameters []Parameter

	// Aside is what is wrong, and doesn't keep the rest from being carried out;
	// nil if nothing is.
	Aside *Problem
}

// topologyRef names the child with the topology.
func (s Snapshot) topologyRef() Ref {
	return Ref{Kind: KindConfigMap, Name: TopologyName(s.Database.Spec.DeploymentName)}
}

// Workload returns the child that runs the members.
func (d Desired) Workload() Child { return d.Children[len(d.Children)-1] }
