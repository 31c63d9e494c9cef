// SPDX-License-Identifier: Apache-2.0

// Package objects renders the spec of a database to its children, as apply
// configurations: exactly the fields that we own. Everything here is pure; the
// same input gives the same bytes, also in a newer operator, which golden files
// hold it to.
package objects

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"coolops.cn/database-manager/internal/intent"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Input is what a rendering depends on, and all that it depends on.
type Input struct {
	// Database is the resource; it isn't changed.
	Database *v1alpha1.DatabaseManager
	// Engine is the one that spec.dbtype names.
	Engine plan.Engine
	// OperatorNamespace is where the operator's pods run; empty if it runs outside
	// of the cluster.
	OperatorNamespace string
	// Defaults are the operator's, for what the spec leaves out; what the children
	// recorded of them wins.
	Defaults Defaults
	// Recorded is what the children remember of earlier renderings.
	Recorded plan.Recorded
}

// rendering is an Input with all that follows from it at once.
type rendering struct {
	Input
	// version is the resolved engine version, image what a member runs.
	version, image string
	// resolvedImage is the upstream image to be remembered; empty if spec.image
	// overrides it.
	resolvedImage string
	// template is the form of the pod template.
	template template
	// defaults are those that count for this database, recordedDefaults the same
	// as they are remembered.
	defaults         Defaults
	recordedDefaults string
	// files are the engine's files, in the ConfigMap of this name.
	files      map[string]string
	configName string
	// liveFiles set the parameters that a running server takes, which are live.
	liveFiles map[string]string
	live      plan.Settings
	// parameters are those that the spec sets, ordered by name.
	parameters []plan.Parameter
}

// Render returns the children that the spec asks for, or the Problem that
// keeps it from being rendered, in which case nothing is to be changed.
func Render(in Input) (plan.Desired, *plan.Problem) {
	r, problem := resolve(in)
	if problem != nil {
		return plan.Desired{}, problem
	}
	children, err := r.children()
	if err != nil {
		return plan.Desired{}, &plan.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
	}
	claims, err := r.claims()
	if err != nil {
		return plan.Desired{}, &plan.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
	}
	return plan.Desired{
		Stem:     children[0],
		Children: children[1:],
		Claims:   claims,
		Topology: in.Recorded.Topology,
		Members:  r.members(),

		CopiesAccounts: r.Engine.CopiesAccounts(),

		Live:       r.live,
		ConfigName: r.configName,
		Parameters: r.parameters,
		Aside:      in.Recorded.Aside,
	}, nil
}

// resolve checks what the schema can't, and what an object that was stored
// under an older schema may still hold, and settles what has a default.
func resolve(in Input) (rendering, *plan.Problem) {
	spec := in.Database.Spec
	if problems := validation.IsDNS1035Label(spec.DeploymentName); len(problems) > 0 || len(spec.DeploymentName) > v1alpha1.MaxStemLength {
		return rendering{}, invalid("spec.deploymentName is %q; allowed is a DNS label of at most %d characters: create a DatabaseManager with another name",
			spec.DeploymentName, v1alpha1.MaxStemLength)
	}
	if problem := checkKeys(spec); problem != nil {
		return rendering{}, problem
	}
	r := rendering{Input: in}
	for _, settle := range []func() *plan.Problem{r.resolveTemplate, r.resolveConfig, r.resolveDefaults, r.resolveImage} {
		if problem := settle(); problem != nil {
			return rendering{}, problem
		}
	}
	return r, nil
}

// resolveConfig settles the parameters: what the spec sets, by the engine's list
// of those that it may set, and the defaults.
func (r *rendering) resolveConfig() *plan.Problem {
	known := r.Engine.Parameters()
	fixed := plan.Settings{}
	r.live = plan.LiveDefaults(known)
	config := r.Database.Spec.Config
	for _, name := range slices.Sorted(maps.Keys(config)) {
		parameter, exists := plan.FindParameter(known, name)
		if !exists {
			return invalid("spec.config has %q, which isn't a parameter of %s that may be set: take it out. Those that may be set are %s",
				name, r.Engine.Type(), names(known))
		}
		value, isAllowed := parameter.Read(string(config[name]))
		if !isAllowed {
			return invalid("spec.config.%s is %q; allowed is %s: correct it, or take it out for the default, %s",
				name, config[name], parameter.Allowed, parameter.Default)
		}
		if parameter.IsLive {
			r.live[name] = value
		} else {
			fixed[name] = value
		}
		r.parameters = append(r.parameters, parameter)
	}
	r.files, r.liveFiles = r.template.files(r.Engine, fixed), r.Engine.LiveFiles(r.live)
	r.configName = configMapName(r.stem(), r.files)
	return nil
}

