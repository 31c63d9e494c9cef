// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	databasesfake "coolops.cn/database-manager/pkg/generated/clientset/versioned/fake"
)

// theDatabase is one as it was read.
func theDatabase(changes ...func(*v1alpha1.DatabaseManager)) *v1alpha1.DatabaseManager {
	database := &v1alpha1.DatabaseManager{
		ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop", UID: "read", Generation: 3, ResourceVersion: "7"},
		Spec:       v1alpha1.DatabaseManagerSpec{DeploymentName: "db", DBType: v1alpha1.DatabaseTypeRedis},
	}
	for _, change := range changes {
		change(database)
	}
	return database
}

// anExecution is of a plan for theDatabase, in a cluster that holds these objects
// and, of databases, those.
func anExecution(objects, databases []runtime.Object) (*execution, *fake.Clientset, *databasesfake.Clientset) {
	kubernetes, owners := fake.NewClientset(objects...), databasesfake.NewClientset(databases...)
	controller := &Controller{config: Config{Kubernetes: kubernetes, Databases: owners}, caches: caches{View: kit.NewView()}, unwrittenSince: map[types.UID]time.Time{}}
	snapshot := plan.Snapshot{Database: theDatabase(), Objects: map[plan.Ref]metav1.Object{}}
	return &execution{Controller: controller, key: cache.NewObjectName("shop", "orders"), snapshot: snapshot, claimant: snapshot.Claimant("data")}, kubernetes, owners
}

// writesOf are the requests that change something.
func writesOf(actions []clienttesting.Action) []clienttesting.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(action clienttesting.Action) bool {
		return slices.Contains([]string{"get", "list", "watch"}, action.GetVerb())
	})
}

// TestADeletionIsOfTheVeryObjectThatWasRead looks at what each request insists on,
// since an object's name can have passed to another one.
func TestADeletionIsOfTheVeryObjectThatWasRead(t *testing.T) {
	for sentence, row := range map[string]struct {
		action      plan.Action
		version     string
		propagation metav1.DeletionPropagation
	}{
		"a pod":                             {plan.Evict{Pod: "db-0", UID: "meant"}, "", ""},
		"a workload, which leaves its pods": {plan.Orphan{Ref: plan.Ref{Kind: plan.KindStatefulSet, Name: "db"}, UID: "meant"}, "", metav1.DeletePropagationOrphan},
		"a configuration":                   {plan.Delete{Ref: plan.Ref{Kind: plan.KindConfigMap, Name: "db-config-1"}, UID: "meant"}, "", ""},
		"a volume, as it was read":          {plan.DeleteVolume{Claim: "data-db-1", UID: "meant", Version: "5"}, "5", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			e, kubernetes, _ := anExecution(nil, []runtime.Object{theDatabase()})
			if err := e.carryOut(t.Context(), row.action); err != nil {
				t.Fatal(err)
			}
			writes := writesOf(kubernetes.Actions())
			if len(writes) != 1 {
				t.Fatalf("the requests are %v", writes)
			}
			options := &metav1.DeleteOptions{}
			switch write := writes[0].(type) {
			case clienttesting.DeleteActionImpl:
				options = &write.DeleteOptions
			case clienttesting.CreateActionImpl:
				if eviction, isEviction := write.Object.(*policyv1.Eviction); isEviction {
					options = eviction.DeleteOptions
				}
			}
			if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != "meant" {
				t.Fatalf("it insists on %+v", options.Preconditions)
			}
			version, propagation := "", metav1.DeletionPropagation("")
			if options.Preconditions.ResourceVersion != nil {
				version = *options.Preconditions.ResourceVersion
			}
			if options.PropagationPolicy != nil {
				propagation = *options.PropagationPolicy
			}
			if version != row.version || propagation != row.propagation {
				t.Errorf("it is of the version %q, by %q; want %q, %q", version, propagation, row.version, row.propagation)
			}
		})
	}
}

// TestAVolumeIsDeletedOnlyByTheSpecThatWasRead has the spec be another by now.
func TestAVolumeIsDeletedOnlyByTheSpecThatWasRead(t *testing.T) {
	for sentence, change := range map[string]func(*v1alpha1.DatabaseManager){
		"it was changed": func(d *v1alpha1.DatabaseManager) { d.Generation++ },
		"it is going":    func(d *v1alpha1.DatabaseManager) { d.DeletionTimestamp = new(metav1.Now()) },
		"it is another":  func(d *v1alpha1.DatabaseManager) { d.UID = "another" },
	} {
		t.Run(sentence, func(t *testing.T) {
			e, kubernetes, _ := anExecution(nil, []runtime.Object{theDatabase(change)})
			err := e.carryOut(t.Context(), plan.DeleteVolume{Claim: "data-db-1", UID: "meant", Version: "5"})
			if writes := writesOf(kubernetes.Actions()); !errors.Is(err, kit.ErrChanged) || len(writes) > 0 {
				t.Errorf("the requests are %v, the error %v", writes, err)
			}
		})
	}
}

