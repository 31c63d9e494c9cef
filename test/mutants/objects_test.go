//go:build mutants

// SPDX-License-Identifier: Apache-2.0

package mutants

// securityMutants are of what a pod may do and see.
func securityMutants() []mutant {
	return []mutant{
		{
			"a member may gain privileges", "OT redis #1185", "internal/objects/pod.go",
			"WithAllowPrivilegeEscalation(false)",
			"WithAllowPrivilegeEscalation(true)",
			unit("./internal/objects/"), "",
		},
		{
			"a member keeps the capabilities of its runtime", "OT redis #1185", "internal/objects/pod.go",
			".\n\t\t\tWithCapabilities(corev1apply.Capabilities().WithDrop(\"ALL\"))",
			"",
			unit("./internal/objects/"), "",
		},
		{
			"a member can write to its image", "Altinity (SigNoz PR 868)", "internal/objects/pod.go",
			"\t\t\tWithReadOnlyRootFilesystem(true).\n",
			"",
			unit("./internal/objects/"), "",
		},
		{
			"a member runs as root", "CVE-2026-50564", "internal/objects/pod.go",
			"\t\t\t\tWithRunAsNonRoot(true).\n\t\t\t\tWithRunAsUser(engineID).\n",
			"\t\t\t\tWithRunAsUser(0).\n",
			unit("./internal/objects/"), "",
		},
		{
			"a member has a token of the API server", "CVE-2025-2843", "internal/objects/pod.go",
			"WithAutomountServiceAccountToken(false)",
			"WithAutomountServiceAccountToken(true)",
			unit("./internal/objects/"), "",
		},
		{
			"a member is shown all keys of its Secrets", "pod.go, passwordVolume", "internal/objects/pod.go",
			".\n\t\t\tWithItems(corev1apply.KeyToPath().WithKey(plan.PasswordKey).WithPath(plan.PasswordKey))",
			"",
			unit("./internal/objects/"), "",
		},
		{
			"whoever is in any namespace reaches the members", "GHSA-7qwx-x8ff-3px9", "internal/objects/networkpolicy.go",
			"networkingv1apply.NetworkPolicyPeer().WithPodSelector(metav1apply.LabelSelector()),",
			"networkingv1apply.NetworkPolicyPeer().WithNamespaceSelector(metav1apply.LabelSelector()).WithPodSelector(metav1apply.LabelSelector()),",
			unit("./internal/objects/"), "",
		},
		{
			"the kubelet's probe carries the password", "CVE-2024-31391", "internal/engine/redis/redis.go",
			"case $(%s-cli -p %d ping) in",
			"case $(REDISCLI_AUTH=$(cat /secrets/auth/password) %s-cli -p %d ping) in",
			unit("./internal/objects/"), "",
		},
	}
}

// renderMutants are of what else is rendered.
func renderMutants() []mutant {
	return []mutant{
		{
			"a Deployment's pod that is being replaced counts as a second member", "ours, found by the fault tests", "internal/objects/workload.go",
			"r.isDurable() && max(r.Recorded.Size, r.Recorded.Existing) > 1",
			"max(r.Recorded.Size, r.Recorded.Existing) > 1",
			unit("./internal/objects/"), "",
		},
		{
			"a user's label replaces one of ours", "cass-operator #330", "internal/objects/scheduling.go",
			"\tlabels := texts(r.Database.Spec.PodLabels)\n\tmaps.Copy(labels, r.labels())\n\treturn labels",
			"\tlabels := r.labels()\n\tmaps.Copy(labels, texts(r.Database.Spec.PodLabels))\n\treturn labels",
			unit("./internal/objects/"), "",
		},
		{
			"another default changes the version of databases that exist", "ucloud redis #115", "internal/objects/render.go",
			"first(spec.Version, r.Recorded.Version, r.Engine.DefaultVersion())",
			"first(spec.Version, r.Engine.DefaultVersion(), r.Recorded.Version)",
			unit("./internal/objects/"), "",
		},
		{
			"a configuration with other content has the same name", "StarRocks #68", "internal/objects/metadata.go",
			"\t\tfor _, part := range []string{name, files[name]} {",
			"\t\tfor _, part := range []string{name, name} {",
			unit("./internal/objects/"), "",
		},
		{
			"a Secret goes with its database though the volume stays", "K8SPXC-896", "internal/objects/secret.go",
			"\tif r.goesWithDatabase() {\n",
			"\tif !r.goesWithDatabase() {\n",
			unit("./internal/objects/"), "",
		},
		{
			"a password can be told from a hash", "CVE-2025-62879", "internal/intent/intent.go",
			"\t\t\t\tdata[key] = \"\"\n",
			"\t\t\t\t_ = key\n",
			unit("./internal/intent/"), "",
		},
	}
}
