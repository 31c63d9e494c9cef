// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// refusing is a member whose boot script ended with this exit code.
func refusing(code int32, sentence string) func(*Member) {
	return func(m *Member) {
		m.Probe = Probe{}
		m.Pod.Status.Conditions = nil
		m.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Started:              new(false),
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: sentence}},
		}}
	}
}

// notPromoted is a member that answers, and takes no writes.
func notPromoted(m *Member) { m.Probe.Engine.Role = v1alpha1.MemberRoleReplica }

func silent(m *Member) { m.Probe.Answers = false }

// marked adds the claim of a volume with data.
func (b *snapshotBuilder) marked(uid types.UID) *snapshotBuilder {
	d := desired(b)
	d.setTopology(true, settled(b))
	claim := asObject(b.Database, d.Claims[0])
	claim.SetUID(uid)
	return b.with(KindVolumeClaim, claim)
}

// givenUp is what the user does to give up a data set.
func (b *snapshotBuilder) givenUp(dataID string) *snapshotBuilder {
	b.Database.Annotations = map[string]string{v1alpha1.AnnotationReinitialize: dataID}
	return b
}

const theClaim = types.UID("uid-of-PersistentVolumeClaim data-db-0")

// topologyCase is a database, and where its data are then said to be.
type topologyCase struct {
	database *snapshotBuilder
	state    TopologyState
	epoch    int64
	holder   types.UID
	isSame   bool // the data set
	event    string
}

// durableTopologies are those of databases with a volume.
func durableTopologies() map[string]topologyCase {
	running := func() Topology { return settled(aDatabase()).Topology }
	begun := Topology{State: TopologyNew, Epoch: 1, DataID: string(ourUID)}
	return map[string]topologyCase{
		"a new database may make data": {aDatabase(), TopologyNew, 1, "", true, ""},
		"it stays new until a member answers": {
			aDatabase().withTopology(begun).marked(theClaim).withMember(silent), TopologyNew, 1, "", true, "",
		},
		"the first that answers is named": {
			aDatabase().withTopology(begun).marked(theClaim).withMember(notPromoted), TopologyInitialized, 1, theClaim, true, "",
		},
		"one that leaves isn't named": {
			aDatabase().withTopology(begun).marked(theClaim).withMember(notPromoted, func(m *Member) { m.Pod.DeletionTimestamp = new(metav1.NewTime(noon())) }),
			TopologyNew, 1, "", true, "",
		},
		"a lost topology isn't new while a volume is marked": {
			aDatabase().marked(theClaim), TopologyInitialized, 1, "", true, "",
		},
		"a lost topology names the primary that answers": {
			aDatabase().marked(theClaim).withMember(), TopologyInitialized, 1, theClaim, true, "",
		},
		"an empty volume changes nothing by itself": {
			aDatabase().withTopology(running()).marked("new-claim").withMember(refusing(exitNoData, "")), TopologyInitialized, 1, theClaim, true, "",
		},
		"an empty volume is made new for the user who names its data set": {
			aDatabase().withTopology(running()).marked("new-claim").withMember(refusing(exitNoData, "")).givenUp(string(ourUID)),
			TopologyNew, 2, "", false, v1alpha1.EventReinitialized,
		},
		"the annotation of an earlier loss counts no more": {
			aDatabase().withTopology(running()).marked("new-claim").withMember(refusing(exitNoData, "")).givenUp("earlier"),
			TopologyInitialized, 1, theClaim, true, "",
		},
		"nothing is given up while the member may have data": {
			aDatabase().withTopology(running()).marked(theClaim).withMember(silent).givenUp(string(ourUID)),
			TopologyInitialized, 1, theClaim, true, "",
		},
		"data that were given up and are there all the same are another data set": {
			aDatabase().withTopology(running()).marked(theClaim).withMember().givenUp(string(ourUID)),
			TopologyInitialized, 1, theClaim, false, "",
		},
		"nothing is given up because what is there is refused": {
			aDatabase().withTopology(running()).marked(theClaim).withMember(refusing(exitForeignData, "")).givenUp(string(ourUID)),
			TopologyInitialized, 1, theClaim, true, "",
		},
		"data that were brought to another volume are found there": {
			aDatabase().withTopology(running()).marked("new-claim").withMember(), TopologyInitialized, 1, "new-claim", true, "",
		},
	}
}

