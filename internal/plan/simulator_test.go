// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/internal/played"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// The simulator plays a replicated database: servers with what they have received
// and executed, networks that are cut, volumes that are lost, an operator that sees
// late and dies. The decisions are the real ones. What must never happen is looked
// for after each step; what has to come about in the end, once the faults stop.
// Package played has the servers.

// playedEngine is how one engine replicates, as far as the decisions see it.
type playedEngine struct {
	played.Kind
	most          int
	startsDemoted bool
}

func (e playedEngine) Compare(position, other string) Order {
	return Order(played.Compare(position, other))
}
func (e playedEngine) MostAcknowledgements() int { return e.most }
func (e playedEngine) Acknowledging() Acknowledging {
	return map[played.Counting]Acknowledging{played.Named: ByName, played.Willing: ByReplica, played.Attached: ByAttachment}[e.Counts]
}
func (e playedEngine) DemotesAtStart() bool { return e.startsDemoted }
func (e playedEngine) CopiesAccounts() bool { return true }

func playedEngines() []playedEngine {
	return []playedEngine{
		{Kind: played.Kind{Name: "by name, demoted at its start, as PostgreSQL", Counts: played.Named}, most: 10, startsDemoted: true},
		{Kind: played.Kind{Name: "by replica, counted, as MySQL", Counts: played.Willing}, most: 10},
		{Kind: played.Kind{Name: "by replica, one, as MariaDB", Counts: played.Willing}, most: 1},
		{Kind: played.Kind{Name: "by attachment, as Redis", Counts: played.Attached, Forgets: true, CopiesAll: true}, most: 10},
	}
}

// seen is what the operator last heard of a server, which says nothing more once it
// has done something to it.
type seen struct {
	peer    peer
	isStale bool
}

type simulation struct {
	t        *testing.T
	engine   playedEngine
	random   *rand.Rand
	sync     bool
	wanted   int
	asked    string
	mustMove bool

	*played.Group
	deaf          []bool // the operator doesn't reach it
	deleted       []bool // its pod is being deleted
	topology      Topology
	view          []seen
	unservedSince time.Time
	clock         time.Time
	letters       int
	// acknowledged is the longest history whose every commit a client heard of.
	acknowledged string
	trace        []string
	states       map[uint64]struct{}
}

const simulatedStem = "db-"

func newSimulation(t *testing.T, engine playedEngine, seed uint64, members int, sync bool, states map[uint64]struct{}) *simulation {
	s := &simulation{
		t: t, engine: engine, random: rand.New(rand.NewPCG(seed, 7)), sync: sync, wanted: members,
		clock: noon(), states: states,
	}
	var names []string
	for i := range members {
		names = append(names, s.name(i))
	}
	s.Group = played.NewGroup(engine.Kind, names...)
	s.deaf, s.deleted, s.view = make([]bool, members), make([]bool, members), make([]seen, members)
	first := s.Servers[0]
	first.HasData = true
	s.topology = Topology{State: TopologyInitialized, Epoch: 1, DataID: "d", Primary: s.name(0), Holder: types.UID(first.Holder)}
	for i := range members {
		s.start(i)
		s.probe(i)
	}
	return s
}

func (s *simulation) name(i int) string     { return simulatedStem + strconv.Itoa(i) }
func (s *simulation) index(name string) int { return ordinalOf(name) }

func (s *simulation) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf(format, args...))
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s: %s\nhow it came about:\n%s\nat the end:\n%s", s.engine.Name, fmt.Sprintf(format, args...),
		strings.Join(s.trace[max(0, len(s.trace)-400):], "\n"), s.describe())
}

// cutsOf tells of each server whether another one doesn't reach it.
func (s *simulation) cutsOf(server *played.Server) []bool {
	cuts := make([]bool, 0, len(s.Servers))
	for _, other := range s.Servers {
		cuts = append(cuts, s.IsCut(server, other))
	}
	return cuts
}

func (s *simulation) describe() string {
	var text strings.Builder
	fmt.Fprintf(&text, "topology %v; acknowledged %q; asked %q\n", s.topology.Data(), s.acknowledged, s.asked)
	for i, server := range s.Servers {
		fmt.Fprintf(&text, "%s %+v deaf=%v cut=%v seen=%+v\n", s.name(i), *server, s.deaf[i], s.cutsOf(server), s.view[i].peer)
	}
	return text.String()
}

