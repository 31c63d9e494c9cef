// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func secretNamed(name string, labels map[string]string, password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(noon())},
		Data:       map[string][]byte{PasswordKey: []byte(password)},
	}
}

// newWith is what a database without data recalls, whose data id is this.
func newWith(dataID string) Recorded {
	return Recorded{Topology: TopologyStep{Topology: Topology{State: TopologyNew, Epoch: 1, DataID: dataID}}}
}

func TestWithoutStorageOneMemberDoesntBecomeSeveral(t *testing.T) {
	for sentence, row := range map[string]struct {
		database *snapshotBuilder
		reason   string
	}{
		"where it has a Deployment": {
			aDatabase().ephemeral().replicated(3).with(KindDeployment, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "db", OwnerReferences: ourReference()}}),
			v1alpha1.ReasonInvalidSpec,
		},
		"not, if that is somebody else's": {
			aDatabase().ephemeral().replicated(3).with(KindDeployment, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "db"}}), "",
		},
		"not, if it stays one": {
			aDatabase().ephemeral().with(KindDeployment, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "db", OwnerReferences: ourReference()}}), "",
		},
		"not, where there is storage": {
			aDatabase().replicated(3).with(KindStatefulSet, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", OwnerReferences: ourReference()}}), "",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, problem := row.database.build().Recall(anEngine(), noon()); reasonOf(problem) != row.reason {
				t.Errorf("it is told %v, want %q", problem, row.reason)
			}
		})
	}
}

// ourReference names the database as the controller.
func ourReference() []metav1.OwnerReference {
	return []metav1.OwnerReference{{UID: ourUID, Controller: new(true)}}
}

func (b *snapshotBuilder) replicated(members int32) *snapshotBuilder {
	b.Database.Spec.Replicas = &members
	return b
}

func TestWhatIsRecalled(t *testing.T) {
	ours := retained("redis", "db", "first", "gone")
	for sentence, row := range map[string]struct {
		database *snapshotBuilder
		want     Recorded
		reason   string
	}{
		"nothing, by a new database": {aDatabase(), newWith(string(ourUID)), ""},
		"the data set and the password of what was left behind": {
			aDatabase().with(KindSecret, secretNamed("db-auth", ours, "old")),
			Recorded{Topology: newWith("first").Topology, Auth: Credential{Password: "old"}},
			"",
		},
		"no data set, by a database that keeps nothing": {
			aDatabase().ephemeral().with(KindVolumeClaim, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0", Labels: ours}}),
			newWith(string(ourUID)),
			"",
		},
		"no data set of another engine": {
			aDatabase().with(KindVolumeClaim, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0", Labels: retained("mysql", "db", "d", "x")}}),
			newWith(string(ourUID)),
			"",
		},
		"nothing, where two data sets are mixed": {
			aDatabase().with(KindSecret, secretNamed("db-auth", ours, "old")).
				with(KindVolumeClaim, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0", Labels: retained("redis", "db", "second", "gone")}}),
			Recorded{},
			v1alpha1.ReasonRetainedDataMismatch,
		},
		"the data set of the topology, whatever else there is": {
			aDatabase().withTopology(Topology{State: TopologyNew, Epoch: 4, DataID: "first"}).
				with(KindSecret, secretNamed("db-auth", retained("redis", "db", "second", "gone"), "p")),
			Recorded{Topology: TopologyStep{Version: "7", Topology: Topology{State: TopologyNew, Epoch: 4, DataID: "first"}}, Auth: Credential{Password: "p"}},
			"",
		},
		"nothing, where the topology can't be read": {
			aDatabase().withTopology(Topology{State: "odd", Epoch: 4, DataID: "first"}), Recorded{}, v1alpha1.ReasonTopologyUnreadable,
		},
		"no topology of another engine": {
			func() *snapshotBuilder {
				b := aDatabase().withTopology(Topology{State: TopologyInitialized, Epoch: 4, DataID: "first"})
				b.Objects[Ref{KindConfigMap, "db-topology"}].GetLabels()[v1alpha1.LabelEngine] = "mysql"
				return b
			}(),
			newWith(string(ourUID)), "",
		},
		"nothing, where a Secret has no password": {
			aDatabase().with(KindSecret, secretNamed("db-admin", ours, "")), Recorded{}, v1alpha1.ReasonSecretMissing,
		},
		"the password of a Secret that was just lost, and how old it is": {
			func() *snapshotBuilder {
				b := aDatabase()
				b.LastSeen = map[Ref]metav1.Object{{KindSecret, "db-auth"}: secretNamed("db-auth", ours, "known")}
				return b
			}(),
			Recorded{Topology: newWith(string(ourUID)).Topology, Auth: Credential{Password: "known", IssuedAt: noon().Format(time.RFC3339)}},
			"",
		},
		"the version from the operator's Secret, where the workload is gone": {
			func() *snapshotBuilder {
				secret := secretNamed("db-admin", ours, "p")
				secret.Labels[v1alpha1.LabelDataID] = "first"
				secret.Annotations = map[string]string{v1alpha1.AnnotationResolvedVersion: "7.9", v1alpha1.AnnotationResolvedImage: "redis:7.9"}
				return aDatabase().with(KindSecret, secret)
			}(),
			Recorded{Version: "7.9", Image: "redis:7.9", Topology: newWith("first").Topology, Admin: Credential{Password: "p"}},
			"",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, problem := row.database.build().Recall(anEngine(), noon())
			got.Size, got.Existing, got.Topology.move = 0, 0, move{} // of which other tests are
			if !reflect.DeepEqual(got, row.want) || reasonOf(problem) != row.reason {
				t.Errorf("got %+v and %v, want %+v and %q", got, problem, row.want, row.reason)
			}
		})
	}
}

func TestNoFormattingShowsAPassword(t *testing.T) {
	child := aSecret("db-auth", true).WithPassword("s3cret")
	recorded := Recorded{Auth: Credential{Password: "s3cret"}}
	for _, value := range []any{child, &child, recorded, recorded.Auth, Create{Child: child}, Apply{Child: child}, Adopt{Child: child}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, "s3cret") || strings.Contains(text, "czNjcmV0") {
				t.Errorf("%T with %s shows it: %s", value, verb, text)
			}
		}
	}
}

