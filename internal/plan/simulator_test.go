// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// The simulator plays a replicated database: servers with what they have received
// and executed, networks that are cut, volumes that are lost, an operator that sees
// late and dies. The decisions are the real ones. What must never happen is looked
// for after each step; what has to come about in the end, once the faults stop.
//
// A commit is a letter, and the data of a server are the letters in its order: so
// two positions compare as the beginnings of each other.

// playedEngine is how one engine replicates, as far as the decisions see it.
type playedEngine struct {
	name          string
	kind          Acknowledging
	most          int
	startsDemoted bool
	// forgets tells that a member doesn't know its position after a restart, until
	// it has synchronised, and copyAll that to follow means to copy all.
	forgets, copiesAll bool
}

func (e playedEngine) Compare(position, other string) Order {
	switch {
	case position == "" || other == "":
		return OrderUnknown
	case position == other:
		return OrderSame
	case strings.HasPrefix(other, position):
		return OrderBehind
	case strings.HasPrefix(position, other):
		return OrderAhead
	default:
		return OrderApart
	}
}
func (e playedEngine) MostAcknowledgements() int    { return e.most }
func (e playedEngine) Acknowledging() Acknowledging { return e.kind }
func (e playedEngine) DemotesAtStart() bool         { return e.startsDemoted }
func (e playedEngine) CopiesAccounts() bool         { return true }

func playedEngines() []playedEngine {
	return []playedEngine{
		{name: "by name, demoted at its start, as PostgreSQL", kind: ByName, most: 10, startsDemoted: true},
		{name: "by replica, counted, as MySQL", kind: ByReplica, most: 10},
		{name: "by replica, one, as MariaDB", kind: ByReplica, most: 1},
		{name: "by attachment, as Redis", kind: ByAttachment, most: 10, forgets: true, copiesAll: true},
	}
}

// played is one server and its volume. What is durable outlives a start.
type played struct {
	// durable
	holder    types.UID
	hasData   bool
	data      string // all that was received
	executed  int
	isPrimary bool
	source    string
	says      bool // acknowledges
	required  int
	names     []string
	cloned    string
	// until the next start
	isUp      bool
	run       int
	isUnknown bool // its position
	isApart   bool
	isDeleted bool   // its pod is being deleted
	isTold    string // the clone token that its start was told
	waiting   int    // how many of its commits were acknowledged
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

	servers       []*played
	cut           [][]bool // between servers
	deaf          []bool   // the operator doesn't reach it
	topology      Topology
	view          []seen
	unservedSince time.Time
	clock         time.Time
	made          int
	letters       int
	// acknowledged is the longest history whose every commit a client heard of.
	acknowledged string
	// isEstablished is true once the topology has said that commits are safe.
	trace  []string
	states map[uint64]struct{}
}

const simulatedStem = "db-"

func newSimulation(t *testing.T, engine playedEngine, seed uint64, members int, sync bool, states map[uint64]struct{}) *simulation {
	s := &simulation{
		t: t, engine: engine, random: rand.New(rand.NewPCG(seed, 7)), sync: sync, wanted: members,
		clock: noon(), states: states,
	}
	for i := range members {
		s.servers = append(s.servers, &played{})
		s.cut = append(s.cut, make([]bool, members))
		s.loseVolume(i)
	}
	s.deaf, s.view = make([]bool, members), make([]seen, members)
	first := s.servers[0]
	first.hasData = true
	s.topology = Topology{State: TopologyInitialized, Epoch: 1, DataID: "d", Primary: s.name(0), Holder: first.holder}
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
	s.t.Fatalf("%s: %s\nhow it came about:\n%s\nat the end:\n%s", s.engine.name, fmt.Sprintf(format, args...),
		strings.Join(s.trace[max(0, len(s.trace)-400):], "\n"), s.describe())
}

