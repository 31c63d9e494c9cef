// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

// replicaRow is what a replica answers that streams, with columns changed in turn:
// their numbers and what is in them.
func replicaRow(changes ...any) []string {
	row := []string{
		"0/5000000", "", "RecoveryWalStream", "f", "0/5000000", "host=orders-0.members.ns.svc port=5432 application_name=orders-1",
		"", "database-manager,orders-2", "17", "streaming", "orders-0.members.ns.svc", "0/5000000",
	}
	for i := 0; i+1 < len(changes); i += 2 {
		row[changes[i].(int)] = changes[i+1].(string)
	}
	return row
}

func TestAnAnswerTellsWhetherAReplicaReceivesAndIsDrained(t *testing.T) {
	for sentence, row := range map[string]struct {
		answer                []string
		isReceiving, isDraind bool
		failure               string
	}{
		"it streams, and has executed all":                {replicaRow(), true, true, ""},
		"it streams, and hasn't executed all":             {replicaRow(4, "0/5000010"), true, false, ""},
		"it streams from a former source":                 {replicaRow(10, "orders-9.members.ns.svc"), false, true, "it isn't connected to its source"},
		"it begins to connect":                            {replicaRow(9, "starting", 10, ""), false, true, "it isn't connected to its source"},
		"its source has nothing more on that timeline":    {replicaRow(9, "waiting", 2, exhausted), false, true, "it isn't connected to its source"},
		"its source is gone":                              {replicaRow(8, "", 9, "", 10, "", 2, exhausted), false, true, "it isn't connected to its source"},
		"half a change is the last that it received":      {replicaRow(8, "", 4, "0/5000010", 2, exhausted), false, true, "it isn't connected to its source"},
		"half a change, and the process still reads":      {replicaRow(8, "", 4, "0/5000010", 2, ""), false, false, "it isn't connected to its source"},
		"it was just started, and reads what it has":      {replicaRow(8, "", 4, "", 2, "", 5, ""), false, false, ""},
		"it was started, has read all, and follows none":  {replicaRow(8, "", 4, "", 2, exhausted, 5, ""), false, true, ""},
		"it was told to stop executing":                   {replicaRow(3, "t", 4, "0/5000010"), true, false, "it has stopped executing what it receives, until it is restarted with as much room as its source has, or told to go on"},
		"it is fenced, and its receiver is still there":   {replicaRow(5, ""), false, true, ""},
		"it is fenced, and has executed all it had by it": {replicaRow(5, "", 8, "", 9, "", 10, "", 2, exhausted), false, true, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := parseAnswer(row.answer)
			if a.isReceiving() != row.isReceiving || a.isDrained() != row.isDraind || failure(a, false) != row.failure {
				t.Errorf("receiving %t, drained %t, failure %q", a.isReceiving(), a.isDrained(), failure(a, false))
			}
		})
	}
}

