// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

// engine is a database engine that never changes, so that the golden files
// change only with what is rendered.
type engine struct{}

func (engine) Type() v1alpha1.DatabaseType { return "redis" }
func (engine) DefaultVersion() string      { return "2.0" }
func (engine) Versions() []string          { return []string{"1.0", "2.0"} }
func (engine) Port() int32                 { return 1234 }
func (engine) Command() []string           { return []string{"/bin/sh", "/boot/boot.sh"} }
func (engine) Probe() []string             { return []string{"ping"} }
func (engine) Username() string            { return "app" }
func (engine) AdminUsername() string       { return "operator" }
func (engine) Database() string            { return "0" }

func (engine) Image(version string) (string, bool) {
	return "redis:" + version, version == "1.0" || version == "2.0"
}

func (engine) Parameters() []plan.Parameter {
	number := plan.Values{Allowed: "a digit", Read: func(value string) (string, bool) {
		return value, len(value) == 1 && value >= "0" && value <= "9"
	}}
	return []plan.Parameter{
		{Name: "databases", Default: "1", Values: number},
		{Name: "timeout", IsLive: true, Default: "0", Values: number},
	}
}

func (engine) LiveFiles(live plan.Settings) map[string]string {
	return map[string]string{"live.conf": live.String()}
}

func (engine) Files(fixed plan.Settings) map[string]string {
	return map[string]string{"boot.sh": "exec redis\n", "redis.conf": "keep\n" + fixed.String()}
}

func (engine) Stop() []string { return nil }

func (engine) Compare(string, string) plan.Order { return plan.OrderUnknown }
func (engine) MostAcknowledgements() int         { return 1 }
func (engine) Acknowledging() plan.Acknowledging { return plan.ByReplica }
func (engine) DemotesAtStart() bool              { return false }
func (engine) CopiesAccounts() bool              { return true }

func (engine) URI(host, username, password string) string {
	return "redis://" + username + ":" + password + "@" + host + ":1234/0"
}

// anInput is the input for a database without storage, changed by the options.
func anInput(options ...func(*Input)) Input {
	in := Input{
		Database: &v1alpha1.DatabaseManager{
			ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop", UID: "uid-of-orders"},
			Spec:       v1alpha1.DatabaseManagerSpec{DeploymentName: "db", DBType: "redis"},
		},
		Engine:   engine{},
		Recorded: plan.Recorded{Topology: plan.TopologyStep{Topology: plan.Topology{State: plan.TopologyNew, Epoch: 1, DataID: "data"}}},
	}
	for _, option := range options {
		option(&in)
	}
	return in
}

func withStorage(in *Input) {
	in.Database.Spec.Storage = &v1alpha1.StorageSpec{Size: resource.MustParse("10Gi"), StorageClassName: new("fast")}
}

func withData(in *Input) {
	in.Recorded.Topology.Topology = plan.Topology{State: plan.TopologyInitialized, Epoch: 2, DataID: "data", Primary: "db-0", Holder: "uid-of-holder"}
}

func withDeletion(in *Input) {
	in.Database.Spec.Storage.Retention = &v1alpha1.StorageRetention{WhenDeleted: v1alpha1.RetentionPolicyDelete}
}

