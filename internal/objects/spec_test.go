// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"coolops.cn/database-manager/internal/crdschema"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// setters set each field of a spec that can be set in furnished, to something
// else than that has.
func setters() map[string]func(*v1alpha1.DatabaseManagerSpec) {
	selector := func() *v1alpha1.LabelsSelector {
		return &v1alpha1.LabelsSelector{MatchLabels: map[string]v1alpha1.LabelValue{"app": "shop"}}
	}
	fields := map[string]func(*v1alpha1.DatabaseManagerSpec){
		"version":                  func(s *v1alpha1.DatabaseManagerSpec) { s.Version = "1.0" },
		"image":                    func(s *v1alpha1.DatabaseManagerSpec) { s.Image = "own:1" },
		"config":                   func(s *v1alpha1.DatabaseManagerSpec) { s.Config = map[string]v1alpha1.ConfigValue{"timeout": "7"} },
		"shutdown":                 func(s *v1alpha1.DatabaseManagerSpec) { s.Shutdown = true },
		"storage.storageClassName": func(s *v1alpha1.DatabaseManagerSpec) { s.Storage.StorageClassName = new("slow") },
		"storage.retention.whenDeleted": func(s *v1alpha1.DatabaseManagerSpec) {
			s.Storage.Retention.WhenDeleted = v1alpha1.RetentionPolicyDelete
		},
		"networkPolicy.from.podSelector.matchLabels":       func(s *v1alpha1.DatabaseManagerSpec) { s.NetworkPolicy.From[0].PodSelector = selector() },
		"networkPolicy.from.namespaceSelector.matchLabels": func(s *v1alpha1.DatabaseManagerSpec) { s.NetworkPolicy.From[0].NamespaceSelector = selector() },
		"networkPolicy.from.ipBlock.cidr":                  func(s *v1alpha1.DatabaseManagerSpec) { s.NetworkPolicy.From[0].IPBlock.CIDR = "192.0.2.0/24" },
		"networkPolicy.from.ipBlock.except": func(s *v1alpha1.DatabaseManagerSpec) {
			s.NetworkPolicy.From[0].IPBlock.Except = []string{"192.0.2.128/25"}
		},
	}
	maps.Copy(fields, podSetters())
	for part, of := range map[string]func(*v1alpha1.ResourceRequirements) *v1alpha1.ResourceAmounts{
		"resources.requests.": func(r *v1alpha1.ResourceRequirements) *v1alpha1.ResourceAmounts { return r.Requests },
		"resources.limits.":   func(r *v1alpha1.ResourceRequirements) *v1alpha1.ResourceAmounts { return r.Limits },
	} {
		fields[part+"cpu"] = func(s *v1alpha1.DatabaseManagerSpec) { of(s.Resources).CPU = new(resource.MustParse("7")) }
		fields[part+"memory"] = func(s *v1alpha1.DatabaseManagerSpec) { of(s.Resources).Memory = new(resource.MustParse("7Gi")) }
		fields[part+"ephemeral-storage"] = func(s *v1alpha1.DatabaseManagerSpec) {
			of(s.Resources).EphemeralStorage = new(resource.MustParse("7Gi"))
		}
	}
	return fields
}

// furnished has every part of a spec, with as little in it as possible, so that
// it is a field that shows and not the part that it is in.
func furnished(in *Input) {
	spec := &in.Database.Spec
	spec.Version = "2.0"
	furnishPod(spec)
	spec.Storage.Retention = &v1alpha1.StorageRetention{}
	spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{From: []v1alpha1.NetworkPolicyPeer{
		{PodSelector: &v1alpha1.LabelsSelector{}, NamespaceSelector: &v1alpha1.LabelsSelector{}, IPBlock: &v1alpha1.IPBlock{}},
	}}
	spec.Resources = &v1alpha1.ResourceRequirements{Requests: &v1alpha1.ResourceAmounts{}, Limits: &v1alpha1.ResourceAmounts{}}
}

