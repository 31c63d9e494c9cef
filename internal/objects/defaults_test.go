// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// someDefaults are those of an operator that has every flag.
func someDefaults() Defaults {
	return Defaults{
		Registry:         "registry.example.com/mirror",
		ImagePullSecrets: []string{"mirror"},
		StorageClass:     "slow",
		Tolerations:      []v1alpha1.Toleration{{Key: "databases", Operator: v1alpha1.TolerationOperatorExists, Effect: v1alpha1.TaintEffectNoSchedule}},
	}
}

func withSomeDefaults(in *Input) { in.Defaults = someDefaults() }

// withVolume asks for a volume of no class.
func withVolume(in *Input) {
	withStorage(in)
	in.Database.Spec.Storage.StorageClassName = nil
}

// placement is where defaults show in a workload.
type placement struct {
	image, class, pullSecrets, tolerations string
}

func placementOf(t *testing.T, in Input) placement {
	t.Helper()
	r, problem := resolve(in)
	if problem != nil {
		t.Fatal(problem)
	}
	var workload appsv1.StatefulSet
	workloadOf(t, &r, &workload)
	pod, class := workload.Spec.Template.Spec, ""
	if asked := workload.Spec.VolumeClaimTemplates[0].Spec.StorageClassName; asked != nil {
		class = *asked
	}
	return placement{pod.Containers[0].Image, class, textOf(t, pod.ImagePullSecrets), textOf(t, pod.Tolerations)}
}

func textOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDefaultsFillInWhatASpecLeavesOut(t *testing.T) {
	defaults := placement{
		"registry.example.com/mirror/redis:2.0", "slow", `[{"name":"mirror"}]`,
		`[{"key":"databases","operator":"Exists","effect":"NoSchedule"}]`,
	}
	for sentence, row := range map[string]struct {
		change func(*v1alpha1.DatabaseManagerSpec)
		want   func(*placement)
	}{
		"all of them": {func(*v1alpha1.DatabaseManagerSpec) {}, func(*placement) {}},
		"an image of one's own comes from where it says": {
			func(s *v1alpha1.DatabaseManagerSpec) { s.Image = "own:1" },
			func(p *placement) { p.image = "own:1" },
		},
		"a version doesn't say where it comes from": {
			func(s *v1alpha1.DatabaseManagerSpec) { s.Version = "1.0" },
			func(p *placement) { p.image = "registry.example.com/mirror/redis:1.0" },
		},
		"a class of the spec wins": {
			func(s *v1alpha1.DatabaseManagerSpec) { s.Storage.StorageClassName = new("fast") },
			func(p *placement) { p.class = "fast" },
		},
		"Secrets of the spec take the place of the default ones": {
			func(s *v1alpha1.DatabaseManagerSpec) { s.ImagePullSecrets = []v1alpha1.ImagePullSecret{{Name: "own"}} },
			func(p *placement) { p.pullSecrets = `[{"name":"own"}]` },
		},
		"tolerations of the spec take the place of the default ones": {
			func(s *v1alpha1.DatabaseManagerSpec) { s.Tolerations = []v1alpha1.Toleration{{Key: "own"}} },
			func(p *placement) { p.tolerations = `[{"key":"own"}]` },
		},
		"an empty list is none": {
			func(s *v1alpha1.DatabaseManagerSpec) {
				s.Tolerations, s.ImagePullSecrets = []v1alpha1.Toleration{}, []v1alpha1.ImagePullSecret{}
			},
			func(*placement) {},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			in, want := anInput(withVolume, withSomeDefaults), defaults
			row.change(&in.Database.Spec)
			row.want(&want)
			if got := placementOf(t, in); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestOtherFlagsTouchNoDatabaseThatExists renders for operators with and without
// defaults, what other operators have made, and changes the spec under both.
func TestOtherFlagsTouchNoDatabaseThatExists(t *testing.T) {
	all := map[string]Defaults{"none": {}, "some": someDefaults(), "others": {Registry: "other.example", StorageClass: "other", ImagePullSecrets: []string{"other"}}}
	for made, first := range all {
		for now, second := range all {
			t.Run("made with "+made+", now with "+now, func(t *testing.T) {
				in := anInput(withVolume, func(in *Input) { in.Defaults = first })
				before := renderAndRecord(t, &in)
				change := func(s *v1alpha1.DatabaseManagerSpec) { s.Version, s.PriorityClassName = "1.0", "important" }
				changed := in
				changed.Database = in.Database.DeepCopy()
				change(&changed.Database.Spec)
				want := renderAndRecord(t, &changed)

				in.Defaults = second
				if after := renderAndRecord(t, &in); after != before {
					t.Errorf("at rest it is\n%s\nand was\n%s", after, before)
				}
				change(&in.Database.Spec)
				if got := renderAndRecord(t, &in); got != want {
					t.Errorf("after a change it is\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// TestDefaultsOutliveTheWorkloadAsTheVersionDoes looks at the Secret that a
// database that is made again is recalled from.
func TestDefaultsOutliveTheWorkloadAsTheVersionDoes(t *testing.T) {
	desired, problem := Render(anInput(withVolume, withSomeDefaults))
	if problem != nil {
		t.Fatal(problem)
	}
	index := slices.IndexFunc(desired.Children, func(child plan.Child) bool { return child.Name == "db-admin" })
	secret, workload := annotationsOf(t, desired.Children[index]), annotationsOf(t, desired.Workload())
	for _, key := range []string{v1alpha1.AnnotationResolvedVersion, v1alpha1.AnnotationResolvedImage, v1alpha1.AnnotationResolvedDefaults} {
		if secret[key] == "" || secret[key] != workload[key] {
			t.Errorf("%s is %q in the Secret, and %q in the workload", key, secret[key], workload[key])
		}
	}
	const want = `{"registry":"registry.example.com/mirror","imagePullSecrets":["mirror"],"storageClass":"slow","tolerations":[{"key":"databases","operator":"Exists","effect":"NoSchedule"}]}`
	if got := workload[v1alpha1.AnnotationResolvedDefaults]; got != want {
		t.Errorf("recorded is\n%s\nwant\n%s", got, want)
	}
	again := anInput(withVolume)
	again.Recorded.Version, again.Recorded.Defaults = secret[v1alpha1.AnnotationResolvedVersion], secret[v1alpha1.AnnotationResolvedDefaults]
	if got, want := placementOf(t, again), placementOf(t, anInput(withVolume, withSomeDefaults)); got != want {
		t.Errorf("made again it is %+v, and was %+v", got, want)
	}
}

func TestARecordThatCantBeReadChangesNothing(t *testing.T) {
	for sentence, record := range map[string]string{
		"no JSON":                     "{",
		"another type":                `{"registry": 7}`,
		"a field of a newer operator": `{"nodeSelector": {"disk": "ssd"}}`,
	} {
		_, problem := Render(anInput(func(in *Input) { in.Recorded.Version, in.Recorded.Defaults = "2.0", record }))
		if problem == nil || problem.Reason != v1alpha1.ReasonTemplateUnknown {
			t.Errorf("%s gives %v, want %s", sentence, problem, v1alpha1.ReasonTemplateUnknown)
		}
	}
}

func TestAnImageComesFromTheRegistry(t *testing.T) {
	for _, row := range []struct{ registry, image, want string }{
		{"", "redis:8.0", "redis:8.0"},
		{"", "quay.io/valkey:9.1", "quay.io/valkey:9.1"},
		{"registry.example.com", "redis:8.0", "registry.example.com/redis:8.0"},
		{"registry.example.com:5000/mirror", "valkey/valkey:9.1", "registry.example.com:5000/mirror/valkey/valkey:9.1"},
		{"registry.example.com", "quay.io/a/valkey:9.1", "registry.example.com/a/valkey:9.1"},
		{"registry.example.com", "host:5000/valkey@sha256:0", "registry.example.com/valkey@sha256:0"},
	} {
		if got := inRegistry(row.registry, row.image); got != row.want {
			t.Errorf("%s in %q is %s, want %s", row.image, row.registry, got, row.want)
		}
	}
}

// TestDefaultTolerationsAreAllThatKubernetesHas keeps the names that users write
// the same as Kubernetes' own.
func TestDefaultTolerationsAreAllThatKubernetesHas(t *testing.T) {
	got := tolerationOf(v1alpha1.Toleration{
		Key: "k", Operator: v1alpha1.TolerationOperatorEqual, Value: "v", Effect: v1alpha1.TaintEffectNoExecute, TolerationSeconds: new(int64(5)),
	})
	want := corev1.Toleration{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))}
	if textOf(t, got) != textOf(t, want) {
		t.Errorf("got %s, want %s", textOf(t, got), textOf(t, want))
	}
}