func names(parameters []plan.Parameter) string {
	known := make([]string, 0, len(parameters))
	for _, parameter := range parameters {
		known = append(known, parameter.Name)
	}
	return strings.Join(known, ", ")
}

// resolveImage settles the version and the image. A default, once resolved,
// stays until the spec names a version; so does the image of a version, until
// the version changes.
func (r *rendering) resolveImage() *plan.Problem {
	spec := r.Database.Spec
	r.version = first(spec.Version, r.Recorded.Version, r.Engine.DefaultVersion())
	if spec.Image != "" {
		r.image = spec.Image
		return nil
	}
	if r.version == r.Recorded.Version && r.Recorded.Image != "" {
		r.image, r.resolvedImage = r.Recorded.Image, r.Recorded.Image
		return nil
	}
	image, isKnown := r.Engine.Image(r.version)
	if !isKnown {
		return invalid("spec.version is %q; known versions of %s are %s: set one of them, or set spec.image to an image of that version",
			r.version, r.Engine.Type(), strings.Join(r.Engine.Versions(), ", "))
	}
	image = inRegistry(r.defaults.Registry, image)
	r.image, r.resolvedImage = image, image
	return nil
}

func invalid(format string, args ...any) *plan.Problem {
	return &plan.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(format, args...)}
}

// first returns the first of values that isn't empty.
func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// children returns every child, in the order in which they are made: the one
// that claims the stem first, the workload last.
func (r *rendering) children() ([]plan.Child, error) {
	parts := []struct {
		kind          plan.Kind
		name          string
		configuration any
		isRetained    bool
		template      map[string]string
		password      string
	}{
		{plan.KindService, r.membersServiceName(), r.membersService(), false, nil, ""},
		{plan.KindSecret, r.authSecretName(), r.authSecret(), r.isDurable(), r.authData(), r.Recorded.Auth.Password},
		{plan.KindSecret, r.adminSecretName(), r.adminSecret(), r.isDurable(), r.adminData(), r.Recorded.Admin.Password},
		{plan.KindConfigMap, plan.TopologyName(r.stem()), r.topology(), r.isDurable(), nil, ""},
		{plan.KindConfigMap, r.configName, r.configMap(), false, nil, ""},
		{plan.KindConfigMap, r.liveName(), r.liveConfigMap(), false, nil, ""},
		{plan.KindService, r.stem(), r.service(), false, nil, ""},
		{plan.KindService, r.readOnlyServiceName(), r.readOnlyService(), false, nil, ""},
		{plan.KindDisruptionBudget, r.stem(), r.disruptionBudget(), false, nil, ""},
		{plan.KindNetworkPolicy, r.stem(), r.networkPolicy(), false, nil, ""},
		{r.workloadKind(), r.stem(), r.workload(), false, nil, ""},
	}
	children := make([]plan.Child, 0, len(parts))
	for _, part := range parts {
		if !r.isReplicated() && (part.name == r.readOnlyServiceName() || part.kind == plan.KindDisruptionBudget) {
			continue
		}
		child := plan.Child{Ref: plan.Ref{Kind: part.kind, Name: part.name}, IsRetained: part.isRetained, Template: part.template}
		child.IsGiven = part.name == r.authSecretName() && r.Database.Spec.Auth != nil && r.Recorded.Aside == nil
		child, err := seal(child, part.configuration, part.password)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return children, nil
}

// claims returns the volume claims that the members will mount, with the
// fields that make them ours.
func (r *rendering) claims() ([]plan.Child, error) {
	if !r.isDurable() {
		return nil, nil
	}
	size := max(r.Recorded.Size, 1)
	claims := make([]plan.Child, 0, size)
	for ordinal := range size {
		name := plan.ClaimName(fmt.Sprintf("%s-%d", r.stem(), ordinal))
		claim, err := seal(plan.Child{Ref: plan.Ref{Kind: plan.KindVolumeClaim, Name: name}, IsRetained: true}, r.claim(name), "")
		if err != nil {
			return nil, err
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// seal turns an apply configuration into the fields of a child, together with
// their hash.
func seal(child plan.Child, configuration any, password string) (plan.Child, error) {
	fields, err := intent.Fields(configuration)
	if err != nil {
		return plan.Child{}, err
	}
	child.Fields = fields
	if child.Template != nil {
		// The keys count for the hash, the values don't.
		fields = child.WithPassword("").Fields
	}
	if child.Hash, err = intent.Hash(fields); err != nil {
		return plan.Child{}, err
	}
	if err := unstructured.SetNestedField(child.Fields, child.Hash, "metadata", "annotations", v1alpha1.AnnotationIntentHash); err != nil {
		return plan.Child{}, fmt.Errorf("record the hash of %s: %w", child, err)
	}
	if password != "" {
		child = child.WithPassword(password)
	}
	return child, nil
}