func withPeer(set func(*v1alpha1.NetworkPolicyPeer)) func(*v1alpha1.DatabaseManagerSpec) {
	return func(s *v1alpha1.DatabaseManagerSpec) {
		s.NetworkPolicy = &v1alpha1.NetworkPolicySpec{From: make([]v1alpha1.NetworkPolicyPeer, 1)}
		set(&s.NetworkPolicy.From[0])
	}
}

// moreSetters set each field that doesn't change the children of a database that
// runs, or that never changes once there are any.
func moreSetters() map[string]func(*v1alpha1.DatabaseManagerSpec) {
	return map[string]func(*v1alpha1.DatabaseManagerSpec){
		"deploymentName": func(s *v1alpha1.DatabaseManagerSpec) { s.DeploymentName = "other" },
		"dbtype":         func(s *v1alpha1.DatabaseManagerSpec) { s.DBType = v1alpha1.DatabaseTypeMySQL },
		"replicas":       func(s *v1alpha1.DatabaseManagerSpec) { s.Replicas = new(int32(3)) },
		"replication.mode": func(s *v1alpha1.DatabaseManagerSpec) {
			s.Replication = &v1alpha1.ReplicationSpec{Mode: v1alpha1.ReplicationModeSync}
		},
		"storage.retention.whenScaled": func(s *v1alpha1.DatabaseManagerSpec) {
			s.Storage.Retention = &v1alpha1.StorageRetention{WhenScaled: v1alpha1.RetentionPolicyDelete}
		},
		"suspend":         func(s *v1alpha1.DatabaseManagerSpec) { s.Suspend = true },
		"storage.size":    func(s *v1alpha1.DatabaseManagerSpec) { s.Storage.Size = resource.MustParse("20Gi") },
		"auth.secretName": func(s *v1alpha1.DatabaseManagerSpec) { s.Auth.SecretName = "mine" },
	}
}

// TestEveryOtherFieldOfASpecShowsInWhatIsDoneOrSaid sets each field beside the
// cluster's answer to it, takes it out again, and looks at children, plan and
// status.
func TestEveryOtherFieldOfASpecShowsInWhatIsDoneOrSaid(t *testing.T) {
	for path, set := range moreSetters() {
		t.Run(path, func(t *testing.T) {
			spec := anInput(withStorage).Database.Spec
			spec.Auth = &v1alpha1.AuthSpec{SecretName: "theirs"}
			switch path {
			case "replication.mode": // which says nothing of one member
				spec.Replicas = new(int32(2))
			case "storage.retention.whenScaled": // which counts when there is nothing else to do
				spec.Replicas = new(int32(1))
			}
			before := doneAndSaid(t, spec)
			with := *spec.DeepCopy()
			set(&with)
			if doneAndSaid(t, with) == before {
				t.Error("nothing is done or said otherwise")
			}
			if doneAndSaid(t, spec) != before {
				t.Error("it leaves something behind")
			}
		})
	}
}

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// replicate adds a primary, and a replica that has all of its data, or just the
// volume that one has left.
func replicate(snapshot *plan.Snapshot, members int) {
	labels := map[string]string{
		v1alpha1.LabelEngine: string(snapshot.Database.Spec.DBType), v1alpha1.LabelOwnerUID: string(snapshot.Database.UID), v1alpha1.LabelDataID: "data",
	}
	topology := plan.Topology{
		State: plan.TopologyInitialized, Epoch: 1, DataID: "data", Primary: "db-0", Holder: "uid-of-claim",
	}
	if members == 2 {
		topology.Members, topology.Required = []plan.TopologyMember{{Name: "db-1", Holder: "uid-of-claim"}}, 1
	}
	name := plan.TopologyName("db")
	snapshot.Objects[plan.Ref{Kind: plan.KindConfigMap, Name: name}] = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: topology.Data(),
	}
	for i, state := range []plan.EngineState{
		{Role: v1alpha1.MemberRolePrimary},
		{Role: v1alpha1.MemberRoleReplica, Replication: plan.Replication{Source: "db-0.db-members.shop.svc", IsReceiving: true, IsCurrent: true}},
	}[:members] {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("db-%d", i)}}
		snapshot.Members = append(snapshot.Members, plan.Member{Pod: pod, Probe: plan.Probe{Answers: true, IsAsked: true, Engine: state}})
	}
	claim, isClaim := snapshot.Objects[plan.Ref{Kind: plan.KindVolumeClaim, Name: "data-db-0"}].(*corev1.PersistentVolumeClaim)
	if !isClaim {
		return // it has no volumes
	}
	other := claim.DeepCopy()
	other.Name = "data-db-1"
	snapshot.Objects[plan.Ref{Kind: plan.KindVolumeClaim, Name: other.Name}] = other
}