func TestWhatAReplicaConnectsWithNamesItAndItsSource(t *testing.T) {
	source := plan.Source{Member: "orders-0", Host: "orders-0.orders-members.ns.svc", Port: 5432, Acknowledges: true}
	for _, source.Acknowledges = range []bool{true, false} {
		text, err := conninfo("orders-1", source)
		if err != nil || hostOf(text) != source.Host || acknowledges(text) != source.Acknowledges {
			t.Errorf("%q (%v) names %q, and acknowledges: %t", text, err, hostOf(text), acknowledges(text))
		}
		if name := submatch(namePart, text); followers([]string{name}) != "orders-1" || len(name) > 63 {
			t.Errorf("its source knows it as %q", name)
		}
		if strings.ContainsAny(text, `'"\`) || strings.Contains(text, "password") {
			t.Errorf("%q has to be quoted, or holds a password", text)
		}
	}
	if hostOf("") != "" || acknowledges("") || acknowledges("host=a") {
		t.Error("nobody is a source")
	}
	for sentence, wrong := range map[string]struct {
		name   string
		source plan.Source
	}{
		"a host with a blank":  {"orders-1", plan.Source{Host: "a b", Port: 1}},
		"a host with a quote":  {"orders-1", plan.Source{Host: "a'b", Port: 1}},
		"no host":              {"orders-1", plan.Source{Port: 1}},
		"no port":              {"orders-1", plan.Source{Host: "a"}},
		"a member of no name":  {"", plan.Source{Host: "a", Port: 1}},
		"a member of two":      {"orders-1,orders-2", plan.Source{Host: "a", Port: 1}},
		"a host in upper case": {"orders-1", plan.Source{Host: "A", Port: 1}},
	} {
		var refused *dbclient.Refusal
		if text, err := conninfo(wrong.name, wrong.source); !errors.As(err, &refused) {
			t.Errorf("%s: %q (%v)", sentence, text, err)
		}
	}
}

func TestFollowersAreThoseThatAreCalledLikePods(t *testing.T) {
	got := followers([]string{"orders-2.joining", "database-manager", "orders-1", "pg_basebackup", "", "orders-1", "walreceiver x", "pg_rewind"})
	if got != "orders-1,orders-2" {
		t.Errorf("got %q", got)
	}
}

func TestWhatAPrimaryWaitsForIsReadAsItWasWritten(t *testing.T) {
	for sentence, row := range map[string]struct {
		ask   plan.Acknowledgement
		value string
	}{
		"none":                      {plan.Acknowledgement{}, ""},
		"none of some":              {plan.Acknowledgement{Names: []string{"a-1"}}, ""},
		"one of one":                {plan.Acknowledgement{Count: 1, Names: []string{"a-1"}}, `ANY 1 ("a-1")`},
		"two of three, in order":    {plan.Acknowledgement{Count: 2, Names: []string{"a-3", "a-1", "a-2"}}, `ANY 2 ("a-1", "a-2", "a-3")`},
		"as many as there ever are": {plan.Acknowledgement{Count: 1, Names: []string{"a-0", "a-1", "a-2", "a-3", "a-4", "a-5", "a-6", "a-7", "a-8", "a-9"}}, `ANY 1 ("a-0", "a-1", "a-2", "a-3", "a-4", "a-5", "a-6", "a-7", "a-8", "a-9")`},
	} {
		value, err := synchronousNames(row.ask)
		if err != nil || value != row.value || requiredBy(value) != row.ask.String() {
			t.Errorf("%s: %q (%v), which is read as %q, want %q", sentence, value, err, requiredBy(value), row.ask)
		}
	}
	for sentence, wrong := range map[string]plan.Acknowledgement{
		"more than there are":   {Count: 2, Names: []string{"a-1"}},
		"of nobody":             {Count: 1},
		"one of the same twice": {Count: 2, Names: []string{"a-1", "a-1"}},
		"anybody":               {Count: 1, Names: []string{"*"}},
		"a name with a quote":   {Count: 1, Names: []string{`a"`}},
		"less than none":        {Count: -1, Names: []string{"a-1"}},
	} {
		var refused *dbclient.Refusal
		if value, err := synchronousNames(wrong); !errors.As(err, &refused) {
			t.Errorf("%s: %q (%v)", sentence, value, err)
		}
	}
	for _, foreign := range []string{"*", "ANY 1 (*)", `FIRST 1 ("a-1")`, `"a-1"`, `ANY 1 ("a-1", *)`} {
		if got := requiredBy(foreign); got != foreign {
			t.Errorf("%s is read as %q", foreign, got)
		}
	}
}

func TestAReplicaIsCurrentWhileItKeepsUp(t *testing.T) {
	const file = lsn(16 << 20)
	type look struct {
		second           int
		source, executed lsn
		lag              int
		isCurrent        bool
	}
	for sentence, looks := range map[string][]look{
		"it has all":                         {{0, 5, 5, 0, true}, {2, 5, 5, 0, true}},
		"it has more than it heard of":       {{0, 5, 7, 0, true}},
		"it is new, and has much to do":      {{0, 10 * file, 0, 0, false}, {2, 11 * file, 5 * file, 2, false}, {4, 11 * file, 10*file + 1, 2, true}, {6, 11 * file, 11 * file, 0, true}},
		"it is new, and has little to do":    {{0, file, 0, 0, true}},
		"a burst makes it no less current":   {{0, 5, 5, 0, true}, {5, 50 * file, 6, 0, true}, {10, 60 * file, 40 * file, 5, true}, {15, 60 * file, 60 * file, 0, true}},
		"it has long not executed":           {{0, 5, 5, 0, true}, {2, 7, 5, 0, true}, {12, 9, 5, 10, true}, {17, 9, 5, 15, false}, {19, 9, 6, 17, false}, {20, 9, 9, 0, true}},
		"its source rested, which is no lag": {{0, 5, 5, 0, true}, {3600, 9, 5, 0, true}, {3602, 9, 9, 0, true}},
		"it has another source with less":    {{0, 50, 5, 0, true}, {10, 7, 5, 0, true}, {24, 7, 5, 14, true}, {25, 7, 5, 15, false}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var p pace
			start := time.Unix(0, 0)
			for _, l := range looks {
				lag := p.see(start.Add(time.Duration(l.second)*time.Second), l.source, l.executed)
				if lag != time.Duration(l.lag)*time.Second || p.isCurrent != l.isCurrent {
					t.Fatalf("after %d s the lag is %s, current %t", l.second, lag, p.isCurrent)
				}
			}
		})
	}
}