// start does what a boot script does.
func (s *simulation) start(i int) {
	if !s.exists(i) {
		return
	}
	s.deleted[i] = false
	first := s.topology.startsAsPrimary()
	orders := played.Orders{MayBePrimary: first == s.name(i), MayJoin: s.topology.State == TopologyInitialized && s.topology.Primary != s.name(i)}
	if !orders.MayBePrimary && first != nobody {
		orders.Clone = s.topology.Clones[s.name(i)]
	}
	s.Start(s.Servers[i], orders)
}

// copyData lets a server that has no data get its primary's, if it is reached.
func (s *simulation) copyData(i int) bool {
	return s.CopyData(s.Servers[i], s.Find(s.topology.Primary))
}

func (s *simulation) loseVolume(i int) {
	s.LoseVolume(s.Servers[i])
	s.deleted[i] = false
}

// write adds a commit to a server that takes writes.
func (s *simulation) write(i int) bool {
	if len(s.Servers[i].Data) > 40 || !s.Servers[i].Write('a'+rune((s.letters+1)%26)) {
		return false
	}
	s.letters++
	return true
}

// acknowledge lets a primary tell clients of commits that enough replicas have.
func (s *simulation) acknowledge(i int) bool {
	server := s.Servers[i]
	required := server.Required
	if s.engine.Counts == played.Attached && s.sync {
		// The client asks: WAIT k, of all the members that it has ever known.
		required = acknowledgementsOf(len(s.Servers)-1, s.engine.most)
	}
	if !s.Acknowledge(server, required) {
		return false
	}
	if required == 0 || !s.sync {
		// It rests on the primary alone: nothing was promised.
		return true
	}
	told := server.Data[:server.Waiting]
	switch {
	case strings.HasPrefix(told, s.acknowledged):
		s.acknowledged = told
	case !strings.HasPrefix(s.acknowledged, told):
		s.fail("%s acknowledges %q, and lacks what was acknowledged: %q", s.name(i), told, s.acknowledged)
	}
	return true
}

// probe lets the operator hear of a server.
func (s *simulation) probe(i int) {
	server, name := s.Servers[i], s.name(i)
	p := peer{server: Server{Pod: PodRef{Name: name, UID: types.UID("p" + server.Holder)}, RunID: strconv.Itoa(server.Run)}, holder: types.UID(server.Holder)}
	p.isStopped = !server.IsUp && !s.deaf[i]
	p.isLeaving = s.deleted[i]
	p.label = s.view[i].peer.label
	if server.IsUp && !s.deaf[i] {
		p.answers, p.askedAt, p.role = true, s.clock, v1alpha1.MemberRoleReplica
		if server.IsPrimary {
			p.role = v1alpha1.MemberRolePrimary
		}
		p.replication = s.replicationOf(i)
		p.progress = Progress{Position: server.Position(), IsDrained: server.IsDrained()}
	}
	s.view[i] = seen{peer: p}
}

func (s *simulation) replicationOf(i int) Replication {
	server := s.Servers[i]
	r := Replication{Acknowledges: server.Acknowledges, IsApart: server.IsApart}
	if server.Source != "" {
		r.Source = hostInSimulation(server.Source)
		r.IsReceiving, r.IsCurrent = s.IsAttached(server, s.Find(server.Source)), s.IsCurrent(server)
	}
	required := Acknowledgement{Count: server.Required}
	if s.engine.Counts == played.Named {
		required.Names = server.Names
	}
	r.Required = required.String()
	return r
}

func hostInSimulation(name string) string { return name + ".members" }

// look has the operator plan once, and returns what it decided.
func (s *simulation) look() move {
	g := group{
		database: "orders", engine: s.engine, topology: s.topology, wanted: s.wanted, isSync: s.sync, asked: s.asked, mustMove: s.mustMove,
		host: hostInSimulation, port: 1, now: s.clock,
	}
	for i := range s.view {
		if s.exists(i) {
			g.peers = append(g.peers, s.view[i].peer)
		}
	}
	if g.primary().isWritable() {
		s.unservedSince = time.Time{}
	} else if s.unservedSince.IsZero() {
		s.unservedSince = s.clock
	}
	g.unservedSince = s.unservedSince
	return g.next()
}

