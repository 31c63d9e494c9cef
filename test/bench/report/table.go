// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// table is which figures of a benchmark are shown, and how.
type table struct {
	benchmark, title string
	// cases begin the names of what is shown; all, if there is none.
	cases   []string
	columns []column
}

// column is one value.
type column struct {
	title, value string
	// per divides it: 1 if it is 0.
	per float64
}

func (t table) shows(what string) bool {
	for _, beginning := range t.cases {
		if strings.HasPrefix(what, beginning) {
			return true
		}
	}
	return len(t.cases) == 0
}

// allTables are those of docs/performance.md.
func allTables() []table {
	requests := []column{{"writes", "writes", 0}, {"reads", "reads", 0}, {"events", "events", 0}}
	bytes := []column{{"sent KB", "sent bytes", 1e3}, {"received KB", "received bytes", 1e3}, {"CPU ms", "CPU ms", 0}}
	puts := column{"writes to etcd, by all", "puts by anyone", 0}
	expected := []column{{"writes", "writes", 0}, {"by the formula", "writes expected", 0}, {"reads", "reads", 0}, {"by the formula", "reads expected", 0}, {"events", "events", 0}}
	return []table{
		{"B1", "B1: requests for each resource that is created", nil, join(expected, bytes, []column{puts, {"median until ready, s", "median s", 0}})},
		{"B2", "B2: at rest, for each resource and hour", nil, []column{
			{"writes", "writes per h", 0},
			{"reads", "reads per h", 0},
			{"events", "events per h", 0},
			{"renewals of the lease, by the process", "leases per h", 0},
			{"CPU of the process, ms a second", "CPU ms per s", 0},
			{"bytes a second", "bytes per s", 0},
		}},
		{"B3", "B3: restart", []string{"restart"}, join(requests, []column{
			{"received MB", "received MB", 0}, {"a new database is served after s", "new database served after s", 0}, {"drained after s", "drained after s", 0}, {"CPU s", "CPU s", 0},
		})},
		{"B3", "B3: kill -9 and a new start, with Foos", []string{"Foo"}, []column{
			{"writes", "writes", 0}, {"events", "events", 0}, {"received KB", "received bytes", 1e3}, {"a new Foo's Deployment after s", "new Foo's Deployment after s", 0},
		}},
		{"B4", "B4: memory", nil, []column{{"live heap MB", "live heap MB", 0}, {"Pss MB", "Pss MB", 0}}},
		{"B5", "B5: changes at once, with GOMAXPROCS=1", nil, join([]column{{"changes a second", "changes per s", 0}, {"median s", "median s", 0}}, requests, bytes, []column{{"CPU ms without asking members", "CPU ms without asking", 0}})},
		{"B6", "B6: the rest of a life, for each resource", nil, join(requests, bytes, []column{puts, {"median s", "median s", 0}})},
		{"B7", "B7: the leader is lost", nil, []column{{"first useful write after s", "first useful write after s", 0}}},
		{"B8", "B8: ten healthy resources are edited", nil, []column{
			{"at start, median s", "edited at start, median s", 0},
			{"last s", "edited at start, last s", 0},
			{"later, median s", "edited, median s", 0},
			{"last s", "edited, last s", 0},
			{"requests for broken ones a minute", "requests for broken ones per min", 0},
			{"CPU ms a second", "CPU ms per s", 0},
		}},
		{"N1", "N1: a real node: from apply to the first answered query", nil, []column{{"operator s", "operator s", 0}, {"server in a bare container s", "bare s", 0}, {"more s", "more s", 0}}},
		{"N3", "N3: for how long writes stop", nil, []column{{"the primary is killed, s", "killed s", 0}, {"planned switchover, s", "switched over s", 0}}},
		{"N2", "N2: sizes", nil, []column{{"image, compressed MB", "image MB", 0}, {"CRDs KB", "CRDs KB", 0}, {"install.yaml KB", "install KB", 0}, {"operator's RSS MB", "RSS MB", 0}}},
	}
}

func join(parts ...[]column) []column {
	var all []column
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// tables are all of them, as Markdown. Columns that nothing was measured of are
// left out.
func (r results) tables() string {
	var text strings.Builder
	for _, table := range allTables() {
		r.write(&text, table)
	}
	return text.String()
}

func (r results) write(text *strings.Builder, shown table) {
	var rows []series
	for _, s := range r.of(shown.benchmark) {
		if shown.shows(s.what) {
			rows = append(rows, s)
		}
	}
	var columns []column
	for _, column := range shown.columns {
		for _, row := range rows {
			if _, isMeasured := row.figure(column.value); isMeasured {
				columns = append(columns, column)
				break
			}
		}
	}
	if len(rows) == 0 || len(columns) == 0 {
		return
	}
	fmt.Fprintf(text, "### %s\n\n| whose | what | how many |", shown.title)
	for _, column := range columns {
		fmt.Fprintf(text, " %s |", column.title)
	}
	fmt.Fprintf(text, "\n|---|---|---|%s\n", strings.Repeat("---|", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(text, "| %s | %s | %d |", row.subject, row.what, row.size)
		for _, column := range columns {
			cell := ""
			if figure, isMeasured := row.figure(column.value); isMeasured {
				if column.per != 0 {
					figure.median, figure.low, figure.high = figure.median/column.per, figure.low/column.per, figure.high/column.per
				}
				cell = figure.String()
			}
			fmt.Fprintf(text, " %s |", cell)
		}
		text.WriteString("\n")
	}
	text.WriteString("\n")
	if shown.benchmark == "B4" {
		r.writePerDatabase(text)
	}
}

// writePerDatabase says what one database more takes, in memory and for asking its
// member how it is.
func (r results) writePerDatabase(text *strings.Builder) {
	heap, pss := r.perDatabase("B4", inMemory, "live heap MB"), r.perDatabase("B4", inMemory, "Pss MB")
	asking := r.perDatabase("B2", atRest, "CPU ms per s")
	if len(heap) == 0 || len(pss) != len(heap) || len(asking) != len(heap) {
		return
	}
	text.WriteString("| databases of one member | live heap KB of each | Pss KB of each | CPU for asking each member, µs a second |\n|---|---|---|---|\n")
	for at, point := range heap {
		fmt.Fprintf(text, "| %.0f | %s | %s | %s |\n", point.X, number(point.Y), number(pss[at].Y), number(asking[at].Y))
	}
	text.WriteString("\n")
}

// machines says what was measured on.
func (r results) machines() string {
	var text strings.Builder
	for _, machine := range r.machine {
		fmt.Fprintf(&text, "Measured on %v, commit %v: %v, %v cores, %v; Kubernetes %v, %v; the operator with %v. Nodes: %v. %v.\n\n",
			machine["time"], machine["commit"], machine["processor"], machine["cores"], machine["memory"], machine["kubernetes"], machine["go"], machine["runtime"], machine["nodes"], machine["sizes"])
	}
	return text.String()
}
