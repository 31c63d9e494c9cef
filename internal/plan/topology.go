// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Topology says where the data of a database are. It is kept in a ConfigMap,
// and is the durable intent, not a report: it is written before it is acted on,
// and a boot script makes a data directory only under the state new.
//
//	         a member answers, and is named
//	new ─────────────────────────────────────▶ initialized
//	 ▲                                              │
//	 └──────────────────────────────────────────────┘
//	   the data are lost, and there never was a volume; or
//	   the volume is empty, and the user says: begin again
//
// Only a member that the topology names under initialized is promoted, so no
// write is ever acknowledged under new.
type Topology struct {
	State TopologyState
	// Epoch grows with each decision about who holds the data.
	Epoch int64
	// DataID is the identity of the data set. It changes when a database begins
	// again with nothing.
	DataID string
	// Primary is the name of the member that holds the data, and Holder the UID
	// of what they lie on: a volume claim, or, without storage, a pod. Both are
	// empty under new; Holder also where it has been forgotten.
	Primary string
	Holder  types.UID

	// Members are the replicas whose acknowledgement a commit can rest on, in the
	// order of their ordinals; Required is how many of them are sure to have each
	// commit that was acknowledged: the weakest that may be in effect. None is where
	// that isn't known, and then nobody is promoted in the primary's stead.
	Members  []TopologyMember
	Required int
	// IsHandingOver has the primary start as a replica of nobody the next time, so
	// that another one can take its place.
	IsHandingOver bool
	// SwitchedTo is the member that the user asked for as the primary and that has
	// become it since; empty if there is no such wish.
	SwitchedTo string
	// Clones are the members that are to give up their data for the primary's, each
	// with a token by which it knows whether it has.
	Clones map[string]string
}

// TopologyMember is a replica, and what its data lie on.
type TopologyMember struct {
	Name   string
	Holder types.UID
}

// TopologyState says whether there are data.
type TopologyState string

const (
	// TopologyNew means that nothing was ever written, or that what was is gone
	// for good: an empty member may make a data directory.
	TopologyNew TopologyState = "new"
	// TopologyInitialized means that there are data: an empty member makes nothing.
	TopologyInitialized TopologyState = "initialized"
)

// The keys of the ConfigMap.
const (
	// TopologyStateKey is the one that a boot script is given.
	TopologyStateKey   = "state"
	topologyEpochKey   = "epoch"
	topologyDataIDKey  = "data-id"
	topologyPrimaryKey = "primary"
	topologyHolderKey  = "holder"

	topologyMembersKey     = "members"
	topologyRequiredKey    = "required"
	topologyHandingOverKey = "handing-over"
	topologySwitchedToKey  = "switched-to"

	// TopologyStartsAsPrimaryKey and TopologyClonesKey are given to boot scripts, too.
	// The first has the primary's name, and nobody's while the primary hands over.
	TopologyStartsAsPrimaryKey = "starts-as-primary"
	TopologyClonesKey          = "clones"
	nobody                     = "-"
)

// TopologyName is the name of the ConfigMap with the topology.
func TopologyName(stem string) string { return stem + "-topology" }

// Data is the content of the ConfigMap. What only several members have is absent
// where there is none of it.
func (t Topology) Data() map[string]string {
	data := map[string]string{
		TopologyStateKey:   string(t.State),
		topologyEpochKey:   strconv.FormatInt(t.Epoch, 10),
		topologyDataIDKey:  t.DataID,
		topologyPrimaryKey: t.Primary,
		topologyHolderKey:  string(t.Holder),

		TopologyStartsAsPrimaryKey: t.startsAsPrimary(),
	}
	for key, value := range map[string]string{topologyMembersKey: joinPairs(t.Members), topologySwitchedToKey: t.SwitchedTo, TopologyClonesKey: joinClones(t.Clones)} {
		if value != "" {
			data[key] = value
		}
	}
	if t.Required > 0 {
		data[topologyRequiredKey] = strconv.Itoa(t.Required)
	}
	if t.IsHandingOver {
		data[topologyHandingOverKey] = strconv.FormatBool(true)
	}
	return data
}

func (t Topology) startsAsPrimary() string {
	if t.IsHandingOver {
		return nobody
	}
	return t.Primary
}

