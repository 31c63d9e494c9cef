// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Defaults are what an administrator has the operator take for what a spec
// leaves out. They count when a database is made: its workload records them, and
// goes by that record from then on.
type Defaults struct {
	// Registry is where upstream images come from, such as
	// registry.example.com/mirror; empty for where upstream publishes them.
	Registry string `json:"registry,omitempty"`
	// ImagePullSecrets are names of Secrets in the database's namespace.
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
	// StorageClass is the class of volumes; empty for the cluster's default.
	StorageClass string `json:"storageClass,omitempty"`
	// Tolerations are those of the members.
	Tolerations []v1alpha1.Toleration `json:"tolerations,omitempty"`
}

// noDefaults is how Defaults are encoded that say nothing.
const noDefaults = "{}"

// resolveDefaults settles the defaults: those that were recorded when the
// database was made, or, for a new one, the operator's.
func (r *rendering) resolveDefaults() *plan.Problem {
	r.defaults = r.Defaults
	if r.isRecorded() {
		recorded, err := readDefaults(r.Recorded.Defaults)
		if err != nil {
			return &plan.Problem{
				Reason: v1alpha1.ReasonTemplateUnknown,
				Message: fmt.Sprintf("the annotation %s of the workload is %q, which this operator can't read (%s): run the operator that made it, or a newer one",
					v1alpha1.AnnotationResolvedDefaults, r.Recorded.Defaults, err),
			}
		}
		r.defaults = recorded
		if r.adopts() {
			r.defaults = r.Defaults
			// A workload's volumes stay in their class.
			r.defaults.StorageClass = recorded.StorageClass
		}
	}
	encoded, err := json.Marshal(r.defaults)
	if err != nil {
		return invalid("the operator's defaults can't be recorded (%s): correct its flags", err)
	}
	r.recordedDefaults = string(encoded)
	return nil
}

// readDefaults reads what an earlier rendering recorded; an empty record stands
// for no defaults. A field that isn't known is one of a newer operator: without
// it, members would be restarted as something else.
func readDefaults(record string) (Defaults, error) {
	var defaults Defaults
	if record == "" {
		return defaults, nil
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(record)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&defaults); err != nil {
		return Defaults{}, fmt.Errorf("read the recorded defaults: %w", err)
	}
	return defaults, nil
}

// isRecorded tells whether an earlier rendering left a record.
func (r *rendering) isRecorded() bool { return r.Recorded.Version != "" }

// inRegistry returns an upstream image as another registry has it. The
// registry that the image names, if it names one, gives way:
//
//	redis:8.0              registry.example.com/redis:8.0
//	valkey/valkey:9.1      registry.example.com/valkey/valkey:9.1
//	quay.io/valkey:9.1     registry.example.com/valkey:9.1
func inRegistry(registry, image string) string {
	if registry == "" {
		return image
	}
	if host, path, hasHost := strings.Cut(image, "/"); hasHost && strings.ContainsAny(host, ".:") {
		image = path
	}
	return registry + "/" + image
}
