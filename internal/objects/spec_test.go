// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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

// shownElsewhere are fields that don't change the children of a database, by why.
func shownElsewhere() map[string]string {
	return map[string]string{
		"deploymentName": "it names all children, and never changes",
		"dbtype":         "it chooses the engine, and never changes",
		"replicas":       "while there is no replication, the status answers it",
		"suspend":        "the planner stops at it",
		"storage.size":   "the planner has the claims grow, and another StatefulSet take over",

		"auth.secretName": "the Secret that it names was read before: it is where the password comes from",
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
	known := slices.Collect(maps.Keys(setters()))
	known = slices.AppendSeq(known, maps.Keys(shownElsewhere()))
	slices.Sort(known)
	if fields := slices.Sorted(slices.Values(leaves("", reflect.TypeFor[v1alpha1.DatabaseManagerSpec]()))); !slices.Equal(fields, known) {
		t.Errorf("the fields of a spec are\n%v\nand these are looked at:\n%v", fields, known)
	}
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

// leaves are the paths of the fields below a type of the API, as users write
// them; those of a list are those of its elements.
func leaves(path string, of reflect.Type) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[resource.Quantity]() {
		return []string{path}
	}
	var paths []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		paths = append(paths, leaves(strings.TrimPrefix(path+"."+name, "."), field.Type)...)
	}
	return paths
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
	for _, path := range leaves("", reflect.TypeFor[v1alpha1.DatabaseManagerSpec]()) {
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