func withEverything(in *Input) {
	in.OperatorNamespace = "database-manager-system"
	in.Database.Spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{From: []v1alpha1.NetworkPolicyPeer{
		{NamespaceSelector: &v1alpha1.LabelsSelector{}, PodSelector: &v1alpha1.LabelsSelector{MatchLabels: map[string]v1alpha1.LabelValue{"app": "shop"}}},
		{IPBlock: &v1alpha1.IPBlock{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.128/25"}}},
	}}
	in.Database.Spec.Version = "1.0"
	in.Database.Spec.Image = "registry.example/redis:1.0"
	in.Database.Spec.Resources = &v1alpha1.ResourceRequirements{
		Requests: &v1alpha1.ResourceAmounts{CPU: new(resource.MustParse("500m")), Memory: new(resource.MustParse("1Gi"))},
		Limits:   &v1alpha1.ResourceAmounts{Memory: new(resource.MustParse("2Gi")), EphemeralStorage: new(resource.MustParse("1Gi"))},
	}
	in.Recorded.Auth = plan.Credential{Password: "p@ss", IssuedAt: "2026-01-01T12:00:00Z"}
	in.Recorded.Admin = plan.Credential{Password: "admin"}
}

func TestWhatIsRenderedIsInTestdata(t *testing.T) {
	for name, in := range map[string]Input{
		"ephemeral.yaml":          anInput(),
		"durable.yaml":            anInput(withStorage),
		"ephemeral-with-all.yaml": anInput(withEverything, withData),
		"durable-with-all.yaml":   anInput(withStorage, withEverything, withData, withDeletion),
	} {
		t.Run(name, func(t *testing.T) {
			in.Recorded.TemplateVersion = "1"
			desired, problem := Render(in)
			if problem != nil {
				t.Fatal(problem)
			}
			compareWithGolden(t, filepath.Join("testdata", name), manifests(t, desired))
		})
	}
}

// manifests are the children as YAML, in the order in which they are made.
func manifests(t *testing.T, desired plan.Desired) string {
	t.Helper()
	var text strings.Builder
	for _, child := range append(append([]plan.Child{desired.Stem}, desired.Children...), desired.Claims...) {
		rendered, err := yaml.Marshal(child.Fields)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(rendered))
	}
	return text.String()
}

func compareWithGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update renews it; a change to the pod template restarts every database):\n%s", path, got)
	}
}

func TestAVersionOnceResolvedStays(t *testing.T) {
	for sentence, row := range map[string]struct {
		spec, image     string
		recorded        plan.Recorded
		wantImage       string
		wantResolved    string
		wantRememberedI string
	}{
		"the default, for a new database": {"", "", plan.Recorded{}, "redis:2.0", "2.0", "redis:2.0"},
		"what was resolved, under a newer default": {
			"", "",
			plan.Recorded{Version: "1.0", Image: "redis:1.0.7"},
			"redis:1.0.7", "1.0", "redis:1.0.7",
		},
		"the same version asked for changes no image": {
			"1.0", "",
			plan.Recorded{Version: "1.0", Image: "redis:1.0.7"},
			"redis:1.0.7", "1.0", "redis:1.0.7",
		},
		"another version": {"2.0", "", plan.Recorded{Version: "1.0", Image: "redis:1.0.7"}, "redis:2.0", "2.0", "redis:2.0"},
		"a version that is no longer known, while nobody changes it": {
			"", "",
			plan.Recorded{Version: "0.9", Image: "redis:0.9"},
			"redis:0.9", "0.9", "redis:0.9",
		},
		"an image of one's own isn't remembered":     {"", "own:1", plan.Recorded{Version: "1.0", Image: "redis:1.0.7"}, "own:1", "1.0", ""},
		"the upstream image, once one's own is gone": {"", "", plan.Recorded{Version: "1.0"}, "redis:1.0", "1.0", "redis:1.0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := anInput()
			in.Database.Spec.Version, in.Database.Spec.Image, in.Recorded = row.spec, row.image, row.recorded
			r, problem := resolve(in)
			if problem != nil {
				t.Fatal(problem)
			}
			if r.image != row.wantImage || r.version != row.wantResolved || r.resolvedImage != row.wantRememberedI {
				t.Errorf("got image %s, version %s, remembered %q; want %s, %s, %q", r.image, r.version, r.resolvedImage, row.wantImage, row.wantResolved, row.wantRememberedI)
			}
		})
	}
}

func TestWhatCantBeRenderedIsAProblemAndNeverAPanic(t *testing.T) {
	for sentence, row := range map[string]struct {
		change func(*Input)
		reason string
	}{
		"a name that is too long": {func(in *Input) { in.Database.Spec.DeploymentName = strings.Repeat("a", 41) }, v1alpha1.ReasonInvalidSpec},
		"no name":                 {func(in *Input) { in.Database.Spec.DeploymentName = "" }, v1alpha1.ReasonInvalidSpec},
		"a name that is none":     {func(in *Input) { in.Database.Spec.DeploymentName = "Ünfit/../" }, v1alpha1.ReasonInvalidSpec},
		"an unknown version":      {func(in *Input) { in.Database.Spec.Version = "3.0" }, v1alpha1.ReasonInvalidSpec},
		"a newer operator's form": {func(in *Input) { in.Recorded.TemplateVersion = "999" }, v1alpha1.ReasonTemplateUnknown},
	} {
		t.Run(sentence, func(t *testing.T) {
			desired, problem := Render(anInput(row.change))
			if problem == nil || problem.Reason != row.reason || len(desired.Children) > 0 {
				t.Errorf("got %v and %v, want nothing and %s", desired, problem, row.reason)
			}
		})
	}
}

