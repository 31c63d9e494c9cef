//go:build mutants

// SPDX-License-Identifier: Apache-2.0

package mutants

// preconditionMutants are of what a write insists on.
func preconditionMutants() []mutant {
	return []mutant{
		{
			"a pod is evicted by its name", "R3", "internal/controller/databasemanager/execute.go",
			"DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &eviction.UID}},",
			"DeleteOptions: &metav1.DeleteOptions{},",
			inController(), "",
		},
		{
			"a StatefulSet is deleted by its name", "casskop #316", "internal/controller/databasemanager/tune.go",
			"Preconditions: &metav1.Preconditions{UID: &action.UID}, PropagationPolicy: &policy,",
			"PropagationPolicy: &policy,",
			inController(), "",
		},
		{
			"a StatefulSet takes its pods along", "conventions, deleting in the foreground", "internal/controller/databasemanager/tune.go",
			"policy := metav1.DeletePropagationOrphan",
			"policy := metav1.DeletePropagationForeground",
			inController(), "",
		},
		{
			"a pod is labelled as it isn't any more", "CNPG #10409", "internal/controller/databasemanager/roles.go",
			`"uid": action.Pod.UID, "resourceVersion": action.Version,`,
			`"uid": action.Pod.UID,`,
			inController(), "",
		},
		{
			"the status of one database is given to its namesake", "cass-operator #412", "internal/controller/databasemanager/report.go",
			".WithUID(database.UID).WithResourceVersion(database.ResourceVersion).WithStatus(",
			".WithStatus(",
			inController(), "",
		},
		{
			"a password that a Secret has is replaced", "CNPG #11075", "internal/controller/databasemanager/execute.go",
			"\treturn child.WithPassword(string(secret.Data[plan.PasswordKey])).Fields, nil",
			"\treturn child.WithPassword(rand.Text()).Fields, nil",
			inController(), "",
		},
		{
			"a Secret that lost its password is given an empty one", "CNPG #11075", "internal/controller/databasemanager/execute.go",
			"\t\tif len(secret.Data[plan.PasswordKey]) == 0 {",
			"\t\tif len(secret.Data[plan.PasswordKey]) == 0 && false {",
			inController(), "",
		},
		{
			"every database has the same password", "CVE-2025-4057", "internal/controller/databasemanager/execute.go",
			"child = child.WithPassword(rand.Text())",
			`child = child.WithPassword(fmt.Sprintf("%26s%d", "", len(rand.Text())))`,
			inController(), "",
		},
	}
}

// liveReadMutants are of what is looked at right before.
func liveReadMutants() []mutant {
	return []mutant{
		{
			"a volume is deleted by a spec that was changed since", "zookeeper #314", "internal/controller/databasemanager/execute.go",
			"database.UID != seen.UID || database.Generation != seen.Generation || database.DeletionTimestamp != nil",
			"database.UID != seen.UID || database.DeletionTimestamp != nil",
			inController(), "",
		},
		{
			"children are made for another database of the same name", "cass-operator #412", "internal/controller/databasemanager/execute.go",
			"err == nil && (database.UID != e.claimant.UID || database.DeletionTimestamp != nil)",
			"err == nil && database.DeletionTimestamp != nil",
			inController(), "",
		},
		{
			"what is retained is made for a database that went meanwhile", "yugabyte #35", "internal/controller/databasemanager/execute.go",
			"isRecent || !e.confirmedAt.IsZero() && !isStray",
			"isRecent || !e.confirmedAt.IsZero() && (isStray || !isStray)",
			inController(), "",
		},
		{
			"data are adopted while their database still exists", "CNPG #10870", "internal/controller/databasemanager/execute.go",
			"\t\tif database.UID == formerOwner {",
			"\t\tif database.UID == formerOwner && database.DeletionTimestamp != nil {",
			inController(), "",
		},
		{
			"a pod that is still there passes for gone", "instaclustr #407", "internal/controller/databasemanager/execute.go",
			"\tcase live.UID != pod.UID || plan.HasEnded(live):",
			"\tcase live.UID == pod.UID || live.UID != pod.UID || plan.HasEnded(live):",
			inController(), "",
		},
		{
			"a server that may run passes for stopped", "engines.md H5", "internal/controller/databasemanager/execute.go",
			"\tcase plan.HasEnded(live) || plan.IsStopped(live):",
			"\tcase plan.HasEnded(live) || plan.IsStopped(live) || live.DeletionTimestamp != nil:",
			inController(), "",
		},
		{
			"another server at a member's address is promoted", "onServer, the very one", "internal/controller/databasemanager/tune.go",
			"\tif state.RunID != server.RunID {",
			"\tif state.RunID != server.RunID && false {",
			inController(), "",
		},
	}
}

// syncMutants are of what a pass rests on.
func syncMutants() []mutant {
	return []mutant{
		{
			"the lag of a replica is never in the status, which so is written at each look", "ours, found by putting bugs back", "internal/controller/databasemanager/report.go",
			"\t\t\tone.WithLag(member.Lag)\n",
			"",
			inController(), "",
		},
		{
			"a server is changed when the leader's lease is about to end", "execute.go, actionLimit", "internal/controller/databasemanager/tune.go",
			"\tif !e.config.MayAct(actionLimit) {",
			"\tif !e.config.MayAct(0) {",
			inController(), "",
		},
		{
			"the first action that fails doesn't end the pass", "execute.go, order of writes", "internal/controller/databasemanager/execute.go",
			"\t\tif err != nil {\n\t\t\treturn outcomeOf(action, err)\n\t\t}\n\t\tklog",
			"\t\tif err != nil && false {\n\t\t\treturn outcomeOf(action, err)\n\t\t}\n\t\tklog",
			inController(), "",
		},
		{
			"a database is looked at again only when something changes", "real-bugs.md D", "internal/controller/databasemanager/controller.go",
			"\tcase todo.WakeIn > 0 && (problem == nil || problem.Retry == 0 || problem.Retry > todo.WakeIn):",
			"\tcase todo.WakeIn > 0 && problem == nil:",
			inController(), "",
		},
		{
			"a database is synced on a cache that is behind its own writes", "kuberay #715", "internal/controller/databasemanager/controller.go",
			`if behind := c.caches.OwnWrites.Behind(key); behind != "" {`,
			`if behind := c.caches.OwnWrites.Behind(key); behind != "" && false {`,
			inController(), "",
		},
		{
			"a member is judged by what it said before something was done to it", "R4", "internal/controller/databasemanager/controller.go",
			"\tif c.prober.IsOutdated(key) {",
			"\tif c.prober.IsOutdated(key) && false {",
			inController(), "",
		},
		{
			"what a spec no longer says stays where our own creation set it", "cockroach #927", "internal/kit/writer.go",
			"\tif live, err = w.takeOver(ctx, name, live, fields); err != nil {",
			"\tif live, err = live, error(nil); err != nil {",
			inFaults("^TestAChangeThatIsTakenBackLeavesNothing$"), "",
		},
		{
			"a status that says the same is written at each restart", "R11", "internal/controller/databasemanager/report.go",
			"differs := !equality.Semantic.DeepEqual(status, database.Status)",
			"differs := database.UID != \"\" || !equality.Semantic.DeepEqual(status, database.Status)",
			inFaults("^TestAtRestThereIsNoRequest$"), "",
		},
		{
			"a leader that was stopped for a while goes on writing", "lease.go, Guard", "internal/app/app.go",
			"config.Wrap(lease.Guard)",
			"_ = lease.Guard",
			inFaults("^TestALeaderThatWasStoppedForAWhileStartsNothingNew$"), "",
		},
	}
}
