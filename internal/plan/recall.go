// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Recorded is what the children themselves remember of earlier decisions. It is
// what makes a newer operator, or a restarted one, render the same again.
type Recorded struct {
	// Version and Image are the engine version and upstream image that were
	// resolved last; TemplateVersion is the pod template that was rendered.
	// Empty for a database that has no workload yet.
	Version, Image, TemplateVersion string

	// Defaults are those of the operator's flags that the database was made with.
	Defaults string

	// Topology says where the data are, and what their identity is.
	Topology TopologyStep

	// Size is how many members there are to be for now, Existing how many there are.
	Size, Existing int32

	// ClaimSize is the size of the claims that the workload makes, which can't be
	// changed; empty if there is no workload that makes any.
	ClaimSize string

	// Auth and Admin are the credentials that exist.
	Auth, Admin Credential

	// Aside is what is wrong with them, where there are former ones to go on with;
	// nil if nothing is.
	Aside *Problem
}

// Credential is what is known of one Secret.
type Credential struct {
	// Password is empty if one has yet to be made.
	Password string
	// IssuedAt is, for a Secret that was put back as it had been, when the
	// first of them was made; empty otherwise.
	IssuedAt string
}

// String never shows the password.
func (c Credential) String() string { return "issued at " + c.IssuedAt }

// GoString is String, so that no formatting verb shows the password.
func (c Credential) GoString() string { return c.String() }

// Recall reads from the children what was decided earlier. It fails with a
// Problem if what was left behind contradicts itself or can't be read. What follows
// from it and from what the members say is decided here, too: the topology as it
// is to be, and the roles.
func (s Snapshot) Recall(engine Engine, now time.Time) (Recorded, *Problem) {
	annotations := s.records()
	recorded := Recorded{
		Version:         annotations[v1alpha1.AnnotationResolvedVersion],
		Image:           annotations[v1alpha1.AnnotationResolvedImage],
		TemplateVersion: annotations[v1alpha1.AnnotationTemplateVersion],
		Defaults:        annotations[v1alpha1.AnnotationResolvedDefaults],
	}
	if problem := s.changedShape(); problem != nil {
		return Recorded{}, problem
	}
	topology, problem := s.recallTopology()
	if problem != nil {
		return Recorded{}, problem
	}
	dataID := topology.DataID
	if dataID == "" {
		if dataID, problem = s.recallDataID(); problem != nil {
			return Recorded{}, problem
		}
	}
	recorded.Topology = s.nextTopology(topology, dataID, now)
	recorded.Topology.move = s.move(recorded.Topology.Topology, engine, now)
	if step := &recorded.Topology; step.equal(topology.Topology) {
		// One decision at a time: this one rests on what is recorded.
		step.Topology, step.Stopped = step.move.topology, step.move.stopped
	} else {
		step.move.actions = nil
	}
	recorded.Size, recorded.Existing = s.size(recorded.Topology.Topology, engine), int32(len(s.Members))
	if statefulSet, isStatefulSet := s.Objects[s.workloadRef()].(*appsv1.StatefulSet); isStatefulSet && s.isControlled(statefulSet) {
		if size, isKnown := templateSize(statefulSet); isKnown {
			recorded.ClaimSize = size.String()
		}
	}
	if recorded.Auth, recorded.Aside, problem = s.recallAuth(); problem != nil {
		return Recorded{}, problem
	}
	if recorded.Admin, problem = s.recallCredential(AdminSecretName(s.Database.Spec.DeploymentName)); problem != nil {
		return Recorded{}, problem
	}
	return recorded, nil
}

// records returns the annotations that hold earlier decisions: those of the
// workload, or, where that is gone, of the operator's Secret, which outlives it
// if the data does.
func (s Snapshot) records() map[string]string {
	if workload := s.Objects[s.workloadRef()]; workload != nil && s.isControlled(workload) {
		return workload.GetAnnotations()
	}
	secret := s.Objects[Ref{Kind: KindSecret, Name: AdminSecretName(s.Database.Spec.DeploymentName)}]
	if secret != nil && secret.GetLabels()[v1alpha1.LabelEngine] == string(s.Database.Spec.DBType) {
		return secret.GetAnnotations()
	}
	return nil
}

// AuthSecretName is the name of the Secret with the application's credentials.
func AuthSecretName(stem string) string { return stem + "-auth" }

// AdminSecretName is the name of the Secret with the operator's credentials.
func AdminSecretName(stem string) string { return stem + "-admin" }

// recallDataID returns, for a database without a topology, the data id of its
// own objects; or the one that what a former database left behind agrees on; or
// the database's own UID. Objects of another engine are refused where they would
// be used.
func (s Snapshot) recallDataID() (string, *Problem) {
	if !s.isDurable() {
		return string(s.Database.UID), nil
	}
	own, found := "", map[string]Ref{}
	// In this order, claims come before Secrets, which lag behind where the
	// database began again a moment ago.
	for _, ref := range slices.SortedFunc(maps.Keys(s.Objects), compareRefs) {
		labels := s.Objects[ref].GetLabels()
		isRetained := ref.Kind == KindVolumeClaim || ref.Kind == KindSecret
		id := labels[v1alpha1.LabelDataID]
		if !isRetained || id == "" || labels[v1alpha1.LabelEngine] != string(s.Database.Spec.DBType) {
			continue
		}
		if labels[v1alpha1.LabelOwnerUID] == string(s.Database.UID) {
			own = cmp.Or(own, id)
		} else if _, isKnown := found[id]; !isKnown {
			found[id] = ref
		}
	}
	switch {
	case own != "":
		return own, nil
	case len(found) == 0:
		return string(s.Database.UID), nil
	case len(found) == 1:
		return slices.Collect(maps.Keys(found))[0], nil
	default:
		return "", disagreement(found)
	}
}