// parseTopology reads the content of the ConfigMap.
func parseTopology(data map[string]string) (Topology, error) {
	epoch, err := strconv.ParseInt(data[topologyEpochKey], 10, 64)
	if err != nil || epoch < 1 {
		return Topology{}, fmt.Errorf("the key %q holds %q, which is no positive number", topologyEpochKey, data[topologyEpochKey])
	}
	topology := Topology{
		State:   TopologyState(data[TopologyStateKey]),
		Epoch:   epoch,
		DataID:  data[topologyDataIDKey],
		Primary: data[topologyPrimaryKey],
		Holder:  types.UID(data[topologyHolderKey]),
	}
	if topology.State != TopologyNew && topology.State != TopologyInitialized {
		return Topology{}, fmt.Errorf("the key %q holds %q; known are %q and %q", TopologyStateKey, topology.State, TopologyNew, TopologyInitialized)
	}
	if topology.DataID == "" {
		return Topology{}, fmt.Errorf("the key %q is missing", topologyDataIDKey)
	}
	// One that was written before there were replicas has none of the rest.
	topology.Members, topology.Clones = parseMembers(data[topologyMembersKey]), parseClones(data[TopologyClonesKey])
	topology.IsHandingOver, topology.SwitchedTo = data[topologyHandingOverKey] == "true", data[topologySwitchedToKey]
	if text := data[topologyRequiredKey]; text != "" {
		if topology.Required, err = strconv.Atoi(text); err != nil || topology.Required < 0 || topology.Required > len(topology.Members) {
			return Topology{}, fmt.Errorf("the key %q holds %q, which is no number of the %d members", topologyRequiredKey, text, len(topology.Members))
		}
	}
	return topology, nil
}

// TopologyStep is the topology as it is to be written, and what that rests on.
type TopologyStep struct {
	Topology
	// Version is the resourceVersion of the ConfigMap that the step was decided
	// by; empty if there is none.
	Version string
	// Gone is a pod that a live read must find gone before the step is taken; nil
	// if the step doesn't rest on that.
	Gone *PodRef
	// Stopped is the name of a pod in which, as a live read must find, no server runs
	// before the step is taken; empty if the step doesn't rest on that.
	Stopped string
	// Notice tells of what happened; nil if it is nothing to tell.
	Notice *Notice
	// move is what was decided about the roles, under the topology that is recorded.
	move move
}

// PodRef is one pod, and no other of its name.
type PodRef struct {
	Name string
	UID  types.UID
}

// recallTopology returns the topology as it is recorded, with the version of
// the ConfigMap; the zero value if there is none.
func (s Snapshot) recallTopology() (TopologyStep, *Problem) {
	ref := Ref{Kind: KindConfigMap, Name: TopologyName(s.Database.Spec.DeploymentName)}
	recorded, exists := s.Objects[ref].(*corev1.ConfigMap)
	if !exists {
		return TopologyStep{}, nil
	}
	isOfEngine := recorded.Labels[v1alpha1.LabelEngine] == string(s.Database.Spec.DBType)
	if !s.isControlled(recorded) && (!s.isDurable() || !isOfEngine) {
		// Somebody else's, which is reported where ours is to be made.
		return TopologyStep{}, nil
	}
	topology, err := parseTopology(recorded.Data)
	if err != nil {
		return TopologyStep{}, &Problem{
			Reason: v1alpha1.ReasonTopologyUnreadable,
			Message: fmt.Sprintf("%s can't be read: %v; nothing was changed. Put it right, or delete it: it is then made anew "+
				"from what the volumes and the members say.", ref, err),
		}
	}
	return TopologyStep{Topology: topology, Version: recorded.ResourceVersion}, nil
}

// nextTopology decides what the topology is to be, by what is recorded and what
// was observed. known is the data id by what else remembers it.
func (s Snapshot) nextTopology(recorded TopologyStep, known string, now time.Time) TopologyStep {
	switch {
	case recorded.State == "": // there is none
		return TopologyStep{Topology: s.rebuildTopology(known, now)}
	case recorded.State == TopologyNew:
		return s.nameHolder(recorded)
	case !s.isDurable():
		return s.loseEphemeral(recorded)
	default:
		return s.beginAgain(s.nameHolder(recorded))
	}
}