func (s *simulation) describe() string {
	var text strings.Builder
	fmt.Fprintf(&text, "topology %v; acknowledged %q; asked %q\n", s.topology.Data(), s.acknowledged, s.asked)
	for i, server := range s.servers {
		fmt.Fprintf(&text, "%s %+v deaf=%v cut=%v seen=%+v\n", s.name(i), *server, s.deaf[i], s.cut[i], s.view[i].peer)
	}
	return text.String()
}

// reaches tells whether one server reaches another.
func (s *simulation) reaches(a, b int) bool {
	return !s.cut[a][b] && s.servers[a].isUp && s.servers[b].isUp
}

// isAttached tells whether a server receives from another.
func (s *simulation) isAttached(replica, source int) bool {
	r := s.servers[replica]
	return replica != source && s.reaches(replica, source) && r.hasData && !r.isPrimary && !r.isApart && r.source == s.name(source)
}

// start does what a boot script does.
func (s *simulation) start(i int) {
	server := s.servers[i]
	if !s.exists(i) {
		return
	}
	s.made++
	server.run, server.isUp, server.isApart, server.isDeleted = s.made, false, false, false
	mayBePrimary := s.topology.startsAsPrimary() == s.name(i)
	if token := s.topology.Clones[s.name(i)]; token != "" && token != server.cloned && !mayBePrimary && s.topology.startsAsPrimary() != nobody {
		server.hasData, server.isTold = false, token
	}
	if server.isPrimary && !mayBePrimary {
		server.isPrimary, server.source = false, ""
	}
	server.isUnknown = s.engine.forgets && !server.isPrimary
	if server.hasData {
		server.isUp, server.waiting = true, len(server.data)
		if server.isPrimary {
			server.executed = len(server.data)
		}
		return
	}
	if s.engine.copiesAll && s.topology.State == TopologyInitialized && s.topology.Primary != s.name(i) {
		// It starts with nothing, and waits to be told whom to follow.
		server.isUp, server.hasData, server.data, server.executed, server.isPrimary, server.source, server.isUnknown = true, true, "", 0, false, "", true
		server.cloned = cmp.Or(server.isTold, server.cloned)
	}
}

// copyFrom lets a server that has no data get its primary's, if it is reached.
func (s *simulation) copyData(i int) bool {
	server := s.servers[i]
	from := s.index(s.topology.Primary)
	if server.isUp || server.hasData || s.engine.copiesAll || from == i || from < 0 || s.cut[i][from] {
		return false
	}
	source := s.servers[from]
	if !source.isUp || !source.hasData {
		return false
	}
	s.made++
	server.hasData, server.data, server.executed = true, source.data[:source.executed], source.executed
	server.isPrimary, server.source, server.says, server.required, server.names = false, s.name(from), false, 0, nil
	server.cloned, server.isTold = cmp.Or(server.isTold, server.cloned), ""
	server.run, server.isUp, server.isApart, server.isUnknown, server.waiting = s.made, true, false, false, len(server.data)
	return true
}

func (s *simulation) kill(i int) { s.servers[i].isUp = false }

func (s *simulation) loseVolume(i int) {
	s.made++
	*s.servers[i] = played{holder: types.UID(fmt.Sprintf("v%d", s.made))}
}

// write adds a commit to a server that takes writes.
func (s *simulation) write(i int) bool {
	server := s.servers[i]
	if !server.isUp || !server.isPrimary || server.executed != len(server.data) || len(server.data) > 40 {
		return false
	}
	s.letters++
	server.data += string(rune('a' + s.letters%26))
	server.executed++
	return true
}

