// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
)

// wanted is a Deployment as somebody wants it.
func wanted() *appsv1apply.DeploymentApplyConfiguration {
	return appsv1apply.Deployment("db", "shop").
		WithLabels(map[string]string{"app": "db"}).
		WithOwnerReferences(metav1apply.OwnerReference().WithUID("owner").WithController(true)).
		WithSpec(appsv1apply.DeploymentSpec().WithReplicas(1).
			WithTemplate(corev1apply.PodTemplateSpec().WithSpec(corev1apply.PodSpec().
				WithEnableServiceLinks(false).
				WithTopologySpreadConstraints(corev1apply.TopologySpreadConstraint().WithTopologyKey("zone").WithWhenUnsatisfiable(corev1.DoNotSchedule).WithMaxSkew(1)).
				WithTolerations(corev1apply.Toleration().WithKey("databases")).
				WithVolumes(corev1apply.Volume().WithName("tmp").WithEmptyDir(corev1apply.EmptyDirVolumeSource())).
				WithContainers(corev1apply.Container().WithName("database").WithImage("redis:8.0").
					WithCommand("run", "it").
					WithVolumeMounts(corev1apply.VolumeMount().WithName("tmp").WithMountPath("/tmp").WithReadOnly(false)).
					WithResources(corev1apply.ResourceRequirements().WithLimits(corev1.ResourceList{"cpu": resource.MustParse("1000m")}))))))
}

// found is that Deployment as the API server would hold it, with defaults.
func found() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "db", Namespace: "shop", UID: "uid", ResourceVersion: "7", Labels: map[string]string{"app": "db"},
			OwnerReferences: []metav1.OwnerReference{{UID: "owner", Controller: new(true)}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), MinReadySeconds: 0,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				EnableServiceLinks: new(false), RestartPolicy: corev1.RestartPolicyAlways,
				TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, MaxSkew: 1}},
				Tolerations:               []corev1.Toleration{{Key: "databases"}},
				Volumes:                   []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				Containers: []corev1.Container{{
					Name: "database", Image: "redis:8.0", Command: []string{"run", "it"},
					ImagePullPolicy: corev1.PullIfNotPresent, VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
				}},
			}},
		},
	}
}

func TestDriftIs(t *testing.T) {
	container := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }
	for sentence, row := range map[string]struct {
		change func(*appsv1.Deployment)
		want   string
	}{
		"none where everything is said, defaults beside it": {func(*appsv1.Deployment) {}, ""},
		"none where others added labels":                    {func(d *appsv1.Deployment) { d.Labels["team"] = "shop" }, ""},
		"none where others added a container": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "sidecar"}}, d.Spec.Template.Spec.Containers...)
		}, ""},
		"none where others added an owner": {func(d *appsv1.Deployment) {
			d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{UID: "second"})
		}, ""},
		"none where others added a constraint": {func(d *appsv1.Deployment) {
			pod := &d.Spec.Template.Spec
			pod.TopologySpreadConstraints = append([]corev1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway}}, pod.TopologySpreadConstraints...)
		}, ""},
		"a constraint that was changed": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.TopologySpreadConstraints[0].MaxSkew = 2
		}, "spec.template.spec.topologySpreadConstraints[0].maxSkew"},
		"a toleration that was added": {func(d *appsv1.Deployment) {
			pod := &d.Spec.Template.Spec
			pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Key: "more"})
		}, "spec.template.spec.tolerations"},
		"a label that is gone":      {func(d *appsv1.Deployment) { d.Labels = nil }, "metadata.labels"},
		"an owner that is gone":     {func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "other" }, "metadata.ownerReferences[0]"},
		"a number that was changed": {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) }, "spec.replicas"},
		"a number that is gone":     {func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, "spec.replicas"},
		"a false that became true":  {func(d *appsv1.Deployment) { d.Spec.Template.Spec.EnableServiceLinks = new(true) }, "spec.template.spec.enableServiceLinks"},
		"an image":                  {func(d *appsv1.Deployment) { container(d).Image = "nginx" }, "spec.template.spec.containers[0].image"},
		"an argument added to a command": {
			func(d *appsv1.Deployment) { container(d).Command = append(container(d).Command, "now") },
			"spec.template.spec.containers[0].command",
		},
		"arguments in another order": {
			func(d *appsv1.Deployment) { container(d).Command = []string{"it", "run"} },
			"spec.template.spec.containers[0].command[0]",
		},
		"a volume of another kind": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes[0] = corev1.Volume{Name: "other"}
		}, "spec.template.spec.volumes[0]"},
		"a quantity": {
			func(d *appsv1.Deployment) { container(d).Resources.Limits["cpu"] = resource.MustParse("2") },
			"spec.template.spec.containers[0].resources.limits.cpu",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			fields, err := Fields(wanted())
			if err != nil {
				t.Fatal(err)
			}
			object := found()
			row.change(object)
			got, err := Drift(fields, object)
			if got != row.want || err != nil {
				t.Errorf("got %q and %v, want %q", got, err, row.want)
			}
		})
	}
}

func TestTheHashTellsIntentsApart(t *testing.T) {
	hash := func(configuration any) string {
		fields, err := Fields(configuration)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := Hash(fields)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if first, second := hash(wanted()), hash(wanted()); first != second {
		t.Errorf("the same intent has the hashes %s and %s", first, second)
	}
	fewer := wanted()
	fewer.Spec.Replicas = nil
	if hash(wanted()) == hash(fewer) {
		t.Error("an intent that says less has the same hash")
	}
	secret := func(key, value string) any {
		return corev1apply.Secret("s", "shop").WithData(map[string][]byte{key: []byte(value)})
	}
	if hash(secret("password", "one")) != hash(secret("password", "two")) {
		t.Error("the hash of a Secret tells something about its values")
	}
	if hash(secret("password", "one")) == hash(secret("other", "one")) {
		t.Error("the hash of a Secret doesn't tell its keys apart")
	}
}
