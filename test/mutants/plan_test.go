//go:build mutants

// SPDX-License-Identifier: Apache-2.0

package mutants

// topologyMutants are of where the data are.
func topologyMutants() []mutant {
	return []mutant{
		{
			"the name of a Deployment's pod says how many members there are to be", "ours, found by the fault tests", "internal/plan/replicas.go",
			" || s.workloadRef().Kind == KindDeployment {",
			" {",
			inPlan(), "",
		},
		{
			"a primary that starts with all others is succeeded at once", "ours, found on real nodes", "internal/controller/databasemanager/observe.go",
			"since(c.unservedSince, uid, !serves && hasSuccessors, now)",
			"since(c.unservedSince, uid, !serves, now)",
			inController(), "",
		},
		{
			"replicas are restarted before the primary that brings their password", "ours, found on real nodes", "internal/plan/roll.go",
			"\t\tcase s.bringsThePassword(member, desired):\n\t\t\treturn -1\n",
			"",
			inPlan(), "",
		},
		{
			"a lost topology is taken for a new database, though there are data", "CNPG #11006", "internal/plan/topology.go",
			"\t\tif ref.Kind == KindVolumeClaim && isMarked && (engine",
			"\t\tif ref.Kind == KindStatefulSet && isMarked && (engine",
			inPlan(), "",
		},
		{
			"a database begins again with nothing though nobody said so", "topology.go, the user says: begin again", "internal/plan/topology.go",
			"if !s.isGivenUp(step.DataID) || len(s.Members) == 0 || s.anyMayHoldData() {",
			"if len(s.Members) == 0 || s.anyMayHoldData() {",
			inPlan(), "",
		},
		{
			"data are given up while a member may have them", "topology.go, beginAgain", "internal/plan/topology.go",
			"if !s.isGivenUp(step.DataID) || len(s.Members) == 0 || s.anyMayHoldData() {",
			"if !s.isGivenUp(step.DataID) {",
			inPlan(), "",
		},
		{
			"data in a pod are called lost without a look whether it is gone", "instaclustr #407", "internal/plan/topology.go",
			"step.Gone = &PodRef{Name: step.Primary, UID: step.Holder}",
			"step.Gone = nil",
			inPlan(), "",
		},
	}
}

// ownershipMutants are of whose an object is, and what may go.
func ownershipMutants() []mutant {
	return []mutant{
		{
			"an object is ours by its owner's name", "instaclustr #404", "internal/plan/ownership.go",
			"case controller != nil && controller.UID == c.UID:",
			"case controller != nil && controller.Name == c.Name:",
			inPlan(), "",
		},
		{
			"what is left of a database that still runs is adopted", "CNPG #10870", "internal/plan/ownership.go",
			`case c.Siblings[owner] != "":`,
			`case c.Siblings[owner] == "-":`,
			inPlan(), "",
		},
		{
			"data of another engine are adopted", "R2", "internal/plan/ownership.go",
			"case labels[v1alpha1.LabelEngine] != string(c.Engine):",
			`case labels[v1alpha1.LabelEngine] == "":`,
			inPlan(), "",
		},
		{
			"objects of others are removed with our own", "percona-mongodb PR 253", "internal/plan/prune.go",
			"!isWanted[ref] && snapshot.isControlled(object) &&",
			"!isWanted[ref] &&",
			inPlan(), "",
		},
		{
			"a configuration is removed that a pod has mounted", "prune.go", "internal/plan/prune.go",
			"ref.Kind == KindConfigMap && !inUse[ref.Name] ||",
			"ref.Kind == KindConfigMap && !inUse[string(ref.Kind)] ||",
			inPlan(), "",
		},
		{
			"a volume is deleted that a pod has mounted", "instaclustr #407", "internal/plan/volumes.go",
			"&& !topology.holds(ref.Name) && !snapshot.hasPod(pod) {",
			"&& !topology.holds(ref.Name) {",
			inPlan(), "",
		},
		{
			"a volume is deleted whose data acknowledged commits rest on", "zookeeper #312", "internal/plan/volumes.go",
			"&& !topology.holds(ref.Name) && !snapshot.hasPod(pod) {",
			"&& !snapshot.hasPod(pod) {",
			inPlan(), "",
		},
		{
			"a database that is going is planned for", "instaclustr #404", "internal/plan/ladder.go",
			"\t*plan = Plan{IsDeleting: true}\n\treturn true",
			"\tplan.IsDeleting = true\n\treturn false",
			inPlan(), "",
		},
	}
}

