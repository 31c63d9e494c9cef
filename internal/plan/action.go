// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Action is one step of a plan: Create, Apply, Adopt, UseClaim, FindClaim, FindSecret,
// ConfirmGone, ConfirmStopped, Promote, Demote, Fence, Follow, Require, Label, SetPassword, Configure, Grow,
// Evict, Orphan, DeleteVolume or Delete.
type Action interface {
	fmt.Stringer
	// isAction keeps the set closed.
	isAction()
}

// Create makes a child that the caches don't hold. If an object of its name
// exists nevertheless, one live read decides whether it is ours.
type Create struct{ Child Child }

// Apply sets the fields of a child that is ours.
type Apply struct {
	Child Child
	// UID is the object that is meant; another of the same name is left alone.
	UID types.UID
	// Version is the resourceVersion that the decision rests on; empty if any
	// will do.
	Version string
	// Why says what differs.
	Why string
}

// Adopt takes over a retained object whose former database is gone, which a
// live read has to confirm.
type Adopt struct {
	Child Child
	// UID is the object that is meant.
	UID types.UID
	// FormerOwner is the UID of the database that must not exist any more.
	FormerOwner types.UID
}

// UseClaim looks, live, at a volume claim that the workload is about to mount,
// adopts it if it is adoptable, and refuses it if it is somebody else's.
type UseClaim struct{ Claim Child }

// FindClaim looks, live, for a volume claim of ours that no watch shows, and puts
// its labels back. One that isn't there, or isn't ours, is left alone.
type FindClaim struct{ Claim Child }

// FindSecret looks, live, for a Secret of the user's that no watch shows, to say
// whether it is missing or only lacks its label.
type FindSecret struct {
	Name string
	// IsAside is true if the database goes on with a former password meanwhile.
	IsAside bool
}

// ConfirmGone looks, live, whether a pod is gone, and fails if it isn't.
type ConfirmGone struct{ Pod PodRef }

// ConfirmStopped looks, live, whether no server runs in a pod, and fails if one may.
type ConfirmStopped struct{ Pod string }

// Server is a server in a member's pod, and no other at its address.
type Server struct {
	Pod PodRef
	// RunID is the start of the server that is meant.
	RunID string
}

// Promote makes a member the primary: it takes writes from then on, each of which
// waits for what is required.
type Promote struct {
	Server
	Required Acknowledgement
}

// Demote has a member take no writes any more.
type Demote struct{ Server }

// Fence has a member receive nothing any more.
type Fence struct{ Server }

// Follow has a member copy from another one.
type Follow struct {
	Server
	Source Source
}

// Require has the primary wait for acknowledgements.
type Require struct {
	Server
	Required Acknowledgement
}

// Label says on a member's pod what its role is, by which the Services select.
type Label struct {
	Pod PodRef
	// Version is the resourceVersion of the pod that the decision rests on.
	Version string
	// Role is empty for none.
	Role v1alpha1.MemberRole
}

// SetPassword gives the application's account the password that is in its Secret.
type SetPassword struct{ Server }

// Configure sets parameters in a running server.
type Configure struct {
	Server
	// Settings are those that have another value in it.
	Settings Settings
}

// Grow asks for a larger volume.
type Grow struct {
	Claim string
	UID   types.UID
	Size  resource.Quantity
}

// Evict asks for a member to be replaced, as a disruption budget permits.
type Evict struct {
	// Pod is the name of the member's pod, UID the one that is meant.
	Pod string
	UID types.UID
	// Why says what the replacement is for.
	Why string
}

// Orphan deletes a workload and leaves its pods as they are, for one of the same
// name to take over: what can't be changed of a workload is changed so.
type Orphan struct {
	Ref Ref
	UID types.UID
	// Why says what differs.
	Why string
}

// DeleteVolume deletes the volume of a member that was scaled away, provided that
// the spec still says so.
type DeleteVolume struct {
	Claim string
	UID   types.UID
	// Version is the resourceVersion of the claim that the decision rests on.
	Version string
}

