// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"coolops.cn/database-manager/internal/plan"
)

const (
	// container is the name of the one container of a member, whatever the engine.
	container = "database"

	// engineID is the user and group that every upstream image runs its server
	// as, and that owns the files of the data volume.
	engineID int64 = 999

	// preStop is plan.ServesOn in seconds.
	preStop = int64(plan.ServesOn / time.Second)

	// grace is how long a member may take to stop, preStop included.
	grace int64 = 120

	// startupSeconds is how long a member may take to load its data: a day,
	// that is, as long as it takes. Killing a member that loads starts it anew.
	startupSeconds int32 = 86400
)

// podTemplate meets Pod Security "restricted". There is no liveness probe: a
// server that answers late isn't helped by being killed, and the prober of the
// operator says what is wrong.
func (r *rendering) podTemplate() *corev1apply.PodTemplateSpecApplyConfiguration {
	return corev1apply.PodTemplateSpec().
		WithLabels(r.podLabels()).
		WithAnnotations(texts(r.Database.Spec.PodAnnotations)).
		WithSpec(r.podSpec().
			WithAutomountServiceAccountToken(false).
			WithEnableServiceLinks(false).
			WithTerminationGracePeriodSeconds(grace).
			WithSecurityContext(corev1apply.PodSecurityContext().
				WithRunAsNonRoot(true).
				WithRunAsUser(engineID).
				WithRunAsGroup(engineID).
				WithFSGroup(engineID).
				WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
				WithSeccompProfile(corev1apply.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
			WithContainers(r.container()).
			WithVolumes(r.volumes()...))
}

func (r *rendering) container() *corev1apply.ContainerApplyConfiguration {
	return corev1apply.Container().
		WithName(container).
		WithImage(r.image).
		WithCommand(r.Engine.Command()...).
		WithPorts(corev1apply.ContainerPort().
			WithName(string(r.Engine.Type())).
			WithProtocol(corev1.ProtocolTCP).
			WithContainerPort(r.Engine.Port())).
		WithEnv(r.environment()...).
		WithResources(r.resources()).
		WithSecurityContext(corev1apply.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1apply.Capabilities().WithDrop("ALL"))).
		WithLifecycle(corev1apply.Lifecycle().WithPreStop(r.preStop())).
		WithStartupProbe(r.probe().WithPeriodSeconds(1).WithFailureThreshold(startupSeconds)).
		WithReadinessProbe(r.probe().WithPeriodSeconds(5).WithFailureThreshold(2)).
		WithVolumeMounts(
			mount(plan.DataVolume, plan.DataDir),
			mount("boot", plan.BootDir).WithReadOnly(true),
			mount("live", plan.LiveDir).WithReadOnly(true),
			mount("auth", plan.AuthDir).WithReadOnly(true),
			mount("admin", plan.AdminDir).WithReadOnly(true),
			mount("run", plan.RunDir),
			mount("tmp", "/tmp"),
		)
}

// environment is what a boot script is told of the topology, as it is when the
// container starts. Members that have names that stay are told where to find each
// other, too.
func (r *rendering) environment() []*corev1apply.EnvVarApplyConfiguration {
	fromTopology := func(variable, key string) *corev1apply.EnvVarApplyConfiguration {
		return corev1apply.EnvVar().WithName(variable).WithValueFrom(corev1apply.EnvVarSource().
			WithConfigMapKeyRef(corev1apply.ConfigMapKeySelector().
				WithName(plan.TopologyName(r.stem())).
				WithKey(key).
				WithOptional(true)))
	}
	variables := []*corev1apply.EnvVarApplyConfiguration{fromTopology(plan.TopologyStateVariable, plan.TopologyStateKey)}
	if !r.hasStatefulSet() {
		return variables
	}
	return append(variables,
		fromTopology(plan.TopologyPrimaryVariable, plan.TopologyStartsAsPrimaryKey),
		fromTopology(plan.TopologyCloneVariable, plan.TopologyClonesKey),
		corev1apply.EnvVar().WithName(plan.MembersDomainVariable).WithValue(plan.MembersDomain(r.stem(), r.Database.Namespace)))
}

// preStop lets a member go on serving for a while, and then begins the shutdown
// that its engine calls clean. The kubelet runs it; the API's exec isn't used.
func (r *rendering) preStop() *corev1apply.LifecycleHandlerApplyConfiguration {
	stop := r.Engine.Stop()
	if stop == nil {
		return corev1apply.LifecycleHandler().WithSleep(corev1apply.SleepAction().WithSeconds(preStop))
	}
	pause := []string{"/bin/sh", "-c", fmt.Sprintf(`sleep %d; exec "$@"`, preStop), "stop"}
	return corev1apply.LifecycleHandler().WithExec(corev1apply.ExecAction().WithCommand(append(pause, stop...)...))
}

func mount(volume, path string) *corev1apply.VolumeMountApplyConfiguration {
	return corev1apply.VolumeMount().WithName(volume).WithMountPath(path)
}

func (r *rendering) probe() *corev1apply.ProbeApplyConfiguration {
	return corev1apply.Probe().
		WithExec(corev1apply.ExecAction().WithCommand(r.Engine.Probe()...)).
		WithTimeoutSeconds(3)
}

func (r *rendering) resources() *corev1apply.ResourceRequirementsApplyConfiguration {
	required := r.Database.Spec.Resources.ToCore()
	resources := corev1apply.ResourceRequirements()
	if required.Requests != nil {
		resources.WithRequests(required.Requests)
	}
	if required.Limits != nil {
		resources.WithLimits(required.Limits)
	}
	return resources
}

func (r *rendering) volumes() []*corev1apply.VolumeApplyConfiguration {
	volumes := []*corev1apply.VolumeApplyConfiguration{
		corev1apply.Volume().WithName("boot").
			WithConfigMap(corev1apply.ConfigMapVolumeSource().WithName(r.configName)),
		corev1apply.Volume().WithName("live").
			WithConfigMap(corev1apply.ConfigMapVolumeSource().WithName(r.liveName())),
		passwordVolume("auth", r.authSecretName()),
		passwordVolume("admin", r.adminSecretName()),
		corev1apply.Volume().WithName("run").
			WithEmptyDir(corev1apply.EmptyDirVolumeSource().WithMedium(corev1.StorageMediumMemory)),
		emptyVolume("tmp"),
	}
	if r.isDurable() {
		// The data volume comes from the claim template.
		return volumes
	}
	return append(volumes, emptyVolume(plan.DataVolume))
}

// passwordVolume shows a member the password of one Secret, as a file that its
// group alone can read, and none of the other keys.
func passwordVolume(name, secret string) *corev1apply.VolumeApplyConfiguration {
	return corev1apply.Volume().WithName(name).
		WithSecret(corev1apply.SecretVolumeSource().
			WithSecretName(secret).
			WithDefaultMode(0o440).
			WithItems(corev1apply.KeyToPath().WithKey(plan.PasswordKey).WithPath(plan.PasswordKey)))
}

func emptyVolume(name string) *corev1apply.VolumeApplyConfiguration {
	return corev1apply.Volume().WithName(name).WithEmptyDir(corev1apply.EmptyDirVolumeSource())
}
