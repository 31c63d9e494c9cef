// SPDX-License-Identifier: Apache-2.0

package player

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	// step is how often a pod that waits for something looks for it.
	step = 20 * time.Millisecond
	// backoff is how long a container that ended waits for its next start, doubled
	// each time up to maxBackoff.
	backoff    = 100 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// pod is a pod of a node that is played.
type pod struct {
	player  *Player
	object  *corev1.Pod // as it was first seen
	address string

	cancel context.CancelFunc
	// leaving is closed once it is being deleted, killed gets a value for each time
	// that its server is to be killed.
	leaving chan struct{}
	leave   sync.Once
	killed  chan struct{}

	restarts int32
	last     *corev1.ContainerState
}

// seePod plays a pod from its first sight to its end.
func (p *Player) seePod(object any, isGone bool) {
	seen, isPod := object.(*corev1.Pod)
	if !isPod {
		return
	}
	if runsHere := p.nodes[seen.Spec.NodeName]; !runsHere && (!p.options.ServesOthers || !runsElsewhere(seen)) {
		return
	}
	p.mu.Lock()
	known := p.pods[seen.UID]
	switch {
	case isGone && known != nil:
		delete(p.pods, seen.UID)
	case !isGone && known == nil && !plan.HasEnded(seen):
		known = &pod{player: p, object: seen, leaving: make(chan struct{}), killed: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(p.ctx)
		known.cancel = cancel
		p.pods[seen.UID] = known
		play := known.play
		if !p.nodes[seen.Spec.NodeName] {
			play = known.serve
		}
		p.wait.Go(func() { play(ctx) })
	}
	p.mu.Unlock()
	if known != nil && (isGone || seen.DeletionTimestamp != nil) {
		known.leave.Do(func() { close(known.leaving) })
	}
	if known != nil && isGone {
		known.cancel()
	}
}

// runsElsewhere tells whether a database server runs in a pod, going by its status,
// or did. Until then the pod isn't known.
func runsElsewhere(seen *corev1.Pod) bool {
	return isDatabase(seen) && seen.Status.PodIP != "" && len(seen.Status.ContainerStatuses) > 0 && seen.Status.ContainerStatuses[0].State.Running != nil
}

// Kill ends the server in a pod, as kill -9 does; its container starts again.
func (p *Player) Kill(namespace, name string) error {
	found, err := p.find(namespace, name)
	if err == nil {
		found.killed <- struct{}{}
	}
	return err
}

func (p *Player) find(namespace, name string) (*pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.pods {
		if one.object.Namespace == namespace && one.object.Name == name {
			return one, nil
		}
	}
	return nil, fmt.Errorf("no pod %s/%s runs here", namespace, name)
}

// isDatabase tells whether a database server is to run in the pod.
func isDatabase(pod *corev1.Pod) bool {
	return pod.Labels[v1alpha1.LabelComponent] == v1alpha1.ComponentDatabase && len(pod.Spec.Containers[0].Ports) > 0
}

// play runs the pod's container again and again, until the pod is deleted. What isn't
// a database never starts, unless the player runs all.
func (p *pod) play(ctx context.Context) {
	if !isDatabase(p.object) {
		if p.player.options.RunsAll {
			p.address = p.player.address()
			p.report(ctx, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}, true)
		}
		select {
		case <-ctx.Done():
		case <-p.leaving:
			p.remove(ctx)
		}
		return
	}
	holder, isThere := p.awaitVolume(ctx)
	if !isThere {
		p.remove(ctx)
		return
	}
	p.address = p.player.address()
	defer p.player.servers.forget(p.address)
	wait := backoff
	for {
		told, err := p.boot(ctx, holder)
		switch {
		case err != nil:
			p.report(ctx, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: err.Error()}}, false)
		case p.run(ctx, told):
			p.remove(ctx)
			return
		default:
			p.restarts++
			p.report(ctx, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, false)
		}
		if !p.sleep(ctx, wait) {
			p.remove(ctx)
			return
		}
		wait = min(2*wait, maxBackoff)
	}
}

// serve lets the server run in a pod that something else runs, at the pod's address,
// until the pod is deleted. What there is to say of it only the server says.
func (p *pod) serve(ctx context.Context) {
	holder, isThere := p.awaitVolume(ctx)
	if !isThere {
		return
	}
	p.address = p.object.Status.PodIP
	servers := p.player.servers
	defer servers.forget(p.address)
	wait := backoff
	for {
		told, err := p.boot(ctx, holder)
		if err == nil && servers.start(p.object, p.address, told) == nil {
			select {
			case <-ctx.Done():
				return
			case <-p.leaving:
				select {
				case <-ctx.Done():
				case <-time.After(ServesOn):
				}
				return
			case <-p.killed:
				servers.end(p.address)
			}
		}
		if !p.sleep(ctx, wait) {
			return
		}
		wait = min(2*wait, maxBackoff)
	}
}

// sleep tells whether the pod still runs after a time.
func (p *pod) sleep(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-p.leaving:
		return false
	case <-time.After(wait):
		return true
	}
}

// awaitVolume waits until the pod's claims are bound. It returns the identity of
// what holds the data: the claim, or the pod itself.
func (p *pod) awaitVolume(ctx context.Context) (holder string, isThere bool) {
	for {
		holder, isBound := string(p.object.UID), true
		for _, volume := range p.object.Spec.Volumes {
			if volume.PersistentVolumeClaim == nil {
				continue
			}
			found, exists, err := p.player.claims.GetByKey(p.object.Namespace + "/" + volume.PersistentVolumeClaim.ClaimName)
			claim, isClaim := found.(*corev1.PersistentVolumeClaim)
			isBound = err == nil && exists && isClaim && claim.Status.Phase == corev1.ClaimBound
			if isBound {
				holder = string(claim.UID)
			}
		}
		if isBound {
			return holder, true
		}
		if !p.sleep(ctx, step) {
			return "", false
		}
	}
}