// replicate lets a replica receive one commit more.
func (s *simulation) replicate(i int) bool {
	server := s.servers[i]
	from := s.index(server.source)
	if server.source == "" || from < 0 || from >= len(s.servers) || !s.isAttached(i, from) {
		return false
	}
	source := s.servers[from]
	if s.engine.copiesAll && server.isUnknown {
		if source.isUnknown {
			return false
		}
		server.data, server.executed, server.isUnknown = source.data, len(source.data), false
		return true
	}
	sent := source.data
	if !source.isPrimary {
		sent = sent[:source.executed]
	}
	switch {
	case len(server.data) < len(sent) && strings.HasPrefix(sent, server.data):
		server.data = sent[:len(server.data)+1]
		return true
	case !strings.HasPrefix(sent, server.data) && !strings.HasPrefix(server.data, sent):
		if s.engine.copiesAll {
			server.isUnknown = true
		} else {
			server.isApart = true
		}
		return true
	}
	return false
}

func (s *simulation) execute(i int) {
	if server := s.servers[i]; server.isUp && server.executed < len(server.data) {
		server.executed++
	}
}

// acknowledge lets a primary tell clients of commits that enough replicas have.
func (s *simulation) acknowledge(i int) bool {
	server := s.servers[i]
	if !server.isUp || !server.isPrimary || server.waiting >= len(server.data) {
		return false
	}
	required := server.required
	if s.engine.kind == ByAttachment && s.sync {
		// The client asks: WAIT k, of all the members that it has ever known.
		required = acknowledgementsOf(len(s.servers)-1, s.engine.most)
	}
	have := 0
	for j, other := range s.servers {
		counts := s.isAttached(j, i) && len(other.data) > server.waiting && !other.isUnknown
		switch s.engine.kind {
		case ByName:
			counts = counts && slices.Contains(server.names, s.name(j))
		case ByReplica:
			counts = counts && other.says
		}
		if counts {
			have++
		}
	}
	if have < required {
		return false
	}
	server.waiting++
	if required == 0 || !s.sync {
		// It rests on the primary alone: nothing was promised.
		return true
	}
	told := server.data[:server.waiting]
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
	server, name := s.servers[i], s.name(i)
	p := peer{server: Server{Pod: PodRef{Name: name, UID: types.UID(fmt.Sprintf("p%s", server.holder))}, RunID: strconv.Itoa(server.run)}, holder: server.holder}
	p.isStopped = !server.isUp && !s.deaf[i]
	p.isLeaving = server.isDeleted
	p.label = s.view[i].peer.label
	if server.isUp && !s.deaf[i] {
		p.answers, p.askedAt, p.role = true, s.clock, v1alpha1.MemberRoleReplica
		if server.isPrimary {
			p.role = v1alpha1.MemberRolePrimary
		}
		p.replication = s.replicationOf(i)
		if !server.isUnknown {
			p.progress.Position = "." + server.data
		}
		p.progress.IsDrained = server.executed == len(server.data)
	}
	s.view[i] = seen{peer: p}
}

