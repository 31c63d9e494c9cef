// SPDX-License-Identifier: Apache-2.0

package player

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/internal/played"
	"coolops.cn/database-manager/internal/played/remote"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// servers are all servers that are played.
type servers struct {
	mu sync.Mutex
	// databases are those of all servers, by namespace and stem; members what runs,
	// or is about to, by the address of its pod.
	databases map[string]*database
	members   map[string]*member
	// awake are the databases whose servers may have something to do by themselves,
	// and woken gets a value when there is one more.
	awake map[*database]bool
	woken chan struct{}
	// passwords are all that servers ever had, by namespace.
	passwords map[string]map[string]bool
}

// database is one database: its servers, and which of them are in a pod, by the
// pod's address.
type database struct {
	group   *played.Group
	members map[string]*member
}

// member is the server of one pod.
type member struct {
	namespace string
	database  *database
	group     *played.Group
	server    *played.Server
	// wasUp is what the pod was last told of the server, and turned gets a value when
	// that has changed.
	wasUp  bool
	turned chan struct{}
	// copiesFrom is whose data it waits for; empty if it doesn't.
	copiesFrom string
	// isDeaf tells that nobody reaches it.
	isDeaf bool
	told   boot
}

// boot is what a boot script finds when a container starts.
type boot struct {
	engine   string
	version  string
	holder   string
	variable map[string]string
	// adminPassword and appPassword are those of the accounts.
	adminPassword, appPassword string
	settings                   plan.Settings
}

// exit is how a boot script ends that doesn't start a server.
type exit struct {
	code    int32
	message string
}

// The exit codes of the boot scripts.
const noData = 66

func newServers() *servers {
	return &servers{
		databases: map[string]*database{}, members: map[string]*member{}, passwords: map[string]map[string]bool{},
		awake: map[*database]bool{}, woken: make(chan struct{}, 1),
	}
}

// kindOf is how an engine replicates.
func kindOf(engine string) played.Kind {
	switch v1alpha1.DatabaseType(engine) {
	case v1alpha1.DatabaseTypePostgreSQL:
		return played.Kind{Name: engine, Counts: played.Named}
	case v1alpha1.DatabaseTypeMySQL, v1alpha1.DatabaseTypeMariaDB:
		return played.Kind{Name: engine, Counts: played.Willing}
	default:
		return played.Kind{Name: engine, Counts: played.Attached, Forgets: true, CopiesAll: true}
	}
}

// pace is how long servers wait between two things that they do by themselves.
const pace = 10 * time.Millisecond

// run lets the servers do what they do by themselves. Those that have nothing to do
// cost nothing, until something happens to one of their database.
func (s *servers) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.woken:
		}
		for isLeft := true; isLeft; isLeft = s.goOn() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pace):
			}
		}
	}
}

// wake has the servers of a database look for what they may do.
func (s *servers) wake(database *database) {
	s.awake[database] = true
	select {
	case s.woken <- struct{}{}:
	default: // it is seen with the one before
	}
}

// goOn has those do something that may, and tells whether any did.
func (s *servers) goOn() (isLeft bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for database := range s.awake {
		isBusy := false
		for _, m := range database.members {
			isBusy = m.goOn() || isBusy
		}
		for _, m := range database.members {
			m.tellPod()
		}
		if !isBusy {
			delete(s.awake, database)
		}
	}
	return len(s.awake) > 0
}

// tellPod says that the server has come up, or is gone.
func (m *member) tellPod() {
	if m.server.IsUp == m.wasUp {
		return
	}
	m.wasUp = m.server.IsUp
	select {
	case m.turned <- struct{}{}:
	default: // the pod has yet to look
	}
}

// goOn copies, receives, executes and acknowledges what there is, and tells whether
// there was something.
func (m *member) goOn() (isBusy bool) {
	if m.copiesFrom != "" && m.group.CopyData(m.server, m.group.Find(m.copiesFrom)) {
		m.copiesFrom, isBusy = "", true
	}
	for range 100 {
		isBusy = m.execute() || isBusy
		if !m.group.Replicate(m.server) {
			break
		}
		isBusy = true
	}
	isBusy = m.execute() || isBusy
	for m.group.Acknowledge(m.server, m.server.Required) {
		isBusy = true
	}
	return isBusy
}

func (m *member) execute() bool {
	before := m.server.Executed
	m.server.Execute()
	return m.server.Executed != before
}

// start does what a boot script does in a pod: it returns how it ended, if no
// server comes of it. The server is up at once, or once it has copied its data.
func (s *servers) start(pod *corev1.Pod, address string, told boot) *exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := pod.Namespace + "/" + cmp.Or(pod.Labels[v1alpha1.LabelStem], pod.Name)
	found := s.databases[key]
	if found == nil {
		found = &database{played.NewGroup(kindOf(told.engine)), map[string]*member{}}
		s.databases[key] = found
	}
	group := found.group
	defer s.wake(found)
	s.note(pod.Namespace, told.adminPassword, told.appPassword)
	server := group.Find(pod.Name)
	if server == nil {
		server = group.Add(pod.Name)
	}
	if server.Holder != told.holder {
		*server = played.Server{Name: pod.Name, Holder: told.holder}
	}
	first := told.variable[plan.TopologyPrimaryVariable]
	hasSource := first != "" && first != pod.Name && told.variable[plan.MembersDomainVariable] != ""
	isNew := told.variable[plan.TopologyStateVariable] == string(plan.TopologyNew)
	orders := played.Orders{MayBePrimary: first == "" || first == pod.Name, MayMake: isNew, MayJoin: hasSource}
	for wish := range strings.FieldsSeq(told.variable[plan.TopologyCloneVariable]) {
		if name, token, _ := strings.Cut(wish, ":"); name == pod.Name && hasSource {
			orders.Clone = token
		}
	}
	m := &member{namespace: pod.Namespace, database: found, group: group, server: server, turned: make(chan struct{}, 1), told: told}
	s.members[address], found.members[address] = m, m
	if !server.HasData && !isNew && !hasSource {
		return &exit{noData, "The volume is empty, and the database was initialised before; nothing was made in its place."}
	}
	group.Start(server, orders)
	m.wasUp = server.IsUp
	if !server.IsUp {
		m.copiesFrom = first
	}
	return nil
}