// boot reads what the container is started with.
func (p *pod) boot(ctx context.Context, holder string) (boot, error) {
	container := p.object.Spec.Containers[0]
	_, version, _ := strings.Cut(container.Image, ":")
	told := boot{
		engine: container.Ports[0].Name, version: version + ".1", holder: holder,
		variable: map[string]string{}, settings: plan.Settings{},
	}
	core := p.player.kube.CoreV1()
	for _, variable := range container.Env {
		told.variable[variable.Name] = variable.Value
		if variable.ValueFrom == nil || variable.ValueFrom.ConfigMapKeyRef == nil {
			continue
		}
		from := variable.ValueFrom.ConfigMapKeyRef
		found, err := core.ConfigMaps(p.object.Namespace).Get(ctx, from.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return boot{}, err
		default:
			told.variable[variable.Name] = found.Data[from.Key]
		}
	}
	for _, volume := range p.object.Spec.Volumes {
		if secret := volume.Secret; secret != nil {
			found, err := core.Secrets(p.object.Namespace).Get(ctx, secret.SecretName, metav1.GetOptions{})
			if err != nil {
				return boot{}, err
			}
			password := string(found.Data[plan.PasswordKey])
			if volume.Name == "admin" {
				told.adminPassword = password
			} else {
				told.appPassword = password
			}
		}
		if files := volume.ConfigMap; files != nil {
			found, err := core.ConfigMaps(p.object.Namespace).Get(ctx, files.Name, metav1.GetOptions{})
			if err != nil {
				return boot{}, err
			}
			if volume.Name == "live" {
				told.read(found.Data)
			}
		}
	}
	return told, nil
}

// read takes the live parameters from their files. Each engine has a form of its
// own: name and value are parted by a blank or an equals sign.
func (b *boot) read(files map[string]string) {
	for _, file := range files {
		for line := range strings.Lines(file) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if before, after, isOption := strings.Cut(name, "="); isOption {
				name, value = before, after+value
			}
			value = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(value), "="))
			if len(value) > 1 && (value[0] == '\'' || value[0] == '"') {
				value = value[1 : len(value)-1]
			}
			b.settings[strings.ReplaceAll(name, "-", "_")] = value
			b.settings[name] = value
		}
	}
}

// run starts the server, and says how it is until it has ended; true if the pod
// ends with it.
func (p *pod) run(ctx context.Context, told boot) (isOver bool) {
	servers, began := p.player.servers, metav1.Now()
	if failed := servers.start(p.object, p.address, told); failed != nil {
		p.ended(began, failed.code, failed.message)
		return false
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
	isReady, turns := servers.isUp(p.address), servers.turns(p.address)
	p.report(ctx, running, isReady)
	for {
		select {
		case <-ctx.Done():
			return true
		case <-p.killed:
			servers.end(p.address)
			p.ended(began, 137, "")
			return false
		case <-p.leaving:
			select {
			case <-ctx.Done():
			case <-time.After(ServesOn):
			}
			servers.end(p.address)
			p.ended(began, 0, "")
			return true
		case <-turns:
			if isUp := servers.isUp(p.address); isUp != isReady {
				isReady = isUp
				p.report(ctx, running, isUp)
			}
		}
	}
}

func (p *pod) ended(began metav1.Time, code int32, message string) {
	p.last = &corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Message: message, Reason: map[bool]string{true: "Completed", false: "Error"}[code == 0],
		StartedAt: began, FinishedAt: metav1.Now(), ContainerID: p.containerID(),
	}}
}

func (p *pod) containerID() string { return fmt.Sprintf("played://%s-%d", p.object.UID, p.restarts) }

// report says how the container is.
func (p *pod) report(ctx context.Context, state corev1.ContainerState, isReady bool) {
	container := p.object.Spec.Containers[0]
	status := corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, ImageID: container.Image, State: state, Ready: isReady, Started: &isReady,
		RestartCount: p.restarts, ContainerID: p.containerID(),
	}
	if p.last != nil {
		status.LastTerminationState = *p.last
	}
	now := metav1.Now()
	var conditions []corev1.PodCondition
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.PodReadyToStartContainers, corev1.ContainersReady, corev1.PodReady} {
		is := corev1.ConditionTrue
		if !isReady && (kind == corev1.PodReady || kind == corev1.ContainersReady) {
			is = corev1.ConditionFalse
		}
		conditions = append(conditions, corev1.PodCondition{Type: kind, Status: is, LastTransitionTime: now, ObservedGeneration: p.object.Generation})
	}
	phase := corev1.PodRunning
	if state.Running == nil && p.last == nil {
		phase = corev1.PodPending
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.object.UID},
		"status": map[string]any{
			"phase": phase, "podIP": p.address, "podIPs": []corev1.PodIP{{IP: p.address}}, "startTime": cmp.Or(p.object.Status.StartTime, &now),
			"conditions": conditions, "containerStatuses": []corev1.ContainerStatus{status},
		},
	})
	if err != nil {
		panic(err) // what a status is made of can always be written
	}
	for {
		_, err := p.player.kube.CoreV1().Pods(p.object.Namespace).Patch(ctx, p.object.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil {
			return // what is gone needs no status
		}
		if !p.sleep(ctx, step) {
			return
		}
	}
}

// remove has the API server forget a pod that is being deleted.
func (p *pod) remove(ctx context.Context) {
	for ctx.Err() == nil {
		err := p.player.kube.CoreV1().Pods(p.object.Namespace).Delete(ctx, p.object.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(p.object.UID)),
		})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(step):
		}
	}
}