func (s *simulation) replicationOf(i int) Replication {
	server := s.servers[i]
	r := Replication{Acknowledges: server.says, IsApart: server.isApart}
	if server.source != "" {
		r.Source = hostInSimulation(server.source)
		from := s.index(server.source)
		r.IsReceiving = s.isAttached(i, from)
		r.IsCurrent = r.IsReceiving && !server.isUnknown && len(server.data)+1 >= len(s.servers[from].data)
	}
	required := Acknowledgement{Count: server.required}
	if s.engine.kind == ByName {
		required.Names = server.names
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
	if m.stopped != "" && s.servers[s.index(m.stopped)].isUp {
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
	for i := range s.servers {
		if !s.exists(i) {
			s.kill(i)
		}
	}
}

func (s *simulation) serverOf(server Server) *played {
	i := s.index(server.Pod.Name)
	found := s.servers[i]
	if s.deaf[i] || !found.isUp || strconv.Itoa(found.run) != server.RunID {
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
		if server == nil || server.executed != len(server.data) {
			return false
		}
		if s.sync && !strings.HasPrefix(server.data, s.acknowledged) {
			s.fail("%s with %q, which lacks something that was acknowledged: %q", action, server.data, s.acknowledged)
		}
		server.required, server.names = action.Required.Count, action.Required.Names
		server.isPrimary, server.source, server.waiting, server.isUnknown = true, "", len(server.data), false
		s.checkPrimaries(action)
	case Demote:
		server := s.serverOf(action.Server)
		if server == nil || !server.isPrimary || server.waiting < len(server.data) {
			return false
		}
		server.isPrimary, server.source = false, ""
	case Fence:
		server := s.serverOf(action.Server)
		if server == nil {
			return false
		}
		server.source, server.says = "", false
	case Follow:
		server := s.serverOf(action.Server)
		if server == nil || server.isPrimary {
			return false
		}
		if server.source != action.Source.Member && s.engine.copiesAll {
			server.isUnknown = true
		}
		server.source, server.says, server.isApart = action.Source.Member, action.Source.Acknowledges, false
	case Require:
		server := s.serverOf(action.Server)
		if server == nil || !server.isPrimary {
			return false
		}
		server.required, server.names = action.Required.Count, action.Required.Names
	case Evict:
		i := s.index(action.Pod)
		if s.deaf[i] {
			s.servers[i].isDeleted = true
			return true
		}
		s.kill(i)
	default:
		s.fail("nobody knows how to %s", action)
	}
	return true
}

// checkPrimaries looks for a second server that could acknowledge writes.
func (s *simulation) checkPrimaries(action Action) {
	for i, server := range s.servers {
		if s.name(i) == s.topology.Primary || !server.isUp || !server.isPrimary {
			continue
		}
		if !s.sync {
			s.fail("%s while %s takes writes, too", action, s.name(i))
		}
		if s.engine.kind == ByAttachment || server.required == 0 && s.acknowledged == "" {
			continue
		}
		have := 0
		for j, other := range s.servers {
			if s.isAttached(j, i) && (s.engine.kind == ByName && slices.Contains(server.names, s.name(j)) || s.engine.kind == ByReplica && other.says) {
				have++
			}
		}
		if server.required == 0 || have >= server.required {
			s.fail("%s while %s can acknowledge writes, too", action, s.name(i))
		}
	}
}

// event lets something happen. What goes on by itself is more frequent than
// faults are, and faults meet the primary more often than the others.
func (s *simulation) event() {
	n := len(s.servers)
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
	for _, i := range s.random.Perm(len(s.servers)) {
		s.probe(i)
		s.clock = s.clock.Add(300 * time.Millisecond)
	}
	return s.pass(steps)
}

// traffic is what servers do by themselves.
func (s *simulation) traffic(i int) {
	server := s.servers[i]
	switch roll := s.random.IntN(10); {
	case roll < 3:
		if s.write(i) {
			s.note("write at %d: %q", i, server.data)
		}
	case roll < 7:
		j := s.random.IntN(len(s.servers))
		if s.replicate(j) {
			s.note("%d receives: %q", j, s.servers[j].data)
		}
	case roll < 8:
		s.execute(s.random.IntN(len(s.servers)))
	default:
		if s.acknowledge(i) {
			s.note("%d acknowledges: %q", i, server.data[:server.waiting])
		}
	}
}

// recovery is what mends by itself.
func (s *simulation) recovery(i, j int) {
	switch s.random.IntN(4) {
	case 0:
		for k, server := range s.servers {
			if !server.isUp {
				s.note("start %d", k)
				s.start(k)
				return
			}
		}
	case 1:
		for k := range s.servers {
			if s.copyData(k) {
				s.note("%d copies: %q", k, s.servers[k].data)
			}
		}
	case 2:
		s.note("mend %d with %d", i, j)
		s.cut[i][j], s.cut[j][i] = false, false
	default:
		s.note("heard %d", i)
		s.deaf[i] = false
	}
}

// fault is what goes wrong, and what users do.
func (s *simulation) fault(i, j int) {
	switch s.random.IntN(11) {
	case 10:
		s.wanted = 1 + s.random.IntN(len(s.servers))
		s.note("%d are wanted", s.wanted)
		s.scaleIn()
	case 0, 1, 2:
		s.note("kill %d", i)
		s.kill(i)
	case 3:
		s.note("cut %d from %d", i, j)
		s.cut[i][j], s.cut[j][i] = i != j, i != j
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
		s.view, s.unservedSince = make([]seen, len(s.servers)), time.Time{}
		for k, server := range s.servers {
			s.view[k].peer = peer{server: Server{Pod: PodRef{Name: s.name(k), UID: "p" + server.holder}}, holder: server.holder}
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
	put(s.engine.name, s.topology.SwitchedTo, s.topology.Primary, string(s.topology.Holder), joinPairs(s.topology.Members), joinClones(s.topology.Clones), s.acknowledged, s.asked)
	flags(s.topology.IsHandingOver, s.topology.Required&1 != 0, s.topology.Required&2 != 0, s.topology.Required&4 != 0)
	for i, server := range s.servers {
		put(string(server.holder), server.data, server.source, strings.Join(server.names, ","), server.cloned, s.view[i].peer.progress.Position)
		flags(server.hasData, server.isPrimary, server.says, server.isUp, server.isUnknown, server.isApart, server.isDeleted, s.deaf[i], s.view[i].peer.answers)
		flags(s.cut[i]...)
		_, _ = sum.Write([]byte{byte(server.executed), byte(server.required), byte(server.waiting)}) // a hash never fails
	}
	s.states[sum.Sum64()] = struct{}{}
}

// converge lets nothing bad happen any more, and expects that all is well in the
// end, or that a human is told why not.
func (s *simulation) converge() {
	s.wanted = len(s.servers)
	for i := range s.servers {
		s.deaf[i], s.asked, s.mustMove = false, "", false
		for j := range s.servers {
			s.cut[i][j] = false
		}
	}
	s.note("nothing happens any more")
	s.trace = s.trace[max(0, len(s.trace)-400):]
	var last move
	for round, quiet := 0, 0; round < 80 && quiet < 4; round++ {
		for _, i := range s.random.Perm(len(s.servers)) {
			if s.servers[i].isDeleted {
				s.kill(i)
			}
			if !s.servers[i].isUp {
				s.start(i)
			}
			s.copyData(i)
			for range 42 {
				s.replicate(i)
				s.execute(i)
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
	if last.finding != nil && last.finding.IsTrouble && s.servers[s.index(s.topology.Primary)].holder != s.topology.Holder {
		return // its volume is gone for good, and a human is told
	}
	primary := s.index(s.topology.Primary)
	if s.servers[primary].holder != s.topology.Holder && len(s.topology.Members) == 0 {
		return // nobody ever had its data
	}
	if !last.topology.equal(s.topology) || len(last.actions) > 0 || last.finding != nil {
		s.fail("it doesn't come to rest: %v, %+v, topology %v", last.actions, last.finding, last.topology.Data())
	}
	s.checkRest(primary)
}

func (s *simulation) checkRest(primary int) {
	for i, server := range s.servers {
		isPrimary := i == primary
		if server.isPrimary != isPrimary || !server.isUp || server.data != s.servers[primary].data || !isPrimary && server.source != s.name(primary) {
			s.fail("%s isn't as it should be", s.name(i))
		}
	}
	if s.sync && !strings.HasPrefix(s.servers[primary].data, s.acknowledged) {
		s.fail("what was acknowledged is lost: %q", s.acknowledged)
	}
	want := acknowledgementsOf(len(s.servers)-1, s.engine.most)
	if !s.sync {
		want = 0
	}
	if len(s.topology.Members) != len(s.servers)-1 || s.topology.Required != want || s.servers[primary].required != want {
		s.fail("%d of %d are required, want %d of %d", s.servers[primary].required, len(s.topology.Members), want, len(s.servers)-1)
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
		t.Run(engine.name, func(t *testing.T) {
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