func FuzzRenderingIsDeterministicAndKeepsPasswordsToSecrets(f *testing.F) {
	f.Add("db", "", "", "password-1", true)
	f.Add("a-long-name-with-hyphens", "1.0", "own:1", `"'\$()`, false)
	f.Add("-", "x", "\x00", "", true)
	f.Fuzz(func(t *testing.T, stem, version, image, password string, durable bool) {
		// Otherwise it may be a word that stands there anyway.
		password = "unmistakable" + password
		in := anInput(func(in *Input) {
			in.Database.Spec.DeploymentName, in.Database.Spec.Version, in.Database.Spec.Image = stem, version, image
			in.Recorded.Auth.Password, in.Recorded.Admin.Password = password, password
			if durable {
				withStorage(in)
			}
		})
		first, problem := Render(in)
		second, again := Render(in)
		if (problem == nil) != (again == nil) {
			t.Fatalf("once %v, once %v", problem, again)
		}
		if problem != nil {
			return
		}
		if a, b := encode(t, first), encode(t, second); a != b {
			t.Fatalf("two renderings differ:\n%s\n%s", a, b)
		}
		checkChildren(t, first, password)
	})
}

func encode(t *testing.T, desired plan.Desired) string {
	t.Helper()
	fields := []map[string]any{desired.Stem.Fields}
	for _, child := range desired.Children {
		fields = append(fields, child.Fields)
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// checkChildren checks what holds for the children of any database.
func checkChildren(t *testing.T, desired plan.Desired, password string) {
	t.Helper()
	for _, child := range append([]plan.Child{desired.Stem}, desired.Children...) {
		if len(child.Name) > 63 {
			t.Errorf("the name of %s has %d characters", child, len(child.Name))
		}
		encoded, err := json.Marshal(child.Fields)
		if err != nil {
			t.Fatal(err)
		}
		if child.Kind != plan.KindSecret && strings.Contains(string(encoded), password) {
			t.Errorf("%s holds the password", child)
		}
		if child.Hash == "" {
			t.Errorf("%s has no hash", child)
		}
	}
}

func TestTheHashOfASecretDoesntDependOnItsPassword(t *testing.T) {
	hashes := map[string]bool{}
	for _, password := range []string{"", "one", "another"} {
		desired, problem := Render(anInput(withStorage, func(in *Input) { in.Recorded.Auth.Password = password }))
		if problem != nil {
			t.Fatal(problem)
		}
		hashes[desired.Children[0].Hash] = true
	}
	if len(hashes) != 1 {
		t.Errorf("hashes are %v, want one", hashes)
	}
}

// A Deployment's pod that is going exists beside the one that takes its place: that
// makes no second member of it.
func TestWhatOnlySeveralMembersHaveIsntMadeForOneThatIsReplaced(t *testing.T) {
	for sentence, row := range map[string]struct {
		change func(*Input)
		want   bool
	}{
		"one member without storage, and one that goes":      {func(in *Input) { in.Recorded.Existing = 2 }, false},
		"several members without storage":                    {func(in *Input) { in.Database.Spec.Replicas = new(int32(3)) }, true},
		"one with storage, and one that isn't wanted longer": {func(in *Input) { withStorage(in); in.Recorded.Existing = 2 }, true},
		"one with storage":                                   {withStorage, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			desired, problem := Render(anInput(row.change))
			if problem != nil {
				t.Fatal(problem)
			}
			for ref, has := range map[plan.Ref]bool{{Kind: plan.KindService, Name: "db-ro"}: false, {Kind: plan.KindDisruptionBudget, Name: "db"}: false} {
				for _, child := range desired.Children {
					has = has || child.Ref == ref
				}
				if has != row.want {
					t.Errorf("%s is rendered: %t", ref, has)
				}
			}
		})
	}
}