// ephemeralTopologies are those of databases whose data go with a pod.
func ephemeralTopologies() map[string]topologyCase {
	running := func() Topology { return settled(aDatabase().ephemeral()).Topology }
	forgotten := Topology{State: TopologyInitialized, Epoch: 1, DataID: string(ourUID)}
	another := func(m *Member) { m.Pod.Name, m.Pod.UID = "db-1", "uid-of-db-1" }
	return map[string]topologyCase{
		"the first pod that answers is named": {
			aDatabase().ephemeral().withTopology(Topology{State: TopologyNew, Epoch: 1, DataID: string(ourUID)}).withMember(notPromoted),
			TopologyInitialized, 1, "uid-of-db-0", true, "",
		},
		"a pod that is silent keeps its data": {
			aDatabase().ephemeral().withTopology(running()).withMember(silent), TopologyInitialized, 1, "uid-of-db-0", true, "",
		},
		"a pod that is leaving keeps its data until it is gone": {
			aDatabase().ephemeral().withTopology(running()).
				withMember(func(m *Member) { m.Pod.DeletionTimestamp = new(metav1.NewTime(noon())) }).withMember(another, refusing(exitNoData, "")),
			TopologyInitialized, 1, "uid-of-db-0", true, "",
		},
		"the data are gone with their pod": {
			aDatabase().ephemeral().withTopology(running()), TopologyNew, 2, "", false, v1alpha1.EventEphemeralDataLost,
		},
		"the data are gone with their pod, whatever another says": {
			aDatabase().ephemeral().withTopology(running()).withMember(another, refusing(exitNoData, "")),
			TopologyNew, 2, "", false, v1alpha1.EventEphemeralDataLost,
		},
		"with the topology lost, a pod may hold the data": {
			aDatabase().ephemeral().withMember(silent), TopologyInitialized, 1, "", true, "",
		},
		"with the topology lost, the primary holds the data": {
			aDatabase().ephemeral().withMember(), TopologyInitialized, 1, "uid-of-db-0", true, "",
		},
		"with the holder forgotten, a pod that says nothing may hold the data": {
			aDatabase().ephemeral().withTopology(forgotten).withMember(silent), TopologyInitialized, 1, "", true, "",
		},
		"with the holder forgotten, every pod has to say that it holds none": {
			aDatabase().ephemeral().withTopology(forgotten).withMember(refusing(exitNoData, "")), TopologyNew, 2, "", false, v1alpha1.EventEphemeralDataLost,
		},
	}
}

func TestWhereTheDataAre(t *testing.T) {
	for _, rows := range []map[string]topologyCase{durableTopologies(), ephemeralTopologies()} {
		for sentence, row := range rows {
			t.Run(sentence, row.check)
		}
	}
}

func (c topologyCase) check(t *testing.T) {
	recorded, problem := c.database.build().Recall(anEngine(), noon())
	if problem != nil {
		t.Fatal(problem)
	}
	got := recorded.Topology
	if got.State != c.state || got.Epoch != c.epoch || got.Holder != c.holder || (got.DataID == string(ourUID)) != c.isSame {
		t.Errorf("got %+v, want %+v", got, c)
	}
	event := ""
	if got.Notice != nil {
		event = got.Notice.Reason
	}
	if event != c.event {
		t.Errorf("the event is %q, want %q", event, c.event)
	}
	if again, _ := c.database.build().Recall(anEngine(), noon()); !again.Topology.equal(got.Topology) {
		t.Errorf("once more it is %+v, first it was %+v", again.Topology, got.Topology)
	}
}

func FuzzATopologyIsReadAsItWasWritten(f *testing.F) {
	f.Add(true, int64(1), "data", "db-0", "holder")
	f.Fuzz(func(t *testing.T, isNew bool, epoch int64, dataID, primary, holder string) {
		topology := Topology{State: TopologyInitialized, Epoch: epoch, DataID: dataID, Primary: primary, Holder: types.UID(holder)}
		if isNew {
			topology.State = TopologyNew
		}
		got, err := parseTopology(topology.Data())
		if isValid := epoch > 0 && dataID != ""; isValid != (err == nil) || isValid && !got.equal(topology) {
			t.Errorf("%+v was read as %+v, %v", topology, got, err)
		}
	})
}

// topologyPlans are databases whose topology has a step to take, or has taken it.
func topologyPlans() map[string]planCase {
	anew := func(b *snapshotBuilder, d *Desired) {
		recorded, _ := b.build().Recall(anEngine(), noon())
		d.setTopology(b.isDurable(), recorded.Topology)
	}
	return map[string]planCase{
		"the first member is named and its volume marked before it is promoted": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				b.withAll(*d).withMember(notPromoted)
				anew(b, d)
			}, []string{"apply ConfigMap db-topology: the intent changed", "apply PersistentVolumeClaim data-db-0: the intent changed"}, "",
		},
		"the member that is named is promoted": {
			aDatabase(), wholeBut(notPromoted), []string{"promote Pod db-0"}, "",
		},
		"a member that is silent isn't promoted": {
			aDatabase(), wholeBut(func(m *Member) { notPromoted(m); silent(m) }), nil, "",
		},
		"a member on another volume isn't promoted": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				wholeBut(notPromoted)(b, d)
				b.Objects[Ref{KindVolumeClaim, "data-db-0"}].SetUID("another")
			}, nil, "",
		},
		"the data of a pod are given up once a live read finds it gone": {
			aDatabase().ephemeral(), func(b *snapshotBuilder, d *Desired) {
				whole(b, d)
				b.Members = nil
				anew(b, d)
			}, []string{"confirm that Pod db-0 is gone", "apply ConfigMap db-topology: the intent changed"}, "",
		},
		"a member that waits is replaced once it may make data": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) { b.withAll(*d).withMember(refusing(exitNoData, "")) },
			[]string{"evict Pod db-0: it may make its data now"},
			"",
		},
		"a member that waits is left alone while there should be data": {
			aDatabase(), wholeBut(refusing(exitNoData, "")), nil, "",
		},
	}
}