// TestAPodIsLookedAtBeforeAnythingRestsOnItsEnd has decisions that data be given up,
// or that another member take writes, rest on it.
func TestAPodIsLookedAtBeforeAnythingRestsOnItsEnd(t *testing.T) {
	pod := func(uid types.UID, phase corev1.PodPhase, state corev1.ContainerState) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: "shop", UID: uid, DeletionTimestamp: new(metav1.Now())},
			Status:     corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{State: state}}},
		}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	stopped := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	for sentence, row := range map[string]struct {
		there             []runtime.Object
		isGone, isStopped bool
	}{
		"there is none":             {nil, true, true},
		"it runs, though it leaves": {[]runtime.Object{pod("meant", corev1.PodRunning, running)}, false, false},
		"its server has ended":      {[]runtime.Object{pod("meant", corev1.PodRunning, stopped)}, false, true},
		"it has ended for good":     {[]runtime.Object{pod("meant", corev1.PodFailed, running)}, true, true},
		"another one has its name":  {[]runtime.Object{pod("another", corev1.PodRunning, running)}, true, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			e, _, _ := anExecution(row.there, nil)
			for action, want := range map[plan.Action]bool{
				plan.ConfirmGone{Pod: plan.PodRef{Name: "db-0", UID: "meant"}}: row.isGone,
				plan.ConfirmStopped{Pod: "db-0"}:                               row.isStopped,
			} {
				err := e.carryOut(t.Context(), action)
				if isConfirmed := err == nil; isConfirmed != want || !isConfirmed && !errors.Is(err, kit.ErrChanged) {
					t.Errorf("%s: %v", action, err)
				}
			}
		})
	}
}

func TestALabelIsOfThePodAsItWasRead(t *testing.T) {
	e, kubernetes, _ := anExecution([]runtime.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: "shop"}}}, nil)
	// Whatever the fake answers to that.
	_ = e.carryOut(t.Context(), plan.Label{Pod: plan.PodRef{Name: "db-0", UID: "meant"}, Version: "5", Role: v1alpha1.MemberRolePrimary})
	checkPatch(t, writesOf(kubernetes.Actions()), "meant", "5")
}

// TestAStatusIsOfTheDatabaseAsItWasRead: one that was created again has its name.
func TestAStatusIsOfTheDatabaseAsItWasRead(t *testing.T) {
	e, _, owners := anExecution(nil, []runtime.Object{theDatabase()})
	e.config.Recorder = events.NewFakeRecorder(10)
	// Whatever the fake answers to that.
	_, _ = e.report(t.Context(), e.key, e.snapshot, plan.Desired{}, plan.Plan{}, plan.Outcome{IsDone: true}, time.Now())
	checkPatch(t, writesOf(owners.Actions()), "read", "7")
}

// checkPatch has the only request be a patch of an object of that UID and version.
func checkPatch(t *testing.T, writes []clienttesting.Action, uid types.UID, version string) {
	t.Helper()
	if len(writes) != 1 {
		t.Fatalf("the requests are %v", writes)
	}
	patch, isPatch := writes[0].(clienttesting.PatchActionImpl)
	var sent struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(patch.Patch, &sent); err != nil || !isPatch || sent.Metadata.UID != uid || sent.Metadata.ResourceVersion != version {
		t.Errorf("sent is %s (%v), want the UID %s and the version %s", patch.Patch, err, uid, version)
	}
}

// TestDataAreAdoptedOnceTheirDatabaseIsGone has a cache not show it any more.
func TestDataAreAdoptedOnceTheirDatabaseIsGone(t *testing.T) {
	former := theDatabase(func(d *v1alpha1.DatabaseManager) { d.Name, d.UID = "former", "former" })
	e, kubernetes, _ := anExecution(nil, []runtime.Object{former})
	claim := plan.Child{Ref: plan.Ref{Kind: plan.KindVolumeClaim, Name: "data-db-0"}, IsRetained: true}
	err := e.carryOut(t.Context(), plan.Adopt{Child: claim, UID: "meant", FormerOwner: "former"})
	var problem *plan.Problem
	if !errors.As(err, &problem) || !strings.Contains(problem.Message, "belongs to the DatabaseManager former") || len(kubernetes.Actions()) > 0 {
		t.Errorf("the requests are %v, the error %v", kubernetes.Actions(), err)
	}
}

// TestASecretKeepsThePasswordThatItHas: what was read, or made, before may be older.
func TestASecretKeepsThePasswordThatItHas(t *testing.T) {
	child := plan.Child{
		Ref: plan.Ref{Kind: plan.KindSecret, Name: "db-auth"}, IsRetained: true, Fields: map[string]any{},
		Template: map[string]string{plan.PasswordKey: plan.PasswordMark},
	}.WithPassword("older")
	given := child
	given.IsGiven = true
	for sentence, row := range map[string]struct {
		child    plan.Child
		password string // in the cluster
		want     string
	}{
		"whatever the plan has":            {child, "newer", "bmV3ZXI="},
		"but for the user's own":           {given, "newer", "b2xkZXI="},
		"and is given none if it has none": {child, "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			e, _, _ := anExecution(nil, nil)
			fields, err := e.fieldsFor(row.child, "")(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "db-auth", OwnerReferences: []metav1.OwnerReference{{UID: "read", Controller: new(true)}}},
				Data:       map[string][]byte{plan.PasswordKey: []byte(row.password)},
			})
			data, _ := fields["data"].(map[string]any) // nothing else is a map
			got, _ := data[plan.PasswordKey].(string)  // nothing else is a text
			if got != row.want || (row.want == "") != errors.Is(err, kit.ErrChanged) {
				t.Errorf("it is given %q (%v), want %q", got, err, row.want)
			}
		})
	}
}