// Delete removes an object that nothing refers to any more.
type Delete struct {
	Ref Ref
	UID types.UID
}

func (Create) isAction()      {}
func (Apply) isAction()       {}
func (Adopt) isAction()       {}
func (UseClaim) isAction()    {}
func (ConfirmGone) isAction() {}
func (FindClaim) isAction()   {}

func (ConfirmStopped) isAction() {}
func (DeleteVolume) isAction()   {}
func (FindSecret) isAction()     {}
func (Promote) isAction()        {}
func (Demote) isAction()         {}
func (Fence) isAction()          {}
func (Follow) isAction()         {}
func (Require) isAction()        {}
func (Label) isAction()          {}
func (SetPassword) isAction()    {}
func (Configure) isAction()      {}
func (Grow) isAction()           {}
func (Orphan) isAction()         {}
func (Evict) isAction()          {}
func (Delete) isAction()         {}

// String describes the action, for logs.
func (a Create) String() string { return "create " + a.Child.String() }

// String describes the action, for logs.
func (a Apply) String() string { return "apply " + a.Child.String() + ": " + a.Why }

// String describes the action, for logs.
func (a Adopt) String() string { return "adopt " + a.Child.String() }

// String describes the action, for logs.
func (a UseClaim) String() string { return "use " + a.Claim.String() }

// String describes the action, for logs.
func (a ConfirmGone) String() string { return "confirm that Pod " + a.Pod.Name + " is gone" }

// String describes the action, for logs.
func (a Promote) String() string {
	if a.Required.Count == 0 {
		return "promote Pod " + a.Pod.Name
	}
	return "promote Pod " + a.Pod.Name + ", with acknowledgement by " + a.Required.String()
}

// String describes the action, for logs.
func (a ConfirmStopped) String() string { return "confirm that nothing runs in Pod " + a.Pod }

// String describes the action, for logs.
func (a Demote) String() string { return "demote Pod " + a.Pod.Name }

// String describes the action, for logs.
func (a Fence) String() string { return "fence Pod " + a.Pod.Name }

// String describes the action, for logs.
func (a Follow) String() string { return "have Pod " + a.Pod.Name + " follow " + a.Source.Member }

// String describes the action, for logs.
func (a Require) String() string {
	return "have Pod " + a.Pod.Name + " wait for acknowledgement by " + a.Required.String()
}

// String describes the action, for logs.
func (a Label) String() string {
	return "label Pod " + a.Pod.Name + " as " + cmp.Or(string(a.Role), "nothing")
}

// String describes the action, for logs.
func (a FindClaim) String() string { return "look for " + a.Claim.String() }

// String describes the action, for logs.
func (a FindSecret) String() string { return "look for Secret " + a.Name }

// String describes the action, for logs.
func (a SetPassword) String() string { return "set the application's password in Pod " + a.Pod.Name }

// String describes the action, for logs.
func (a Configure) String() string {
	return "set " + strings.Join(slices.Sorted(maps.Keys(a.Settings)), ", ") + " in Pod " + a.Pod.Name
}

// String describes the action, for logs.
func (a Grow) String() string {
	return "grow " + Ref{Kind: KindVolumeClaim, Name: a.Claim}.String() + " to " + a.Size.String()
}

// String describes the action, for logs.
func (a Orphan) String() string { return "replace " + a.Ref.String() + " without its pods: " + a.Why }

// String describes the action, for logs.
func (a Evict) String() string { return "evict Pod " + a.Pod + ": " + a.Why }

// String describes the action, for logs.
func (a DeleteVolume) String() string {
	return "delete " + Ref{Kind: KindVolumeClaim, Name: a.Claim}.String() + ", whose member was scaled away"
}

// String describes the action, for logs.
func (a Delete) String() string { return "delete " + a.Ref.String() }