// addChildren adds the children as they are to be.
func addChildren(t *testing.T, snapshot *plan.Snapshot, desired plan.Desired) {
	t.Helper()
	for _, child := range slices.Concat([]plan.Child{desired.Stem}, desired.Children, desired.Claims[:1]) {
		object := map[plan.Kind]metav1.Object{
			plan.KindConfigMap: &corev1.ConfigMap{}, plan.KindNetworkPolicy: &networkingv1.NetworkPolicy{}, plan.KindSecret: &corev1.Secret{},
			plan.KindService: &corev1.Service{}, plan.KindStatefulSet: &appsv1.StatefulSet{}, plan.KindVolumeClaim: &corev1.PersistentVolumeClaim{},
		}[child.Kind]
		if child.NeedsPassword() {
			child = child.WithPassword("password")
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(child.Fields, object); err != nil {
			t.Fatalf("read %s: %v", child, err)
		}
		object.SetUID("uid-of-claim")
		snapshot.Objects[child.Ref] = object
	}
}

// doneAndSaid is all that follows from the spec of a database whose volume is
// there, and bound.
func doneAndSaid(t *testing.T, spec v1alpha1.DatabaseManagerSpec) string {
	t.Helper()
	engines := allEngines()
	of := slices.IndexFunc(engines, func(engine plan.Engine) bool { return engine.Type() == spec.DBType })
	in := anInput()
	in.Database.Spec, in.Engine = spec, engines[of]
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: plan.ClaimName(spec.DeploymentName + "-0"), UID: "uid-of-claim"}}
	claim.Labels = map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelEngine: string(spec.DBType), v1alpha1.LabelStem: spec.DeploymentName,
		v1alpha1.LabelOwnerUID: string(in.Database.UID), v1alpha1.LabelDataID: "data",
	}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	claim.Status.Phase = corev1.ClaimBound
	snapshot := plan.Snapshot{
		Database:    in.Database,
		Objects:     map[plan.Ref]metav1.Object{{Kind: plan.KindVolumeClaim, Name: claim.Name}: claim},
		Credentials: &corev1.Secret{Data: map[string][]byte{plan.PasswordKey: []byte("password-in-" + spec.Auth.SecretName)}},
	}
	if spec.Replicas != nil && *spec.Replicas < 3 {
		replicate(&snapshot, int(*spec.Replicas))
	}
	var problem *plan.Problem
	if in.Recorded, problem = snapshot.Recall(in.Engine, noon()); problem != nil {
		t.Fatal(problem)
	}
	desired, problem := Render(in)
	if problem != nil {
		t.Fatal(problem)
	}
	if spec.Replicas != nil && *spec.Replicas == 1 {
		addChildren(t, &snapshot, desired)
	}
	// The template of the StatefulSet would show the size of a new claim.
	in.Recorded.ClaimSize = "10Gi"
	running, problem := Render(in)
	if problem != nil {
		t.Fatal(problem)
	}
	todo := plan.Make(snapshot, desired, nil, noon())
	status := plan.Report(snapshot, desired, todo, plan.Outcome{IsDone: true}, noon())
	return fmt.Sprintf("%s\n%v\n%+v", encode(t, running), todo.Actions, status)
}