// note remembers passwords.
func (s *servers) note(namespace string, passwords ...string) {
	if s.passwords[namespace] == nil {
		s.passwords[namespace] = map[string]bool{}
	}
	for _, password := range passwords {
		s.passwords[namespace][password] = true
	}
}

// isUp tells whether the server at an address answers queries.
func (s *servers) isUp(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[address]
	return m != nil && m.server.IsUp
}

// turns gets a value each time that the server at an address has come up, or is
// gone.
func (s *servers) turns(address string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[address]; m != nil {
		return m.turned
	}
	return nil
}

// end ends the server at an address.
func (s *servers) end(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[address]; m != nil {
		m.server.Kill()
		m.copiesFrom = ""
		s.wake(m.database)
	}
}

// forget takes a pod's address away.
func (s *servers) forget(address string) {
	s.end(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[address]; m != nil {
		delete(m.database.members, address)
	}
	delete(s.members, address)
}

// Answer does what an operator asks of a server.
func (s *servers) Answer(ctx context.Context, call remote.Call) remote.Answer {
	host, _, err := net.SplitHostPort(call.Target.Address)
	if err != nil {
		return remote.Answer{Error: err.Error()}
	}
	s.mu.Lock()
	m := s.members[host]
	if m != nil && m.isDeaf {
		s.mu.Unlock()
		<-ctx.Done() // of the caller, who gives up
		return remote.Answer{}
	}
	defer s.mu.Unlock()
	switch {
	case m == nil:
		return remote.Answer{Error: "no route to the host"}
	case !m.server.IsUp:
		return remote.Answer{Error: "the connection is refused"}
	case call.Target.Password != m.told.adminPassword:
		return remote.Answer{Error: "the password of the operator's account is refused"}
	}
	if call.Verb == remote.SetPassword {
		s.note(m.namespace, call.Target.AppPassword)
	}
	if call.Verb == remote.State {
		return remote.Answer{State: m.state(call)}
	}
	if err := m.do(call); err != nil {
		return remote.Answer{Error: err.Error()}
	}
	s.wake(m.database)
	return remote.Answer{}
}

// do carries out an order.
func (m *member) do(call remote.Call) error {
	isDone := true
	switch call.Verb {
	case remote.Promote:
		isDone = m.server.Promote(call.Required.Count, call.Required.Names)
	case remote.Configure:
		maps.Copy(m.told.settings, call.Settings)
	case remote.SetPassword:
		m.told.appPassword = call.Target.AppPassword
	case remote.Follow:
		isDone = m.group.Follow(m.server, call.Source.Member, call.Source.Acknowledges)
	case remote.Fence:
		isDone = !m.server.IsPrimary
		if isDone {
			m.server.Fence()
		}
	case remote.Demote:
		isDone = m.server.Demote()
	case remote.Require:
		isDone = m.server.Require(call.Required.Count, call.Required.Names)
	default:
		return fmt.Errorf("nobody knows the verb %q", call.Verb)
	}
	if !isDone {
		return fmt.Errorf("it can't %s now", strings.ToLower(string(call.Verb)))
	}
	return nil
}

// state is what the server says of itself.
func (m *member) state(call remote.Call) plan.EngineState {
	server := m.server
	state := plan.EngineState{
		Role: v1alpha1.MemberRoleReplica, Version: m.told.version, RunID: strconv.Itoa(server.Run), Settings: m.settings(call.Target.ParameterNames()).String(),
		Progress: plan.Progress{Position: server.Position(), IsDrained: server.IsDrained()},
		Replication: plan.Replication{
			Acknowledges: server.Acknowledges, IsApart: server.IsApart, Followers: m.followers(),
		},
	}
	if server.IsPrimary {
		state.Role = v1alpha1.MemberRolePrimary
	}
	if server.Source != "" {
		source := m.group.Find(server.Source)
		state.Replication.Source = server.Source + "." + m.told.variable[plan.MembersDomainVariable]
		state.Replication.IsReceiving = source != nil && m.group.IsAttached(server, source)
		state.Replication.IsCurrent = m.group.IsCurrent(server)
	}
	required := plan.Acknowledgement{Count: server.Required}
	if m.group.Kind.Counts == played.Named {
		required.Names = server.Names
	}
	if server.IsPrimary {
		state.Replication.Required = required.String()
	}
	if call.Target.AppUsername != "" {
		state.Password = plan.PasswordDiffers
		if call.Target.AppPassword == m.told.appPassword {
			state.Password = plan.PasswordSet
		}
	}
	return state
}

func (m *member) followers() string {
	var names []string
	for _, other := range m.group.Servers {
		if m.group.IsAttached(other, m.server) {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// settings are the values of parameters, by the names that were asked for.
func (m *member) settings(names []string) plan.Settings {
	values := plan.Settings{}
	for _, name := range names {
		values[name] = m.told.settings[name]
	}
	return values
}