// exists tells whether there is a pod: as many are there as are wanted, or needed.
func (s *simulation) exists(i int) bool {
	needed := max(s.wanted, s.index(s.topology.Primary)+1)
	for _, named := range s.topology.Members {
		needed = max(needed, s.index(named.Name)+1)
	}
	return i < needed
}

// pass has the operator plan and act, of which steps things succeed.
func (s *simulation) pass(steps int) move {
	for _, seen := range s.view {
		if seen.isStale {
			return move{wait: urgently} // as the controller waits for the prober
		}
	}
	m := s.look()
	if !m.topology.equal(s.topology) {
		if steps > 0 {
			s.record(m)
		}
		return m
	}
	for i, action := range m.actions {
		if i >= steps || !s.carryOut(action) {
			break
		}
	}
	return m
}

func (s *simulation) record(m move) {
	if m.stopped != "" && s.Servers[s.index(m.stopped)].IsUp {
		return // a live read shows it
	}
	s.note("  topology %v", m.topology.Data())
	s.topology = m.topology
	s.scaleIn()
}

// outdate forgets what was heard of a server before an action, which may have been
// carried out whether the operator hears so or not.
func (s *simulation) outdate(action Action) {
	var name string
	switch action := action.(type) {
	case Promote:
		name = action.Pod.Name
	case Demote:
		name = action.Pod.Name
	case Fence:
		name = action.Pod.Name
	case Follow:
		name = action.Pod.Name
	case Require:
		name = action.Pod.Name
	default:
		return
	}
	s.view[s.index(name)].isStale = true
}

// scaleIn ends the servers that have no place any more.
func (s *simulation) scaleIn() {
	for i := range s.Servers {
		if !s.exists(i) {
			s.Servers[i].Kill()
		}
	}
}

func (s *simulation) serverOf(server Server) *played.Server {
	i := s.index(server.Pod.Name)
	found := s.Servers[i]
	if s.deaf[i] || !found.IsUp || strconv.Itoa(found.Run) != server.RunID {
		return nil
	}
	return found
}

func (s *simulation) carryOut(action Action) bool {
	s.note("  %s", action)
	s.outdate(action)
	switch action := action.(type) {
	case Promote:
		server := s.serverOf(action.Server)
		if server == nil || !server.IsDrained() {
			return false
		}
		if s.sync && !strings.HasPrefix(server.Data, s.acknowledged) {
			s.fail("%s with %q, which lacks something that was acknowledged: %q", action, server.Data, s.acknowledged)
		}
		server.Promote(action.Required.Count, action.Required.Names)
		s.checkPrimaries(action)
	case Demote:
		server := s.serverOf(action.Server)
		return server != nil && server.Demote()
	case Fence:
		server := s.serverOf(action.Server)
		if server == nil {
			return false
		}
		server.Fence()
	case Follow:
		server := s.serverOf(action.Server)
		return server != nil && s.Follow(server, action.Source.Member, action.Source.Acknowledges)
	case Require:
		server := s.serverOf(action.Server)
		return server != nil && server.Require(action.Required.Count, action.Required.Names)
	case Evict:
		i := s.index(action.Pod)
		if s.deaf[i] {
			s.deleted[i] = true
			return true
		}
		s.Servers[i].Kill()
	default:
		s.fail("nobody knows how to %s", action)
	}
	return true
}

// checkPrimaries looks for a second server that could acknowledge writes.
func (s *simulation) checkPrimaries(action Action) {
	for i, server := range s.Servers {
		if s.name(i) == s.topology.Primary || !server.IsUp || !server.IsPrimary {
			continue
		}
		if !s.sync {
			s.fail("%s while %s takes writes, too", action, s.name(i))
		}
		if s.engine.Counts == played.Attached || server.Required == 0 && s.acknowledged == "" {
			continue
		}
		if server.Required == 0 || s.Counted(server, -1) >= server.Required {
			s.fail("%s while %s can acknowledge writes, too", action, s.name(i))
		}
	}
}

// event lets something happen. What goes on by itself is more frequent than
// faults are, and faults meet the primary more often than the others.
func (s *simulation) event() {
	n := len(s.Servers)
	i, j := s.random.IntN(n), s.random.IntN(n)
	if s.random.IntN(2) == 0 {
		i = max(0, s.index(s.topology.Primary))
	}
	switch roll := s.random.IntN(100); {
	case roll < 14:
		s.note("round")
		s.round(9)
	case roll < 24:
		s.note("pass")
		s.pass(s.random.IntN(4))
	case roll < 34:
		s.note("probe %d", i)
		s.probe(i)
	case roll < 70:
		s.traffic(i)
	case roll < 84:
		s.recovery(i, j)
	default:
		s.fault(i, j)
	}
	s.remember()
}