// TestEveryFieldOfTheSchemaIsLookedAt compares what users can write with what the
// tests above set.
func TestEveryFieldOfTheSchemaIsLookedAt(t *testing.T) {
	known := slices.Collect(maps.Keys(setters()))
	known = slices.AppendSeq(known, maps.Keys(moreSetters()))
	slices.Sort(known)
	if fields := leaves(t); !slices.Equal(fields, known) {
		t.Errorf("the fields of a spec are\n%v\nand these are looked at:\n%v", fields, known)
	}
}

// TestEveryFieldOfASpecShowsInTheChildrenAndGoesWithoutATrace sets each field,
// and takes it out again under what the children recorded meanwhile: they are
// byte for byte what they were, whatever was wrong with the value.
func TestEveryFieldOfASpecShowsInTheChildrenAndGoesWithoutATrace(t *testing.T) {
	for path, set := range setters() {
		t.Run(path, func(t *testing.T) {
			checkTrace(t, anInput(withStorage, furnished), set)
		})
	}
	t.Run("all of them and the parts they are in", func(t *testing.T) {
		in := anInput(withStorage, func(in *Input) { in.Database.Spec.Version = "2.0" })
		checkTrace(t, in, func(spec *v1alpha1.DatabaseManagerSpec) {
			furnished(&in)
			for _, set := range setters() {
				set(spec)
			}
		})
	})
}

// checkTrace renders before, while and after something is set.
func checkTrace(t *testing.T, in Input, set func(*v1alpha1.DatabaseManagerSpec)) {
	t.Helper()
	before := renderAndRecord(t, &in)
	spec := in.Database.Spec.DeepCopy()
	set(&in.Database.Spec)
	if with := renderAndRecord(t, &in); with == before {
		t.Error("it shows in no child")
	}
	in.Database.Spec = *spec
	if after := renderAndRecord(t, &in); after != before {
		t.Errorf("it leaves something behind:\n%s\nwas\n%s", after, before)
	}
}

// renderAndRecord renders, and has the next rendering find what this one recorded.
func renderAndRecord(t *testing.T, in *Input) string {
	t.Helper()
	desired, problem := Render(*in)
	if problem != nil {
		t.Fatal(problem)
	}
	annotations := annotationsOf(t, desired.Workload())
	in.Recorded.Version, in.Recorded.Image = annotations[v1alpha1.AnnotationResolvedVersion], annotations[v1alpha1.AnnotationResolvedImage]
	in.Recorded.TemplateVersion, in.Recorded.Defaults = annotations[v1alpha1.AnnotationTemplateVersion], annotations[v1alpha1.AnnotationResolvedDefaults]
	if in.Recorded.ClaimSize == "" && in.Database.Spec.Storage != nil {
		in.Recorded.ClaimSize = in.Database.Spec.Storage.Size.String()
	}
	return encode(t, desired)
}

func annotationsOf(t *testing.T, child plan.Child) map[string]string {
	t.Helper()
	var object metav1.PartialObjectMetadata
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": child.Fields["metadata"]}, &object); err != nil {
		t.Fatal(err)
	}
	return object.Annotations
}

