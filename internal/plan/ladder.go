// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/internal/intent"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Plan is what to do about one database now.
type Plan struct {
	// Actions are carried out in this order; the first that fails ends the pass.
	Actions []Action
	// Problem is why the plan goes no further; nil if it goes all the way.
	Problem *Problem
	// IsDeleting is true if the database is on its way out: nothing is written
	// any more, and Kubernetes collects the children.
	IsDeleting bool
	// IsSuspended is true if the user has taken our hands off: nothing is written
	// but the status.
	IsSuspended bool
	// Aside is what is wrong beside the plan, which goes all the way; nil if
	// nothing is.
	Aside *Problem
	// Growing is the name of a volume claim that is being made larger; empty if
	// none is.
	Growing string
	// IsRolling is true while a member runs something other than what is wanted.
	IsRolling bool
	// Notices are what happened that nobody asked for, to be told once the
	// actions are carried out.
	Notices []Notice
	// Topology is what is recorded once the actions are carried out.
	Topology Topology
	// Finding is what there is to say of the replication; nil if all is well.
	Finding *Finding
	// IsUrgent has the members asked again when it is looked again.
	IsUrgent bool
	// WakeIn is after what time to look again, though nothing changes; zero if
	// there is nothing to wait for.
	WakeIn time.Duration
}

// Notice is something that a user should hear of once.
type Notice struct {
	Reason  string
	Message string
}

// rung adds its part to a plan; true means that the climb ends here.
type rung func(*Plan, Snapshot, Desired) bool

// Make decides what to do. problem is what stood in the way of rendering, or
// nil; desired isn't looked at if there is one.
func Make(snapshot Snapshot, desired Desired, problem *Problem, now time.Time) Plan {
	plan := Plan{
		Problem: problem, Aside: desired.Aside, Topology: desired.Topology.Topology, Growing: snapshot.isGrowing(desired),
		WakeIn:  sooner(sooner(snapshot.SettlesIn(now), snapshot.LosesPatienceIn(now)), desired.Topology.move.wait),
		Finding: desired.Topology.move.finding, IsUrgent: desired.Topology.move.isUrgent,
	}
	for _, climb := range []rung{
		stopAtDeletion, stopAtSuspension, stopAtProblem, findCredentials, claimStem, labelMembers, ensureChildren, ensureClaims, settleRoles,
		setPasswords, configure, growClaims, scaleOut, replaceWaiting, rollMember, prune, replaceWorkload, removeVolumes,
	} {
		if climb(&plan, snapshot, desired) {
			break
		}
	}
	return plan
}

// sooner returns the shorter of two times to wait, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func stopAtDeletion(plan *Plan, snapshot Snapshot, _ Desired) bool {
	if snapshot.Database.DeletionTimestamp == nil {
		return false
	}
	*plan = Plan{IsDeleting: true}
	return true
}

func stopAtSuspension(plan *Plan, snapshot Snapshot, _ Desired) bool {
	plan.IsSuspended = snapshot.Database.Spec.Suspend
	return plan.IsSuspended
}

func stopAtProblem(plan *Plan, snapshot Snapshot, _ Desired) bool {
	if plan.Problem == nil {
		return false
	}
	plan.look(snapshot, plan.Problem)
	return true
}

// findCredentials has a Secret looked for that isn't seen.
func findCredentials(plan *Plan, snapshot Snapshot, _ Desired) bool {
	plan.look(snapshot, plan.Aside)
	return false
}

func (p *Plan) look(snapshot Snapshot, problem *Problem) {
	if auth := snapshot.Database.Spec.Auth; auth != nil && snapshot.Credentials == nil && problem != nil && problem.Reason == v1alpha1.ReasonSecretMissing {
		p.Actions = append(p.Actions, FindSecret{Name: auth.SecretName, IsAside: problem.IsAside})
	}
}

// claimStem makes the one child that only one database can have, and looks at
// the volumes before anything that outlives a database is touched.
func claimStem(plan *Plan, snapshot Snapshot, desired Desired) bool {
	if plan.ensure(snapshot, desired, desired.Stem) {
		return true
	}
	if snapshot.Objects[desired.Workload().Ref] != nil {
		return false
	}
	return plan.useClaims(snapshot, desired)
}

// useClaims looks at the volumes that the workload is about to mount: it would
// mount whatever has the name of its claim.
func (p *Plan) useClaims(snapshot Snapshot, desired Desired) bool {
	mounted := runs(snapshot.Objects[desired.Workload().Ref])
	for ordinal, claim := range desired.Claims {
		if ordinal < mounted || ordinal >= int(desired.Members) {
			continue
		}
		if object := snapshot.Objects[claim.Ref]; object != nil {
			if verdict := snapshot.Claimant(desired.Topology.DataID).Judge(claim, object); verdict.Problem != nil {
				p.Problem = verdict.Problem
				return true
			}
		}
		p.Actions = append(p.Actions, UseClaim{Claim: claim})
	}
	return false
}

// isScaleOut tells whether the workload is to run more members than it does.
func isScaleOut(snapshot Snapshot, desired Desired) bool {
	workload := snapshot.Objects[desired.Workload().Ref]
	return workload != nil && len(desired.Claims) > 0 && runs(workload) < int(desired.Members)
}

// scaleOut adds members, and does nothing else to the workload: a volume that isn't
// ours keeps them from being added, and nothing else from being done.
func scaleOut(plan *Plan, snapshot Snapshot, desired Desired) bool {
	if !isScaleOut(snapshot, desired) {
		return false
	}
	return plan.useClaims(snapshot, desired) || plan.ensure(snapshot, desired, desired.Workload())
}