// changeMutants are of how a change comes about.
func changeMutants() []mutant {
	return []mutant{
		{
			"what an older spec set stays where a newer one says nothing of it", "rabbitmq #968", "internal/plan/ladder.go",
			"if object.GetAnnotations()[v1alpha1.AnnotationIntentHash] != child.Hash {",
			`if object.GetAnnotations()[v1alpha1.AnnotationIntentHash] == "" {`,
			inPlan(), "",
		},
		{
			"a spec waits until the members are well", "humio #210", "internal/plan/ladder.go",
			"\tchildren := desired.Children\n\tif isScaleOut",
			"\tchildren := desired.Children\n\tif len(snapshot.Members) > 0 && !snapshot.Members[0].Probe.Answers {\n\t\treturn false\n\t}\n\tif isScaleOut",
			inPlan(), "",
		},
		{
			"a member that isn't ready isn't replaced by a revert", "CNPG #3541", "internal/plan/roll.go",
			"\t\tif why == \"\" {\n",
			"\t\tif why == \"\" || !member.Probe.Answers {\n",
			inPlan(), "",
		},
		{
			"the primary is replaced before its replicas", "tidb #865", "internal/plan/roll.go",
			"\t\tcase member.Pod.Name == desired.Topology.Primary:\n\t\t\treturn 2",
			"\t\tcase member.Pod.Name == desired.Topology.Primary:\n\t\t\treturn -2",
			inPlan(), "",
		},
		{
			"a member is replaced while another one lacks the data", "roll.go, waitsForOthers", "internal/plan/roll.go",
			"\t\tif !snapshot.bringsThePassword(member, desired) && snapshot.waitsForOthers(member, desired.Topology) {",
			"\t\tif snapshot.waitsForOthers(member, desired.Topology) && false {",
			inPlan(), "",
		},
		{
			"members are replaced on what a StatefulSet said of an older spec", "real-bugs.md D", "internal/plan/roll.go",
			`if !isStatefulSet || statefulSet.Status.ObservedGeneration < statefulSet.Generation || statefulSet.Status.UpdateRevision == "" {`,
			`if !isStatefulSet || statefulSet.Status.UpdateRevision == "" {`,
			inPlan(), "",
		},
	}
}

// reportMutants are of what is recalled, and what is said.
func reportMutants() []mutant {
	return []mutant{
		{
			"an empty password is taken from a Secret", "CNPG #11075", "internal/plan/recall.go",
			"\tpassword := string(secret.Data[PasswordKey])\n\tif !isPassword(password) {",
			"\tpassword := string(secret.Data[PasswordKey])\n\tif len(password) > MaxPassword {",
			inPlan(), "",
		},
		{
			"a Secret that was lost gets another password than the server has", "CNPG #10834", "internal/plan/recall.go",
			"\tlost, isKnown := s.LastSeen[Ref{Kind: KindSecret, Name: name}].(*corev1.Secret)\n\tif !isKnown ||",
			"\tlost, isKnown := s.LastSeen[Ref{Kind: KindSecret, Name: name}].(*corev1.Secret)\n\tif isKnown ||",
			inPlan(), "",
		},
		{
			"the data sets of two databases are mixed", "GHSA-hfc8-w5f4-3x6m", "internal/plan/recall.go",
			"\tcase len(found) == 1:",
			"\tcase len(found) >= 1:",
			inPlan(), "",
		},
		{
			"a password shows where a credential is formatted", "k8ssandra #1396", "internal/plan/recall.go",
			`func (c Credential) String() string { return "issued at " + c.IssuedAt }`,
			`func (c Credential) String() string { return c.Password + " issued at " + c.IssuedAt }`,
			inPlan(), "",
		},
		{
			"a volume that is full grows only once its member is well", "R5", "internal/plan/tune.go",
			"\t\trequested := claim.Spec.Resources.Requests[corev1.ResourceStorage]\n\t\tif requested.Cmp(size) < 0",
			"\t\trequested := claim.Spec.Resources.Requests[corev1.ResourceStorage]\n\t\tif snapshot.NamedServes() && requested.Cmp(size) < 0",
			inPlan(), "",
		},
		{
			"a pass that failed is reported as carried out", "report.go, Outcome", "internal/plan/report.go",
			"if outcome.IsDone || problem != nil {",
			"if outcome.IsDone || problem == nil {",
			inPlan(), "",
		},
	}
}