// leaves are the paths of the fields of a spec that hold a value, by the schema
// that the API server has.
func leaves(t *testing.T) []string {
	t.Helper()
	fields, err := crdschema.Spec(filepath.Join("..", "..", "config", "crd", "coolops.cn_databasemanagers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return crdschema.Leaves(fields)
}

// TestWhateverIsOptionalMayBeAbsentOrEmpty plans for specs in which each
// optional part is absent or says nothing, in all combinations.
func TestWhateverIsOptionalMayBeAbsentOrEmpty(t *testing.T) {
	parts := []func(*v1alpha1.DatabaseManagerSpec){
		func(s *v1alpha1.DatabaseManagerSpec) { s.Storage = &v1alpha1.StorageSpec{} },
		func(s *v1alpha1.DatabaseManagerSpec) {
			s.Storage = &v1alpha1.StorageSpec{Retention: &v1alpha1.StorageRetention{}, StorageClassName: new("")}
		},
		func(s *v1alpha1.DatabaseManagerSpec) { s.Replicas = new(int32(0)) },
		furnishPod,
		func(s *v1alpha1.DatabaseManagerSpec) { s.NetworkPolicy = &v1alpha1.NetworkPolicySpec{} },
		withPeer(func(*v1alpha1.NetworkPolicyPeer) {}),
		withPeer(func(peer *v1alpha1.NetworkPolicyPeer) {
			*peer = v1alpha1.NetworkPolicyPeer{PodSelector: &v1alpha1.LabelsSelector{}, NamespaceSelector: &v1alpha1.LabelsSelector{}, IPBlock: &v1alpha1.IPBlock{}}
		}),
		func(s *v1alpha1.DatabaseManagerSpec) { s.Resources = &v1alpha1.ResourceRequirements{} },
		func(s *v1alpha1.DatabaseManagerSpec) {
			s.Resources = &v1alpha1.ResourceRequirements{Requests: &v1alpha1.ResourceAmounts{}, Limits: &v1alpha1.ResourceAmounts{CPU: &resource.Quantity{}}}
		},
	}
	for chosen := range 1 << len(parts) {
		in := anInput()
		for i, part := range parts {
			if chosen&(1<<i) != 0 {
				part(&in.Database.Spec)
			}
		}
		snapshot := plan.Snapshot{Database: in.Database}
		recorded, problem := snapshot.Recall(engine{}, time.Time{})
		if problem != nil {
			t.Fatalf("%+v: %v", in.Database.Spec, problem)
		}
		in.Recorded = recorded
		desired, problem := Render(in)
		if problem != nil {
			t.Fatalf("%+v: %v", in.Database.Spec, problem)
		}
		todo := plan.Make(snapshot, desired, nil, time.Time{})
		if status := plan.Report(snapshot, desired, todo, plan.Outcome{}, time.Time{}); len(todo.Actions) == 0 || len(status.Conditions) == 0 {
			t.Fatalf("%+v: nothing is planned, or said", in.Database.Spec)
		}
	}
}

// TestNoTextOfASpecReachesAFileOrACommand gives every field that takes a text
// one that no shell, server or SQL parser should be shown. Kubernetes expands
// $(…) in commands and in the values of variables.
func TestNoTextOfASpecReachesAFileOrACommand(t *testing.T) {
	const hostile = "hostile $(reboot) `reboot` '; DROP TABLE orders; --\n\"\\${PATH}"
	for _, engine := range allEngines() {
		t.Run(string(engine.Type()), func(t *testing.T) {
			desired, problem := Render(anInput(withStorage, func(in *Input) {
				in.Engine = engine
				in.Database.Name = hostile
				spec := &in.Database.Spec
				spec.DBType, spec.Image, spec.Version, spec.Storage.StorageClassName = engine.Type(), hostile, hostile, new(hostile)
				giveHostilePlacement(spec, hostile)
				selector := &v1alpha1.LabelsSelector{MatchLabels: map[string]v1alpha1.LabelValue{hostile: hostile}}
				spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{From: []v1alpha1.NetworkPolicyPeer{
					{PodSelector: selector, NamespaceSelector: selector, IPBlock: &v1alpha1.IPBlock{CIDR: hostile, Except: []string{hostile}}},
				}}
			}))
			if problem != nil {
				t.Fatal(problem)
			}
			var found []string
			for _, child := range desired.Children {
				switch child.Kind {
				case plan.KindConfigMap:
					found = append(found, textsWith("hostile", child.Name+": data", child.Fields["data"])...)
				case plan.KindStatefulSet:
					pod, _, err := unstructured.NestedFieldNoCopy(child.Fields, "spec", "template", "spec")
					if err != nil || pod == nil {
						t.Fatalf("%s has no pod template (%v)", child, err)
					}
					found = append(found, textsWith("hostile", child.Name+": spec.template.spec", pod)...)
				case plan.KindDeployment, plan.KindNetworkPolicy, plan.KindSecret, plan.KindService, plan.KindVolumeClaim:
				}
			}
			// An image is the name of one, to whomever reads it; and a scheduler compares.
			want := append([]string{"db: spec.template.spec.containers.image"}, hostilePlacement()...)
			slices.Sort(found)
			if !slices.Equal(found, want) {
				t.Errorf("it stands in %v, want %v", found, want)
			}
		})
	}
}

// textsWith returns the paths of the texts that contain part; the elements of a
// list have the path of the list.
func textsWith(part, path string, value any) []string {
	var paths []string
	switch value := value.(type) {
	case string:
		if strings.Contains(value, part) {
			paths = append(paths, path)
		}
	case []any:
		for _, element := range value {
			paths = append(paths, textsWith(part, path, element)...)
		}
	case map[string]any:
		for name, element := range value {
			paths = append(paths, textsWith(part, path+"."+name, element)...)
			if strings.Contains(name, part) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// TestASpecReachesNoOtherNamespace looks at what is rendered, and at what the
// spec could name.
func TestASpecReachesNoOtherNamespace(t *testing.T) {
	desired, problem := Render(anInput(withStorage, withEverything, withData))
	if problem != nil {
		t.Fatal(problem)
	}
	for _, child := range slices.Concat([]plan.Child{desired.Stem}, desired.Children, desired.Claims) {
		if got := namespacesIn("", child.Fields); !slices.Equal(got, []string{".metadata.namespace=shop"}) {
			t.Errorf("%s names the namespaces %v, want its database's alone", child, got)
		}
	}
	for _, path := range leaves(t) {
		// A selector of clients: the operator reads nothing by it. And names that are
		// looked up beside the database.
		name := strings.NewReplacer("namespaceSelector", "", "imagePullSecrets", "", "auth.secretName", "").Replace(path)
		for _, reference := range []string{"namespace", "secret", "configmap", "serviceaccount", "ref"} {
			if strings.Contains(strings.ToLower(name), reference) {
				t.Errorf("the field %s could refer to an object elsewhere", path)
			}
		}
	}
}

// namespacesIn returns every field that names a namespace.
func namespacesIn(path string, value any) []string {
	var found []string
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			found = append(found, namespacesIn(path, element)...)
		}
	case map[string]any:
		for name, element := range value {
			if text, isText := element.(string); isText && name == "namespace" {
				found = append(found, path+".namespace="+text)
			}
			found = append(found, namespacesIn(path+"."+name, element)...)
		}
	}
	return found
}

// TestWhatTheKubeletRunsNeedsNoCredential looks at the commands that stand in a
// pod, where everybody who may read pods can read them.
func TestWhatTheKubeletRunsNeedsNoCredential(t *testing.T) {
	for _, engine := range allEngines() {
		commands := strings.Join(slices.Concat(engine.Probe(), engine.Stop(), engine.Command()), " ")
		for _, trace := range []string{plan.AuthDir, plan.AdminDir, "pass", "--auth", "PGP"} {
			if strings.Contains(commands, trace) {
				t.Errorf("%s: %q uses %q", engine.Type(), commands, trace)
			}
		}
	}
}

// withOtherFiles is an engine of a newer operator.
type withOtherFiles struct{ engine }

func (withOtherFiles) Files(plan.Settings) map[string]string {
	return map[string]string{"redis.conf": "change\n"}
}

func TestOtherFilesAreAnotherConfigMapAndAnotherTemplate(t *testing.T) {
	const theConfig, theWorkload = 3, 7
	before, problem := Render(anInput())
	if problem != nil {
		t.Fatal(problem)
	}
	after, problem := Render(anInput(func(in *Input) { in.Engine = withOtherFiles{} }))
	if problem != nil {
		t.Fatal(problem)
	}
	if before.Children[theConfig].Name == after.Children[theConfig].Name {
		t.Errorf("%s has other content", after.Children[theConfig])
	}
	if before.Children[theWorkload].Kind != plan.KindDeployment || before.Children[theWorkload].Hash == after.Children[theWorkload].Hash {
		t.Errorf("%s doesn't change with its files", after.Children[theWorkload])
	}
}
