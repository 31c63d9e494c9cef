//go:build mutants

// SPDX-License-Identifier: Apache-2.0

package mutants

// writeMutants are of how an object is written.
func writeMutants() []mutant {
	return []mutant{
		{
			"an object of ours that exists is an error for good", "CNPG #10989", "internal/kit/writer.go",
			"\t\treturn w.Apply(ctx, name, Expected{}, existing)\n",
			"\t\treturn nil, fmt.Errorf(\"create %s: %w\", name, err)\n",
			unit("./internal/kit/"), "",
		},
		{
			"an object is written whatever its UID", "cass-operator #412", "internal/kit/writer.go",
			"\tmetadata[\"uid\"] = string(live.GetUID())\n",
			"",
			unit("./internal/kit/"), "",
		},
		{
			"what holds data is written whatever its version", "R6", "internal/kit/writer.go",
			"\tif w.IsPinned {",
			"\tif w.IsPinned && false {",
			unit("./internal/kit/"), "",
		},
		{
			"an object is deleted whatever its version", "R3", "internal/kit/writer.go",
			"\t\tpreconditions.ResourceVersion = &version\n",
			"\t\tpreconditions.ResourceVersion = nil\n",
			unit("./internal/kit/"), "",
		},
		{
			"an object that isn't the expected one is written", "R6", "internal/kit/writer.go",
			`case e.UID != "" && live.GetUID() != e.UID:`,
			`case false && e.UID != "" && live.GetUID() != e.UID:`,
			unit("./internal/kit/"), "",
		},
		{
			"the topology is written whatever its version", "R6", "internal/kit/writer.go",
			`case e.Version != "" && live.GetResourceVersion() != e.Version:`,
			`case false && e.Version != "" && live.GetResourceVersion() != e.Version:`,
			unit("./internal/kit/"), "",
		},
	}
}

// cacheMutants are of what a cache is good for.
func cacheMutants() []mutant {
	return []mutant{
		{
			"an older write makes a newer one forgotten", "kuberay #715", "internal/kit/ownwrites.go",
			"\tif isOlder(record.versions[from], object.GetResourceVersion()) {",
			"\tif object.GetResourceVersion() != \"\" {",
			unit("./internal/kit/"), "",
		},
		{
			"what was deleted, and is still cached, is no reason to wait", "R4", "internal/kit/ownwrites.go",
			"\t\tif w.isStillThere(gone) {",
			"\t\tif w.isStillThere(gone) && false {",
			unit("./internal/kit/"), "",
		},
		{
			"a list of the past is taken for the present", "R8", "internal/kit/informer.go",
			"\tif options.ResourceVersion == \"0\" && !isStreamed {",
			"\tif options.ResourceVersion == \"0\" && isStreamed {",
			unit("./internal/kit/"), "",
		},
		{
			"another object of the same name is taken for a change of the first", "casskop #316", "internal/kit/cache.go",
			"\tif old.GetUID() != object.GetUID() {",
			"\tif old.GetName() != object.GetName() {",
			unit("./internal/kit/"), "",
		},
	}
}

// processMutants are of the lease, the queue and the prober.
func processMutants() []mutant {
	return []mutant{
		{
			"a process without the lease writes", "lease.go, Guard", "internal/kit/lease.go",
			"request.Method != http.MethodHead && !l.IsValid() {",
			"request.Method != http.MethodHead && !l.IsValid() && false {",
			unit("./internal/kit/"), "",
		},
		{
			"a lease is counted from when its renewal came back", "lease.go, time is counted from before", "internal/kit/lease.go",
			"r.renewed, r.validUntil, r.wasHeld = sent, sent.Add(leaseDuration), true",
			"r.renewed, r.validUntil, r.wasHeld = sent, time.Now().Add(leaseDuration), true",
			unit("./internal/kit/"), "",
		},
		{
			"the lease is given away while work goes on", "conventions, ReleaseOnCancel", "internal/kit/lease.go",
			"\tstopWorking()\n\tif l.hasBeenHeld() {\n\t\t<-returned\n\t}\n\tstopElecting()\n\t<-ended\n",
			"\tstopWorking()\n\tstopElecting()\n\t<-ended\n\tif err := l.release(ctx); err == nil {\n\t\tdefer func() { <-returned }()\n\t}\n",
			unit("./internal/kit/"), "",
		},
		{
			"a panic in one sync ends them all", "OT redis #175", "internal/kit/loop.go",
			"\t\tif value := recover(); value != nil {",
			"\t\tif value := any(nil); value != nil {",
			unit("./internal/kit/"), "",
		},
		{
			"one key that hangs holds its worker for ever", "mariadb-operator #1264", "internal/kit/loop.go",
			"\tctx, cancel := context.WithTimeout(ctx, l.config.TimeLimit)",
			"\tctx, cancel := context.WithCancel(ctx)",
			unit("./internal/kit/"), "",
		},
		{
			"the flood of a start goes before what has just changed", "priority.go, order", "internal/kit/priority.go",
			"\tif _, isAsked := o.asked[key]; !isAsked {\n\t\to.asked[key] = patient\n\t}",
			"\tif _, isAsked := o.asked[key]; !isAsked {\n\t\to.asked[key] = urgent\n\t}",
			unit("./internal/kit/"), "",
		},
		{
			"an answer that was underway passes for one to what was done since", "prober.go, Outdate", "internal/kit/prober.go",
			"\tif began.After(known.outdatedAt) {",
			"\tif !now.Before(known.outdatedAt) {",
			unit("./internal/kit/"), "",
		},
	}
}