// TestThePassEndsWhereItFails: each action rests on those before it.
func TestThePassEndsWhereItFails(t *testing.T) {
	child := func(kind plan.Kind, name string, isRetained bool) plan.Action {
		return plan.Create{Child: plan.Child{
			Ref: plan.Ref{Kind: kind, Name: name}, IsRetained: isRetained,
			Fields: map[string]any{"metadata": map[string]any{"name": name, "namespace": "shop"}},
		}}
	}
	actions := []plan.Action{child(plan.KindService, "db-members", false), child(plan.KindConfigMap, "db-topology", true), child(plan.KindStatefulSet, "db", false)}
	for sentence, row := range map[string]struct {
		refused string // the resource that can't be made
		looks   int    // how often the database is found
		takes   time.Duration
		made    []string
	}{
		"nowhere":                             {"", 9, 0, []string{"services", "configmaps", "statefulsets"}},
		"nowhere, after one look in a moment": {"", 1, 0, []string{"services", "configmaps", "statefulsets"}},
		"at what is refused":                  {"configmaps", 9, 0, []string{"services", "configmaps"}},
		"before what stays, if the database is gone by then": {"", 1, existenceLasts, []string{"services"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, kubernetes, owners := anExecution(nil, []runtime.Object{theDatabase()})
			kubernetes.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				<-time.After(row.takes)
				return false, nil, nil
			})
			kubernetes.PrependReactor("create", row.refused, func(clienttesting.Action) (bool, runtime.Object, error) {
				return row.refused != "", nil, errors.New("refused")
			})
			owners.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				row.looks--
				return row.looks < 0, nil, apierrors.NewNotFound(databaseResource(), "orders")
			})
			_, err := e.execute(t.Context(), e.key, e.snapshot, plan.Desired{}, plan.Plan{Actions: actions})
			var made []string
			for _, write := range writesOf(kubernetes.Actions()) {
				made = append(made, write.GetResource().Resource)
			}
			if !slices.Equal(made, row.made) || (err == nil) != (len(made) == len(actions)) {
				t.Errorf("%s: made are %v (%v), want %v", sentence, made, err, row.made)
			}
		})
	}
}

// aServer answers as one of its start, and counts how often it is promoted.
type aServer struct {
	dbclient.Connection
	runID    string
	promoted *int
}

func (s aServer) State(context.Context) (plan.EngineState, error) {
	return plan.EngineState{RunID: s.runID}, nil
}

func (s aServer) Promote(context.Context, plan.Acknowledgement) error {
	*s.promoted++
	return nil
}
func (aServer) Close() error { return nil }

// TestOnlyTheServerThatWasSeenIsChanged: an address can have passed to another pod,
// and the lease to another operator.
func TestOnlyTheServerThatWasSeenIsChanged(t *testing.T) {
	var stalled *kit.Stalled
	for sentence, row := range map[string]struct {
		runID string
		lease time.Duration // that is left
		err   func(error) bool
	}{
		"the one that was seen":                  {"seen", time.Minute, func(err error) bool { return err == nil }},
		"another start of it":                    {"another", time.Minute, func(err error) bool { return errors.Is(err, kit.ErrChanged) }},
		"the same, but the lease ends before it": {"seen", time.Second, func(err error) bool { return errors.As(err, &stalled) }},
	} {
		t.Run(sentence, func(t *testing.T) {
			promoted := 0
			e, _, _ := anExecution(nil, nil)
			e.config.MayAct = func(needed time.Duration) bool { return needed < row.lease }
			e.engines = map[v1alpha1.DatabaseType]knownEngine{v1alpha1.DatabaseTypeRedis: newKnownEngine(Engine{
				Engine: redis.New(), Dial: func(dbclient.Target) dbclient.Connection { return aServer{runID: row.runID, promoted: &promoted} },
			})}
			e.prober = kit.NewProber(kit.ProberConfig[target, plan.EngineState]{})
			e.snapshot.Objects[plan.Ref{Kind: plan.KindSecret, Name: "db-admin"}] = &corev1.Secret{}
			e.snapshot.Members = []plan.Member{{Pod: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "db-0", UID: "pod"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7"},
			}}}
			err := e.carryOut(t.Context(), plan.Promote{Server: plan.Server{Pod: plan.PodRef{Name: "db-0", UID: "pod"}, RunID: "seen"}})
			if isDone := promoted == 1; !row.err(err) || isDone != (err == nil) {
				t.Errorf("it is promoted %d times, with the error %v", promoted, err)
			}
		})
	}
}