// rebuildTopology makes the topology of a database that has none: a new one's,
// or, where it was lost, the one that was last seen, if that still holds; or by the
// marks on the volumes and what the members say. It is never new while there is a
// sign of data. Its epoch is one that nobody has used: what a human said of another
// one doesn't hold for it.
func (s Snapshot) rebuildTopology(dataID string, now time.Time) Topology {
	if !s.hasSignOfData() {
		return Topology{State: TopologyNew, Epoch: 1, DataID: dataID}
	}
	claimant := s.soleClaimant()
	if last, isKnown := s.lastTopology(); isKnown && claimant != nil && last.Primary == claimant.Pod.Name && last.Holder == s.holderOf(*claimant) {
		return last
	}
	topology := Topology{State: TopologyInitialized, Epoch: 1, DataID: dataID}
	if s.isReplicated(topology) {
		topology.Epoch = now.Unix()
	}
	if claimant != nil {
		topology.Primary, topology.Holder = claimant.Pod.Name, s.holderOf(*claimant)
	}
	return topology
}

// lastTopology is the topology as it was before it was lost; false if nobody has
// seen it.
func (s Snapshot) lastTopology() (Topology, bool) {
	last, isKnown := s.LastSeen[s.topologyRef()].(*corev1.ConfigMap)
	if !isKnown {
		return Topology{}, false
	}
	topology, err := parseTopology(last.Data)
	return topology, err == nil
}

// soleClaimant is the member that takes writes, if there is but one.
func (s Snapshot) soleClaimant() *Member {
	var claimant *Member
	for i := range s.Members {
		if !s.Members[i].isPrimary() {
			continue
		}
		if claimant != nil {
			return nil
		}
		claimant = &s.Members[i]
	}
	return claimant
}

func (s Snapshot) hasSignOfData() bool {
	for ref, object := range s.Objects {
		isMarked := object.GetAnnotations()[v1alpha1.AnnotationInitialized] != ""
		// One that names no engine has lost a label.
		engine := object.GetLabels()[v1alpha1.LabelEngine]
		if ref.Kind == KindVolumeClaim && isMarked && (engine == "" || engine == string(s.Database.Spec.DBType)) {
			return true
		}
	}
	for _, member := range s.Members {
		// A pod's own folder carries no mark, so that it may hold data.
		if member.isPrimary() || !s.isDurable() {
			return true
		}
	}
	return false
}

// nameHolder names the member that answers, once there is one: under new it is
// the first of the database, and under initialized its data were brought to
// another volume, or its volume's UID had been forgotten.
func (s Snapshot) nameHolder(step TopologyStep) TopologyStep {
	if len(step.Members) > 0 {
		return step // others have the data: one of them takes its place
	}
	candidates := s.Members
	if step.State == TopologyInitialized && step.Primary == "" && s.isReplicated(step.Topology) {
		claimant := s.soleClaimant()
		if claimant == nil {
			return step // whoever is named without knowing may lack what another one has
		}
		candidates = []Member{*claimant}
	}
	for _, member := range candidates {
		holder := s.holderOf(member)
		isAnother := step.Primary != "" && wantedReplicas(s.Database) > 1 && member.Pod.Name != step.Primary
		if !member.Probe.Answers || member.Pod.DeletionTimestamp != nil || holder == "" || isAnother {
			continue
		}
		step.State, step.Primary, step.Holder = TopologyInitialized, member.Pod.Name, holder
		if s.isGivenUp(step.DataID) {
			// It wasn't lost, or is here again. What the user said of it is spent,
			// or else the next loss would be covered by it too.
			step.DataID = step.renewed().DataID
		}
		return step
	}
	return step
}

// holderOf returns the UID of what a member's data lie on; empty if the cache
// doesn't show it.
func (s Snapshot) holderOf(member Member) types.UID {
	if !s.isDurable() {
		return member.Pod.UID
	}
	if claim := s.Objects[Ref{Kind: KindVolumeClaim, Name: ClaimName(member.Pod.Name)}]; claim != nil {
		return claim.GetUID()
	}
	return ""
}

// ClaimName returns the name of the volume claim of a StatefulSet's pod.
func ClaimName(pod string) string { return DataVolume + "-" + pod }

// ClaimStem is the inverse of ClaimName: the stem of the database whose pod, by
// its name, has this volume claim; empty if none has.
func ClaimStem(claim string) string {
	pod, hasPrefix := strings.CutPrefix(claim, ClaimName(""))
	last := strings.LastIndex(pod, "-")
	if !hasPrefix || last < 0 {
		return ""
	}
	if _, err := strconv.ParseUint(pod[last+1:], 10, 16); err != nil {
		return ""
	}
	return pod[:last]
}

// DataVolume is the name of the data volume, and the first part of its claim's.
const DataVolume = "data"