// runs is how many members a workload is told to run; none if there is none.
func runs(workload metav1.Object) int {
	statefulSet, exists := workload.(*appsv1.StatefulSet)
	switch {
	case !exists:
		return 0
	case statefulSet.Spec.Replicas == nil:
		return 1
	default:
		return int(*statefulSet.Spec.Replicas)
	}
}

// ensureChildren makes what is missing and corrects what differs. It doesn't
// ask how the members are: a spec that heals them has to get through.
func ensureChildren(plan *Plan, snapshot Snapshot, desired Desired) bool {
	children := desired.Children
	if isScaleOut(snapshot, desired) {
		children = children[:len(children)-1] // the workload is later in the climb
	}
	for _, child := range children {
		if plan.ensure(snapshot, desired, child) {
			return true
		}
	}
	return false
}

// ensureClaims keeps what the claims say of their data, from the moment on that
// there are any. Claims that don't exist are the business of the workload's own
// controller; but one that isn't seen where there is to be one may have lost the
// label by which it is watched.
func ensureClaims(plan *Plan, snapshot Snapshot, desired Desired) bool {
	isInitialized := desired.Topology.State == TopologyInitialized
	for _, claim := range desired.Claims {
		switch {
		case snapshot.Objects[claim.Ref] == nil:
			if snapshot.hasWorkload() && (isInitialized && desired.Topology.holds(claim.Name) || snapshot.isMounted(claim.Name)) {
				plan.Actions = append(plan.Actions, FindClaim{Claim: claim})
			}
		case isInitialized && plan.ensure(snapshot, desired, claim):
			return true
		}
	}
	return false
}

// hasWorkload tells whether there is a workload of ours that stays.
func (s Snapshot) hasWorkload() bool {
	workload := s.Objects[s.workloadRef()]
	return workload != nil && s.isControlled(workload) && workload.GetDeletionTimestamp() == nil
}

// isMounted tells whether a member runs on the volume claim, so that it exists.
func (s Snapshot) isMounted(claim string) bool {
	for _, member := range s.Members {
		if ClaimName(member.Pod.Name) == claim && IsStarted(member.Pod) {
			return true
		}
	}
	return false
}

// ensure adds what one child needs; true if it can't be had.
func (p *Plan) ensure(snapshot Snapshot, desired Desired, child Child) bool {
	object := snapshot.Objects[child.Ref]
	if object == nil {
		p.Actions = append(p.Actions, Create{Child: child})
		p.noticeLoss(snapshot, desired, child)
		return false
	}
	verdict := snapshot.Claimant(desired.Topology.DataID).Judge(child, object)
	switch {
	case verdict.Problem != nil:
		p.Problem = verdict.Problem
		return true
	case object.GetDeletionTimestamp() != nil:
		// It can't be kept; once it is gone, it is made again.
		p.Problem = &Problem{Reason: v1alpha1.ReasonWaitingForMember, Message: child.String() + " is being deleted; it is made again once it is gone."}
		return true
	case verdict.FormerOwner != "":
		p.Actions = append(p.Actions, Adopt{Child: child, UID: object.GetUID(), FormerOwner: verdict.FormerOwner})
		return false
	}
	why, err := differs(child, object)
	if err != nil {
		p.Problem = &Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
		return true
	}
	if why == "" {
		return false
	}
	apply := Apply{Child: child, UID: object.GetUID(), Why: why}
	if child.Ref == snapshot.topologyRef() {
		apply.Version = desired.Topology.Version
		p.stepTopology(desired.Topology)
	}
	p.Actions = append(p.Actions, apply)
	return false
}

// stepTopology adds what has to be true before the topology is written, and
// what is to be told of it.
func (p *Plan) stepTopology(step TopologyStep) {
	if step.Gone != nil {
		p.Actions = append(p.Actions, ConfirmGone{Pod: *step.Gone})
	}
	if step.Stopped != "" {
		p.Actions = append(p.Actions, ConfirmStopped{Pod: step.Stopped})
	}
	if step.Notice != nil {
		p.Notices = append(p.Notices, *step.Notice)
	}
}

// noticeLoss tells of a Secret that is missing beside a workload that uses it.
func (p *Plan) noticeLoss(snapshot Snapshot, desired Desired, child Child) {
	workload := snapshot.Objects[desired.Workload().Ref]
	if child.Kind != KindSecret || workload == nil || !snapshot.isControlled(workload) {
		return
	}
	message := child.String() + " was lost, and is put back as it was."
	if child.NeedsPassword() {
		message = child.String() + " was lost. It is made anew with another password, and the members are restarted with it."
		if child.Name == AuthSecretName(snapshot.Database.Spec.DeploymentName) {
			message = child.String() + " was lost. It is made anew with another password, which becomes the database's."
		}
	}
	p.Notices = append(p.Notices, Notice{Reason: v1alpha1.EventSecretLost, Message: message})
}

// differs says in what object differs from the child: nothing only if the last
// intent was the same one, so that nothing is left of an older one, and every
// field of it still stands.
func differs(child Child, object metav1.Object) (string, error) {
	if object.GetAnnotations()[v1alpha1.AnnotationIntentHash] != child.Hash {
		return "the intent changed", nil
	}
	field, err := intent.Drift(child.Fields, object)
	if err != nil || field == "" {
		return "", err
	}
	return "the field " + field + " was changed", nil
}