func compareRefs(a, b Ref) int {
	return strings.Compare(a.String(), b.String())
}

func disagreement(found map[string]Ref) *Problem {
	parts := make([]string, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		parts = append(parts, fmt.Sprintf("%s (data set %s)", found[id], id))
	}
	return &Problem{
		Reason: v1alpha1.ReasonRetainedDataMismatch,
		Message: fmt.Sprintf("what was left behind doesn't belong together: %s; all of it was left as it is. Either create a DatabaseManager "+
			"with another spec.deploymentName, or delete what nobody needs.", strings.Join(parts, ", ")),
		Retry: foreignRetry,
	}
}

// recallAuth returns the application's credential: that of the user's own Secret
// where the spec names one. If that can't be had, nothing changes: the former
// password stays, if there is one, and what is wrong is said beside.
func (s Snapshot) recallAuth() (Credential, *Problem, *Problem) {
	name := AuthSecretName(s.Database.Spec.DeploymentName)
	former, problem := s.recallCredential(name)
	if s.Database.Spec.Auth == nil {
		return former, nil, problem
	}
	password, missing := s.ownPassword()
	switch {
	case missing == nil:
		former.Password = password
		return former, nil, nil
	case problem == nil && former.Password != "":
		missing.IsAside = true
		return former, missing, nil
	default:
		return Credential{}, nil, missing
	}
}

// ownPassword returns the password in the Secret that spec.auth names.
func (s Snapshot) ownPassword() (string, *Problem) {
	name := s.Database.Spec.Auth.SecretName
	if s.Credentials == nil {
		return "", &Problem{
			Reason: v1alpha1.ReasonSecretMissing,
			Message: fmt.Sprintf("Secret %s, which spec.auth.secretName names, isn't there; nothing was changed. Make it, with the label %s=%s and "+
				"the password under the key %q, or take spec.auth out.", name, v1alpha1.LabelCredentials, v1alpha1.CredentialsValue, PasswordKey),
			Retry: foreignRetry,
		}
	}
	password := string(s.Credentials.Data[PasswordKey])
	if !isPassword(password) {
		return "", &Problem{
			Reason: v1alpha1.ReasonSecretMissing,
			Message: fmt.Sprintf("Secret %s has, under the key %q, no password of 1 to %d bytes without a zero byte, but %d bytes; nothing was changed. "+
				"Write the password there.", name, PasswordKey, MaxPassword, len(password)),
		}
	}
	return password, nil
}

// MaxPassword is the greatest length of a password, in bytes, that every engine
// takes.
const MaxPassword = 200

// isPassword tells whether every engine could take it for a password.
func isPassword(text string) bool {
	return text != "" && len(text) <= MaxPassword && !strings.Contains(text, "\x00")
}

// recallCredential returns what the Secret holds, or, where it was lost a
// moment ago, what it held.
func (s Snapshot) recallCredential(name string) (Credential, *Problem) {
	secret, isSecret := s.Objects[Ref{Kind: KindSecret, Name: name}].(*corev1.Secret)
	if !isSecret {
		return s.recallLost(name), nil
	}
	password := string(secret.Data[PasswordKey])
	if !isPassword(password) {
		return Credential{}, &Problem{
			Reason: v1alpha1.ReasonSecretMissing,
			Message: fmt.Sprintf("Secret %s has, under the key %q, no password of 1 to %d bytes without a zero byte, but %d bytes; nothing was changed. "+
				"Put the password back, or delete the Secret: then a new password is made, and becomes the database's.", name, PasswordKey, MaxPassword, len(password)),
		}
	}
	return Credential{Password: password, IssuedAt: secret.Annotations[v1alpha1.AnnotationIssuedAt]}, nil
}

func (s Snapshot) recallLost(name string) Credential {
	lost, isKnown := s.LastSeen[Ref{Kind: KindSecret, Name: name}].(*corev1.Secret)
	if !isKnown || len(lost.Data[PasswordKey]) == 0 {
		return Credential{}
	}
	return Credential{Password: string(lost.Data[PasswordKey]), IssuedAt: issuedAt(lost).UTC().Format(time.RFC3339)}
}

// issuedAt is when the password in a Secret was made, by the API server's
// clock: when the Secret was created, unless it was put back as it had been.
func issuedAt(secret metav1.Object) time.Time {
	if recorded, err := time.Parse(time.RFC3339, secret.GetAnnotations()[v1alpha1.AnnotationIssuedAt]); err == nil {
		return recorded
	}
	return secret.GetCreationTimestamp().Time
}
