// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/policy"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// podSetters are the setters of the fields about the Service and the pods.
func podSetters() map[string]func(*v1alpha1.DatabaseManagerSpec) {
	type spec = v1alpha1.DatabaseManagerSpec
	return map[string]func(*spec){
		"service.type":                                func(s *spec) { s.Service.Type = v1alpha1.ServiceTypeNodePort },
		"service.annotations":                         func(s *spec) { s.Service.Annotations = map[string]v1alpha1.AnnotationValue{"example.com/a": "b"} },
		"nodeSelector":                                func(s *spec) { s.NodeSelector = map[string]v1alpha1.LabelValue{"disk": "ssd"} },
		"tolerations.key":                             func(s *spec) { s.Tolerations[0].Key = "databases" },
		"tolerations.operator":                        func(s *spec) { s.Tolerations[0].Operator = v1alpha1.TolerationOperatorExists },
		"tolerations.value":                           func(s *spec) { s.Tolerations[0].Value = "yes" },
		"tolerations.effect":                          func(s *spec) { s.Tolerations[0].Effect = v1alpha1.TaintEffectNoExecute },
		"tolerations.tolerationSeconds":               func(s *spec) { s.Tolerations[0].TolerationSeconds = new(int64(0)) },
		"topologySpreadConstraints.maxSkew":           func(s *spec) { s.TopologySpreadConstraints[0].MaxSkew = 2 },
		"topologySpreadConstraints.topologyKey":       func(s *spec) { s.TopologySpreadConstraints[0].TopologyKey = "zone" },
		"topologySpreadConstraints.whenUnsatisfiable": func(s *spec) { s.TopologySpreadConstraints[0].WhenUnsatisfiable = v1alpha1.DoNotSchedule },
		"priorityClassName":                           func(s *spec) { s.PriorityClassName = "important" },
		"imagePullSecrets.name":                       func(s *spec) { s.ImagePullSecrets[0].Name = "registry" },
		"podLabels":                                   func(s *spec) { s.PodLabels = map[string]v1alpha1.LabelValue{"team": "shop"} },
		"podAnnotations":                              func(s *spec) { s.PodAnnotations = map[string]v1alpha1.AnnotationValue{"team": "the shop"} },
	}
}

// furnishPod has every part about the Service and the pods, with nothing in it.
func furnishPod(spec *v1alpha1.DatabaseManagerSpec) {
	spec.Service = &v1alpha1.ServiceSpec{}
	spec.Tolerations = make([]v1alpha1.Toleration, 1)
	spec.TopologySpreadConstraints = make([]v1alpha1.TopologySpreadConstraint, 1)
	spec.ImagePullSecrets = make([]v1alpha1.ImagePullSecret, 1)
}

// withPlacement has all that a spec can say about the Service and the pods.
func withPlacement(in *Input) {
	furnishPod(&in.Database.Spec)
	for _, set := range podSetters() {
		set(&in.Database.Spec)
	}
}

// giveHostilePlacement has a text wherever one can be about where members run.
func giveHostilePlacement(spec *v1alpha1.DatabaseManagerSpec, text string) {
	spec.NodeSelector = map[string]v1alpha1.LabelValue{"disk": v1alpha1.LabelValue(text)}
	spec.PodLabels = map[string]v1alpha1.LabelValue{"team": v1alpha1.LabelValue(text)}
	spec.PodAnnotations = map[string]v1alpha1.AnnotationValue{"team": v1alpha1.AnnotationValue(text)}
	spec.Service = &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceType(text), Annotations: spec.PodAnnotations}
	spec.PriorityClassName = text
	spec.ImagePullSecrets = []v1alpha1.ImagePullSecret{{Name: text}}
	spec.Tolerations = []v1alpha1.Toleration{{Key: text}}
	spec.TopologySpreadConstraints = []v1alpha1.TopologySpreadConstraint{{TopologyKey: text}}
}

// hostilePlacement are the places in a workload where that text then is.
func hostilePlacement() []string {
	const pod = "db: spec.template.spec."
	return []string{
		pod + "imagePullSecrets.name", pod + "nodeSelector.disk", pod + "priorityClassName", pod + "tolerations.key", pod + "topologySpreadConstraints.topologyKey",
	}
}

func TestWhereMembersRunIsInTestdata(t *testing.T) {
	in := anInput(withStorage, withPlacement)
	in.Recorded.TemplateVersion = "1"
	desired, problem := Render(in)
	if problem != nil {
		t.Fatal(problem)
	}
	compareWithGolden(t, filepath.Join("testdata", "placed.yaml"), manifests(t, desired))
}