// loseEphemeral begins a new epoch once the pod that held the data is gone.
// Where it has been forgotten which one that was, every pod there is must have
// said that it holds none.
func (s Snapshot) loseEphemeral(step TopologyStep) TopologyStep {
	if s.anyHasData(step.Topology) {
		return step
	}
	if step.Holder == "" && (len(s.Members) == 0 || s.anyMayHoldData()) {
		return s.nameHolder(step)
	}
	for _, member := range s.Members {
		if member.Pod.UID == step.Holder {
			return step
		}
	}
	if step.Holder != "" {
		step.Gone = &PodRef{Name: step.Primary, UID: step.Holder}
	}
	step.Notice = &Notice{
		Reason: v1alpha1.EventEphemeralDataLost,
		Message: fmt.Sprintf("Pod %s is gone, and with it the data, since there is no spec.storage. The database begins again with nothing.",
			step.Primary),
	}
	step.Topology = step.renewed()
	return step
}

// anyHasData tells whether a replica that the topology names is there, on the data
// that it names.
func (s Snapshot) anyHasData(topology Topology) bool {
	for _, member := range s.Members {
		for _, named := range topology.Members {
			if named.Name == member.Pod.Name && named.Holder == s.holderOf(member) {
				return true
			}
		}
	}
	return false
}

func (s Snapshot) anyMayHoldData() bool {
	for _, member := range s.Members {
		if !member.saysNoData() {
			return true
		}
	}
	return false
}

// beginAgain makes a database new whose volume is empty, once the user has said
// so for this very data set.
func (s Snapshot) beginAgain(step TopologyStep) TopologyStep {
	if !s.isGivenUp(step.DataID) || len(s.Members) == 0 || s.anyMayHoldData() {
		return step
	}
	step.Notice = &Notice{
		Reason:  v1alpha1.EventReinitialized,
		Message: fmt.Sprintf("The database begins again with nothing, as the annotation %s asks for; the data set %s is given up.", v1alpha1.AnnotationReinitialize, step.DataID),
	}
	step.Topology = step.renewed()
	return step
}

// isGivenUp tells whether the user has given up this data set.
func (s Snapshot) isGivenUp(dataID string) bool {
	return s.Database.Annotations[v1alpha1.AnnotationReinitialize] == dataID
}

// renewed returns the topology of a database that begins again. The new data id
// follows from the old one, so that the same step taken twice is one step.
func (t Topology) renewed() Topology {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", t.DataID, t.Epoch))
	id := hex.EncodeToString(sum[:16])
	return Topology{
		State: TopologyNew, Epoch: t.Epoch + 1,
		DataID: id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:],
	}
}

// isPrimary tells whether the member answers, and takes writes.
func (m Member) isPrimary() bool {
	return m.Probe.Answers && m.Probe.Engine.Role == v1alpha1.MemberRolePrimary
}

// The exit codes by which a boot script says why it doesn't start its server.
const (
	exitForeignData = 65
	exitNoData      = 66
	exitNoSource    = 69
	exitInUse       = 75
	exitBadConfig   = 78
)

// saysNoData tells whether the member's last start ended because its volume is
// empty. One that runs at the moment counts until it has started: it ends again
// at once, or else the topology permits it to make data, and it is new.
func (m Member) saysNoData() bool {
	refusal, isRefused := m.refusal()
	return isRefused && (refusal.ExitCode == exitNoData || refusal.ExitCode == exitNoSource)
}

// isBetweenStarts tells whether the member's container isn't running.
func (m Member) isBetweenStarts() bool { return IsStopped(m.Pod) }

// IsStopped tells whether no container of a pod runs, by its kubelet's account.
func IsStopped(pod *corev1.Pod) bool {
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Running != nil {
			return false
		}
	}
	return true
}

// refusal returns how the member's last start ended, if that was because of what
// is on its volume.
func (m Member) refusal() (corev1.ContainerStateTerminated, bool) {
	for _, container := range m.Pod.Status.ContainerStatuses {
		if container.Started != nil && *container.Started {
			continue
		}
		ended := container.State.Terminated
		if ended == nil {
			ended = container.LastTerminationState.Terminated
		}
		if ended == nil {
			continue
		}
		switch ended.ExitCode {
		case exitForeignData, exitNoData, exitNoSource, exitInUse, exitBadConfig:
			return *ended, true
		}
	}
	return corev1.ContainerStateTerminated{}, false
}