// round is a healthy second of the operator's.
func (s *simulation) round(steps int) move {
	for _, i := range s.random.Perm(len(s.Servers)) {
		s.probe(i)
		s.clock = s.clock.Add(300 * time.Millisecond)
	}
	return s.pass(steps)
}

// traffic is what servers do by themselves.
func (s *simulation) traffic(i int) {
	server := s.Servers[i]
	switch roll := s.random.IntN(10); {
	case roll < 3:
		if s.write(i) {
			s.note("write at %d: %q", i, server.Data)
		}
	case roll < 7:
		j := s.random.IntN(len(s.Servers))
		if s.Replicate(s.Servers[j]) {
			s.note("%d receives: %q", j, s.Servers[j].Data)
		}
	case roll < 8:
		s.Servers[s.random.IntN(len(s.Servers))].Execute()
	default:
		if s.acknowledge(i) {
			s.note("%d acknowledges: %q", i, server.Data[:server.Waiting])
		}
	}
}

// recovery is what mends by itself.
func (s *simulation) recovery(i, j int) {
	switch s.random.IntN(4) {
	case 0:
		for k, server := range s.Servers {
			if !server.IsUp {
				s.note("start %d", k)
				s.start(k)
				return
			}
		}
	case 1:
		for k := range s.Servers {
			if s.copyData(k) {
				s.note("%d copies: %q", k, s.Servers[k].Data)
			}
		}
	case 2:
		s.note("mend %d with %d", i, j)
		s.Cut(s.Servers[i], s.Servers[j], false)
	default:
		s.note("heard %d", i)
		s.deaf[i] = false
	}
}

// fault is what goes wrong, and what users do.
func (s *simulation) fault(i, j int) {
	switch s.random.IntN(11) {
	case 10:
		s.wanted = 1 + s.random.IntN(len(s.Servers))
		s.note("%d are wanted", s.wanted)
		s.scaleIn()
	case 0, 1, 2:
		s.note("kill %d", i)
		s.Servers[i].Kill()
	case 3:
		s.note("cut %d from %d", i, j)
		s.Cut(s.Servers[i], s.Servers[j], true)
	case 4:
		s.note("deaf %d", i)
		s.deaf[i] = true
	case 5:
		if s.random.IntN(4) == 0 {
			s.note("volume %d is lost", i)
			s.loseVolume(i)
		}
	case 6:
		s.asked = s.name(j)
		if s.random.IntN(2) == 0 {
			s.asked = ""
		}
		s.note("ask for %q", s.asked)
	case 7:
		s.note("the operator starts anew")
		s.view, s.unservedSince = make([]seen, len(s.Servers)), time.Time{}
		for k, server := range s.Servers {
			s.view[k].peer = peer{server: Server{Pod: PodRef{Name: s.name(k), UID: types.UID("p" + server.Holder)}}, holder: types.UID(server.Holder)}
		}
	default:
		s.clock = s.clock.Add(time.Duration(1+s.random.IntN(6)) * time.Second)
	}
}

// remember counts the states that were seen.
func (s *simulation) remember() {
	sum := fnv.New64a()
	put := func(texts ...string) {
		for _, text := range texts {
			_, _ = sum.Write([]byte(text)) // a hash never fails
			_, _ = sum.Write([]byte{0})
		}
	}
	flags := func(values ...bool) {
		bits := make([]byte, 0, len(values))
		for _, value := range values {
			bit := byte(1)
			if value {
				bit = 2
			}
			bits = append(bits, bit)
		}
		_, _ = sum.Write(bits) // a hash never fails
	}
	put(s.engine.Name, s.topology.SwitchedTo, s.topology.Primary, string(s.topology.Holder), joinPairs(s.topology.Members), joinClones(s.topology.Clones), s.acknowledged, s.asked)
	flags(s.topology.IsHandingOver, s.topology.Required&1 != 0, s.topology.Required&2 != 0, s.topology.Required&4 != 0)
	for i, server := range s.Servers {
		put(server.Holder, server.Data, server.Source, strings.Join(server.Names, ","), server.Cloned, s.view[i].peer.progress.Position)
		flags(server.HasData, server.IsPrimary, server.Acknowledges, server.IsUp, server.IsUnknown, server.IsApart, s.deleted[i], s.deaf[i], s.view[i].peer.answers)
		flags(s.cutsOf(server)...)
		_, _ = sum.Write([]byte{byte(server.Executed), byte(server.Required), byte(server.Waiting)}) // a hash never fails
	}
	s.states[sum.Sum64()] = struct{}{}
}