// TestTheUsersLabelsAreInNoSelectorAndReplaceNoneOfOurs also holds where an older
// schema let one of our keys in.
func TestTheUsersLabelsAreInNoSelectorAndReplaceNoneOfOurs(t *testing.T) {
	plain, problem := resolve(anInput(withStorage))
	if problem != nil {
		t.Fatal(problem)
	}
	r, problem := resolve(anInput(withStorage, withPlacement))
	if problem != nil {
		t.Fatal(problem)
	}
	var workload appsv1.StatefulSet
	workloadOf(t, &r, &workload)
	selector := workload.Spec.Selector
	if !maps.Equal(selector.MatchLabels, plain.selector()) || len(selector.MatchExpressions) > 0 {
		t.Errorf("the workload selects by %v, want %v", selector, plain.selector())
	}
	spread := workload.Spec.Template.Spec.TopologySpreadConstraints
	if len(spread) != 1 || !maps.Equal(spread[0].LabelSelector.MatchLabels, plain.selector()) {
		t.Errorf("the members are spread by %v, want those of %v", spread, plain.selector())
	}
	pod := labels.Set(workload.Spec.Template.Labels)
	if !labels.SelectorFromSet(plain.labels()).Matches(pod) || pod["team"] != "shop" {
		t.Errorf("a pod has the labels %v, want %v and the user's", pod, plain.labels())
	}
	r.Database.Spec.PodLabels = map[string]v1alpha1.LabelValue{v1alpha1.LabelStem: "other"}
	if got := r.podLabels(); !maps.Equal(got, plain.labels()) {
		t.Errorf("a label of ours is replaced: %v", got)
	}
}

// workloadOf reads what is rendered into the type that Kubernetes has.
func workloadOf(t *testing.T, r *rendering, into any) {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.workload())
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into); err != nil {
		t.Fatal(err)
	}
}

func TestAKeyThatIsntTheUsersIsAProblemThatNamesIt(t *testing.T) {
	for field, set := range map[string]func(*v1alpha1.DatabaseManagerSpec, string){
		"spec.service.annotations": func(s *v1alpha1.DatabaseManagerSpec, key string) {
			s.Service = &v1alpha1.ServiceSpec{Annotations: map[string]v1alpha1.AnnotationValue{key: "x"}}
		},
		"spec.nodeSelector": func(s *v1alpha1.DatabaseManagerSpec, key string) {
			s.NodeSelector = map[string]v1alpha1.LabelValue{key: "x"}
		},
		"spec.podLabels": func(s *v1alpha1.DatabaseManagerSpec, key string) {
			s.PodLabels = map[string]v1alpha1.LabelValue{key: "x"}
		},
		"spec.podAnnotations": func(s *v1alpha1.DatabaseManagerSpec, key string) {
			s.PodAnnotations = map[string]v1alpha1.AnnotationValue{key: "x"}
		},
	} {
		for _, key := range []string{"", "a b", "a/b/c", "-a", "a..b/c", strings.Repeat("k", 64), strings.Repeat("k", 254) + "/a", "coolops.cn/intent-hash"} {
			if field == "spec.nodeSelector" && key == "coolops.cn/intent-hash" {
				continue // nodes may have any label
			}
			in := anInput()
			set(&in.Database.Spec, key)
			_, problem := Render(in)
			if problem == nil || problem.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(problem.Message, field) || !strings.Contains(problem.Message, key) {
				t.Errorf("%s with %q gives %v, want a problem that names both", field, key, problem)
			}
		}
		in := anInput()
		set(&in.Database.Spec, "example.com/team")
		if _, problem := Render(in); problem != nil {
			t.Errorf("%s with example.com/team gives %v", field, problem)
		}
	}
}

// FuzzAUsersMapNeverBreaksARendering has any key and value in every map, and the
// API server's own checks look at the pods.
func FuzzAUsersMapNeverBreaksARendering(f *testing.F) {
	f.Add("team", "shop")
	f.Add("coolops.cn/role", "primary")
	f.Add("app.kubernetes.io/name", "")
	f.Add("\xff/\x00", "$(reboot)")
	f.Add("container.apparmor.security.beta.kubernetes.io/database", "unconfined")
	f.Add("container.seccomp.security.alpha.kubernetes.io/database", "unconfined")
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		in := anInput(func(in *Input) {
			spec := &in.Database.Spec
			spec.PodLabels, spec.NodeSelector = map[string]v1alpha1.LabelValue{key: v1alpha1.LabelValue(value)}, map[string]v1alpha1.LabelValue{key: v1alpha1.LabelValue(value)}
			spec.PodAnnotations = map[string]v1alpha1.AnnotationValue{key: v1alpha1.AnnotationValue(value)}
		})
		desired, problem := Render(in)
		if problem != nil {
			return
		}
		checkMember(t, evaluator, in.Engine, desired)
		var workload appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(desired.Workload().Fields, &workload); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(workload.Spec.Selector.MatchLabels)); !slices.Equal(got, []string{v1alpha1.LabelComponent, v1alpha1.LabelStem}) {
			t.Errorf("it selects by %v", got)
		}
		pod := workload.Spec.Template
		if pod.Labels[v1alpha1.LabelStem] != "db" || pod.Labels[v1alpha1.LabelName] != "redis" || pod.Labels[v1alpha1.LabelRole] != "" {
			t.Errorf("its pods have the labels %v", pod.Labels)
		}
	})
}