func FuzzAPasswordStandsInASecretAsItIsAndInAURIEscaped(f *testing.F) {
	for _, seed := range []string{"", "plain", "a b", "p@ss:w/rd?#%", "+", "$(password|uri)", "\x00é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, password string) {
		child := aSecret("db-auth", true)
		child.Template = map[string]string{PasswordKey: PasswordMark, "uri": "redis://app:" + PasswordInURIMark + "@db:6379/0"}
		data := decode(t, child.WithPassword(password))
		if data[PasswordKey] != password {
			t.Errorf("the password became %q", data[PasswordKey])
		}
		checkURI(t, data["uri"], password)
		if child.Fields["data"] != nil {
			t.Error("the child itself was changed")
		}
	})
}

// TestTheUsersOwnSecretGivesThePassword reads it where the spec names one, and
// goes on with the former password where it can't be read.
func TestTheUsersOwnSecretGivesThePassword(t *testing.T) {
	own := func(data map[string][]byte) func(*snapshotBuilder) {
		return func(b *snapshotBuilder) {
			b.Credentials = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Data: data}
		}
	}
	withPassword := func(password string) func(*snapshotBuilder) {
		return own(map[string][]byte{PasswordKey: []byte(password)})
	}
	former := func(b *snapshotBuilder) { b.with(KindSecret, asObject(b.Database, aSecret("db-auth", true))) }
	const refused, aside = "problem", "aside"
	for sentence, row := range map[string]struct {
		changes  []func(*snapshotBuilder)
		password string
		says     string
	}{
		"a new one":                         {[]func(*snapshotBuilder){withPassword("theirs")}, "theirs", ""},
		"another one than before":           {[]func(*snapshotBuilder){former, withPassword("theirs")}, "theirs", ""},
		"of the greatest length":            {[]func(*snapshotBuilder){withPassword(strings.Repeat("p", MaxPassword))}, strings.Repeat("p", MaxPassword), ""},
		"none before it is there":           {nil, "", refused},
		"the former one while it is lost":   {[]func(*snapshotBuilder){former}, "s3cret", aside},
		"the former one while it is empty":  {[]func(*snapshotBuilder){former, withPassword("")}, "s3cret", aside},
		"the former one while it has none":  {[]func(*snapshotBuilder){former, own(nil)}, "s3cret", aside},
		"the former one while it is long":   {[]func(*snapshotBuilder){former, withPassword(strings.Repeat("p", MaxPassword+1))}, "s3cret", aside},
		"the former one while it has a NUL": {[]func(*snapshotBuilder){former, withPassword("a\x00b")}, "s3cret", aside},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := aDatabase()
			b.Database.Spec.Auth = &v1alpha1.AuthSpec{SecretName: "mine"}
			for _, change := range row.changes {
				change(b)
			}
			recorded, problem := b.build().Recall(anEngine(), noon())
			said := ""
			switch {
			case problem != nil:
				said = refused
			case recorded.Aside != nil:
				said, problem = aside, recorded.Aside
			}
			if said != row.says || recorded.Auth.Password != row.password {
				t.Errorf("the password is %q and it says %q (%v); want %q and %q", recorded.Auth.Password, said, problem, row.password, row.says)
			}
			if problem != nil && (problem.Reason != v1alpha1.ReasonSecretMissing || !strings.Contains(problem.Message, "mine")) {
				t.Errorf("it says %+v", problem)
			}
		})
	}
}
