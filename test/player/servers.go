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
	// groups are the databases, by namespace and stem; members what runs, or is about
	// to, by the address of its pod.
	groups  map[string]*played.Group
	members map[string]*member
	// passwords are all that servers ever had, by namespace.
	passwords map[string]map[string]bool
}

// member is the server of one pod.
type member struct {
	namespace string
	group     *played.Group
	server    *played.Server
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
	return &servers{groups: map[string]*played.Group{}, members: map[string]*member{}, passwords: map[string]map[string]bool{}}
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

// run lets the servers do what they do by themselves.
func (s *servers) run(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.mu.Lock()
			for _, m := range s.members {
				m.goOn()
			}
			s.mu.Unlock()
		}
	}
}

// goOn copies, receives, executes and acknowledges what there is.
func (m *member) goOn() {
	if m.copiesFrom != "" && m.group.CopyData(m.server, m.group.Find(m.copiesFrom)) {
		m.copiesFrom = ""
	}
	for range 100 {
		m.server.Execute()
		if !m.group.Replicate(m.server) {
			break
		}
	}
	m.server.Execute()
	for m.group.Acknowledge(m.server, m.server.Required) {
		continue
	}
}

// start does what a boot script does in a pod: it returns how it ended, if no
// server comes of it. The server is up at once, or once it has copied its data.
func (s *servers) start(pod *corev1.Pod, address string, told boot) *exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	database := pod.Namespace + "/" + cmp.Or(pod.Labels[v1alpha1.LabelStem], pod.Name)
	group := s.groups[database]
	if group == nil {
		group = played.NewGroup(kindOf(told.engine))
		s.groups[database] = group
	}
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
	m := &member{namespace: pod.Namespace, group: group, server: server, told: told}
	s.members[address] = m
	if !server.HasData && !isNew && !hasSource {
		return &exit{noData, "The volume is empty, and the database was initialised before; nothing was made in its place."}
	}
	group.Start(server, orders)
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

// end ends the server at an address.
func (s *servers) end(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[address]; m != nil {
		m.server.Kill()
		m.copiesFrom = ""
	}
}

// forget takes a pod's address away.
func (s *servers) forget(address string) {
	s.end(address)
	s.mu.Lock()
	defer s.mu.Unlock()
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
	if err := m.do(call); err != nil {
		return remote.Answer{Error: err.Error()}
	}
	if call.Verb == remote.State {
		return remote.Answer{State: m.state(call)}
	}
	return remote.Answer{}
}

// do carries out an order.
func (m *member) do(call remote.Call) error {
	isDone := true
	switch call.Verb {
	case remote.State:
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
