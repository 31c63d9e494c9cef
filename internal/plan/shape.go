// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// changedShape refuses several members to a database that was made with one, and
// without storage: they would be a StatefulSet's, beside the Deployment whose pod
// has the data. The API server refuses such a change; a spec that an older schema
// let in, when it was one member whatever was asked for, asks for it all the same.
func (s Snapshot) changedShape() *Problem {
	ref := Ref{Kind: KindDeployment, Name: s.Database.Spec.DeploymentName}
	deployment := s.Objects[ref]
	if s.isDurable() || wantedReplicas(s.Database) == 1 || deployment == nil || !s.isControlled(deployment) {
		return nil
	}
	return &Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
		"spec.replicas is %d, and the data are in the pod of %s, since there is no spec.storage: without it one member doesn't become several. "+
			"Nothing was changed; create another DatabaseManager, and copy the data.", wantedReplicas(s.Database), ref)}
}