func TestALongLagIsRememberedInLittleRoom(t *testing.T) {
	var p pace
	var lag time.Duration
	for i := range 10 * remembered {
		lag = p.see(time.Unix(int64(i), 0), lsn(i+1), 0)
	}
	if want := time.Duration(10*remembered-1) * time.Second; lag != want || len(p.sights) > remembered || p.isCurrent {
		t.Errorf("the lag is %s, want %s; there are %d sights", lag, want, len(p.sights))
	}
}

func TestATimelinesFileIsRead(t *testing.T) {
	for sentence, row := range map[string]struct {
		file string
		want []passedTimeline
		fail bool
	}{
		"of the second":        {"1\t0/30002F8\tno recovery target specified\n", []passedTimeline{{1, 0x30002F8}}, false},
		"with blank lines":     {"1\t0/A\tx\n\n2\t1/B\tat restore point \"x\"\n", []passedTimeline{{1, 0xA}, {2, 1<<32 | 0xB}}, false},
		"with a comment":       {"# why\n1\t0/A\tx\n", []passedTimeline{{1, 0xA}}, false},
		"without anything":     {"", nil, false},
		"cut in the middle":    {"1\t0/A\tx\n2", nil, true},
		"with another content": {"1\there\tx\n", nil, true},
	} {
		got, err := parseHistory(row.file)
		if !reflect.DeepEqual(got, row.want) || (err != nil) != row.fail {
			t.Errorf("%s: %v (%v)", sentence, got, err)
		}
	}
}

func TestAPositionHasTheFormThatTheEngineCompares(t *testing.T) {
	w := way{system: "7412345678901234567", timeline: 4, passed: []passedTimeline{{1, 0x3000148}, {2, 0x15000000A}}}
	if got, want := w.to(0x16000060F), "7412345678901234567 1@0/3000148 2@1/5000000A 4@1/6000060F"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzAPlaceIsReadAsItWasWritten(f *testing.F) {
	f.Add(uint64(0))
	f.Add(uint64(1)<<63 | 0xA)
	f.Fuzz(func(t *testing.T, place uint64) {
		if got, isPlace := parseLSN(lsn(place).String()); !isPlace || got != lsn(place) {
			t.Errorf("%d is written %s, and read as %d (%t)", place, lsn(place), got, isPlace)
		}
	})
}