// converge lets nothing bad happen any more, and expects that all is well in the
// end, or that a human is told why not.
func (s *simulation) converge() {
	s.wanted = len(s.Servers)
	for i := range s.Servers {
		s.deaf[i], s.asked, s.mustMove = false, "", false
		for j := range s.Servers {
			s.Cut(s.Servers[i], s.Servers[j], false)
		}
	}
	s.note("nothing happens any more")
	s.trace = s.trace[max(0, len(s.trace)-400):]
	var last move
	for round, quiet := 0, 0; round < 80 && quiet < 4; round++ {
		for _, i := range s.random.Perm(len(s.Servers)) {
			if s.deleted[i] {
				s.Servers[i].Kill()
			}
			if !s.Servers[i].IsUp {
				s.start(i)
			}
			s.copyData(i)
			for range 42 {
				s.Replicate(s.Servers[i])
				s.Servers[i].Execute()
				s.acknowledge(i)
			}
			s.probe(i)
			s.clock = s.clock.Add(time.Second)
		}
		before := s.topology
		last = s.pass(9)
		quiet++
		if !before.equal(s.topology) || len(last.actions) > 0 || last.wait > 0 {
			quiet = 0
		}
		s.clock = s.clock.Add(5 * time.Second)
	}
	if last.finding != nil && last.finding.IsTrouble && s.Servers[s.index(s.topology.Primary)].Holder != string(s.topology.Holder) {
		return // its volume is gone for good, and a human is told
	}
	primary := s.index(s.topology.Primary)
	if s.Servers[primary].Holder != string(s.topology.Holder) && len(s.topology.Members) == 0 {
		return // nobody ever had its data
	}
	if !last.topology.equal(s.topology) || len(last.actions) > 0 || last.finding != nil {
		s.fail("it doesn't come to rest: %v, %+v, topology %v", last.actions, last.finding, last.topology.Data())
	}
	s.checkRest(primary)
}

func (s *simulation) checkRest(primary int) {
	for i, server := range s.Servers {
		isPrimary := i == primary
		if server.IsPrimary != isPrimary || !server.IsUp || server.Data != s.Servers[primary].Data || !isPrimary && server.Source != s.name(primary) {
			s.fail("%s isn't as it should be", s.name(i))
		}
	}
	if s.sync && !strings.HasPrefix(s.Servers[primary].Data, s.acknowledged) {
		s.fail("what was acknowledged is lost: %q", s.acknowledged)
	}
	want := acknowledgementsOf(len(s.Servers)-1, s.engine.most)
	if !s.sync {
		want = 0
	}
	if len(s.topology.Members) != len(s.Servers)-1 || s.topology.Required != want || s.Servers[primary].Required != want {
		s.fail("%d of %d are required, want %d of %d", s.Servers[primary].Required, len(s.topology.Members), want, len(s.Servers)-1)
	}
}

func TestNoFaultLosesAnAcknowledgedCommit(t *testing.T) {
	wanted := 80_000
	if text := os.Getenv("STATES"); text != "" {
		var err error
		if wanted, err = strconv.Atoi(text); err != nil {
			t.Fatalf("STATES is %q: %v", text, err)
		}
	}
	for _, engine := range playedEngines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			states := map[uint64]struct{}{}
			schedules := uint64(0)
			for ; len(states) < wanted/len(playedEngines()); schedules++ {
				s := newSimulation(t, engine, schedules, 2+int(schedules%4), schedules%5 > 0, states)
				if schedules%3 > 0 {
					s.converge() // so that all is well when it begins
				}
				for range 60 + s.random.IntN(400) {
					s.event()
				}
				s.converge()
			}
			t.Logf("%d distinct states in %d schedules", len(states), schedules)
		})
	}
}
