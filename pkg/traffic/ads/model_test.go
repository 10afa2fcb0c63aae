// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// proofs is what all streams of a test have in common.
type proofs struct {
	proven map[string]bool
	last   map[ads.Key]*ads.Resource
}

func newProofs() *proofs {
	return &proofs{proven: map[string]bool{}, last: map[ads.Key]*ads.Resource{}}
}

func id(r *ads.Resource) string { return fmt.Sprint(r.Type, " ", r.Name, " ", r.Version) }

func (p *proofs) Proven(r *ads.Resource) bool { return p.proven[id(r)] }
func (p *proofs) Prove(r *ads.Resource) {
	p.proven[id(r)], p.last[ads.Key{Type: r.Type, Name: r.Name}] = true, r
}
func (p *proofs) Last(k ads.Key) *ads.Resource { return p.last[k] }

// nothingThere stands for endpoints and routes that are not there.
func nothingThere(k ads.Key) *ads.Resource {
	if k.Type == ads.Cluster || k.Type == ads.Listener {
		return nil
	}
	return &ads.Resource{Type: k.Type, Name: k.Name, Version: ads.Version{Hash: "none"}}
}

// service is what the translation knows: which arms there are, and what of it
// changed how often.
type service struct {
	arms               []string
	route, ends, shape int
}

// model is a mesh of some services, one stream and its Envoy, and the network
// between them.
type model struct {
	t        *rapid.T
	now      time.Time
	services map[string]*service
	// former is the view before the present one.
	view, former *ads.View
	proofs       *proofs
	stream       *ads.Stream
	envoy        *envoy
	down         []ads.Send
	// kept are answers that the proxy keeps back.
	kept []ads.Request
	// greeted are the types of which this stream has sent anything.
	greeted map[ads.Type]bool
	// late are routes that were told to be late, bad what Envoy refuses.
	late, bad map[string]bool
	// stuck says that a cluster could not be built in this run.
	stuck     bool
	removedAt map[string]time.Time
	decisions int
}

func newModel(t *rapid.T) *model {
	m := &model{
		t: t, now: time.Unix(1_800_000_000, 0), services: map[string]*service{}, proofs: newProofs(), envoy: newEnvoy(),
		late: map[string]bool{}, bad: map[string]bool{}, removedAt: map[string]time.Time{},
	}
	m.view = m.compile()
	m.envoy.stuck = func(r *ads.Resource) bool { return cannotBeBuilt(r.Name) && !m.bad[id(r)] }
	m.envoy.bad = func(r *ads.Resource) bool { return m.bad[id(r)] }
	m.envoy.partial = func(i int) bool { return i%2 == 0 }
	m.envoy.took, m.envoy.went = m.took, m.went
	m.reconnect(false)
	return m
}

func cannotBeBuilt(cluster string) bool {
	return strings.HasSuffix(cluster, "|stuck") || strings.HasSuffix(cluster, "|mute")
}

// compile makes the view of the services as they are.
func (m *model) compile() *ads.View {
	var all []*ads.Resource
	add := func(r *ads.Resource) {
		if old := m.view.Get(r.Type, r.Name); old != nil && old.Version == r.Version {
			r = old // what did not change stays the same
		}
		all = append(all, r)
	}
	for name, s := range m.services {
		for _, arm := range s.arms {
			add(&ads.Resource{Type: ads.Cluster, Name: arm, Version: ads.Version{Hash: fmt.Sprint("c", s.shape)}, Inline: arm[len(arm)-1] == 'i', Body: make([]byte, 10)})
			add(&ads.Resource{Type: ads.Endpoints, Name: arm, Version: ads.Version{Hash: fmt.Sprint("e", s.ends)}, Body: make([]byte, 10)})
		}
		add(&ads.Resource{Type: ads.Listener, Name: name, Version: ads.Version{Hash: "l"}, Body: make([]byte, 10)})
		add(&ads.Resource{
			Type: ads.Route, Name: name, Clusters: slices.Clone(s.arms), Body: make([]byte, 10),
			Version: ads.Version{Sequence: uint64(s.route), Hash: fmt.Sprint("r", s.route)}, //nolint:gosec // small
		})
	}
	return ads.NewView(all...)
}

// decided counts decisions about routes: a sequence goes on even when a service is
// removed and comes back.
func (m *model) decided() int {
	m.decisions++
	return m.decisions
}

func (m *model) publish() {
	before := m.view
	m.view = m.compile()
	m.former = before
	for _, name := range before.Names(ads.Cluster) {
		if m.view.Get(ads.Cluster, name) == nil {
			m.removedAt[name] = m.now
		}
	}
	m.do(m.stream.Publish(m.now, m.view, ads.Diff(before, m.view)))
}

func (m *model) reconnect(withVersions bool) { m.reconnectTo(m.view, withVersions) }

// reconnectTo begins a stream with a replica that has this view.
func (m *model) reconnectTo(view *ads.View, withVersions bool) {
	m.down, m.kept, m.greeted = nil, nil, map[ads.Type]bool{}
	m.stream = ads.NewStream(ads.Config{Batch: 3, Window: 60}, m.proofs, nothingThere, view)
	m.envoy.connect(withVersions)
}

func (m *model) do(effects []ads.Effect) {
	for _, e := range effects {
		switch x := e.(type) {
		case ads.Send:
			m.down = append(m.down, x)
			m.sent(x)
		case ads.Late:
			m.late[id(x.Route)] = true
		case ads.Rejected:
			if !m.bad[id(x.Resource)] {
				m.t.Fatalf("%s counts as refused, and is not", id(x.Resource))
			}
		case ads.Stale:
			m.t.Fatalf("a nonce is not known: %v", x)
		case ads.Withheld:
			if !m.stuck {
				m.t.Fatalf("%s counts as one that cannot be built, and is not", id(x.Cluster))
			}
			m.bad[id(x.Cluster)] = true // it is not sent again
		case ads.Acked:
			for _, r := range x.Resources {
				claimed := m.envoy.claimed[ads.Key{Type: r.Type, Name: r.Name}] == r.Version.String()
				if r.Type == ads.Cluster && m.envoy.stuck(r) && !claimed {
					m.t.Fatalf("%s counts as acknowledged, and can never be built", id(r))
				}
			}
		case ads.Stalled:
		}
	}
}

// sent checks what holds for every response.
func (m *model) sent(s ads.Send) {
	if len(s.Resources)+len(s.Removed) == 0 && m.greeted[s.Type] {
		m.t.Fatalf("an empty response of %v, and not the first one", s.Type)
	}
	m.greeted[s.Type] = true
	for _, r := range s.Resources {
		if (s.Type == ads.Endpoints || s.Type == ads.Route) && len(s.Resources) > 1 && !m.proofs.Proven(r) && !empty(r) {
			m.t.Fatalf("%s, which nobody has acknowledged yet, travels with others", id(r))
		}
	}
}

// took checks what Envoy applies: no route names a cluster that has no endpoints.
func (m *model) took(k ads.Key, r *ads.Resource) {
	if had := m.envoy.has[k]; had != nil && had.Version.Sequence > r.Version.Sequence {
		m.t.Fatalf("the proxy has %s, and goes back to %s", id(had), id(r))
	}
	// Where nobody has acknowledged any, or it refuses what others have acknowledged last,
	// nobody may know what it has.
	last := m.proofs.Last(k)
	if had := m.envoy.has[k]; r.Type == ads.Endpoints && had != nil && !empty(had) && empty(r) && last != nil && !m.bad[id(last)] {
		m.went(ads.Key{Type: ads.Cluster, Name: r.Name}, nil) // which is as good as gone
	}
	if r.Type != ads.Route || m.late[id(r)] {
		return
	}
	for _, c := range r.Clusters {
		cluster, ends := m.envoy.has[ads.Key{Type: ads.Cluster, Name: c}], m.envoy.has[ads.Key{Type: ads.Endpoints, Name: c}]
		if cluster == nil || !cluster.Inline && (ends == nil || empty(ends)) {
			m.t.Fatalf("%s names %s, which has no endpoints at the proxy", id(r), c)
		}
	}
}

// empty says that these are no endpoints at all.
func empty(r *ads.Resource) bool { return r.Version.Hash == "none" }

// went checks what goes: no route names it.
func (m *model) went(k ads.Key, _ *ads.Resource) {
	if k.Type != ads.Cluster || m.now.Sub(m.removedAt[k.Name]) >= 30*time.Second {
		return
	}
	for _, name := range m.envoy.names(ads.Route) {
		if r := m.envoy.has[ads.Key{Type: ads.Route, Name: name}]; slices.Contains(r.Clusters, k.Name) && !m.late[id(r)] {
			m.t.Fatalf("cluster %s goes while %s names it", k.Name, id(r))
		}
	}
}

// up and downward deliver one message each.
func (m *model) up() bool {
	if len(m.envoy.out) == 0 {
		return false
	}
	r := m.envoy.out[0]
	m.envoy.out = m.envoy.out[1:]
	m.do(m.stream.Receive(m.now, r))
	return true
}

func (m *model) downward() bool {
	if len(m.down) == 0 {
		return false
	}
	s := m.down[0]
	m.down = m.down[1:]
	m.envoy.take(s)
	return true
}

// overtakable says of a request that others may arrive before it: that it is an answer,
// and not one about clusters, which Envoy withholds as it was measured to.
func overtakable(r ads.Request) bool {
	return r.Nonce != "" && r.Type != ads.Cluster && len(r.Subscribe)+len(r.Unsubscribe) == 0
}

// overtake lets the next request but one arrive before an answer.
func (m *model) overtake() {
	if out := m.envoy.out; len(out) > 1 && overtakable(out[0]) {
		out[0], out[1] = out[1], out[0]
	}
}

// keep has the proxy keep an answer back, and hand has it send what it has kept, the
// last one first.
func (m *model) keep() {
	if out := m.envoy.out; len(out) > 0 && overtakable(out[0]) {
		m.kept, m.envoy.out = append(m.kept, out[0]), out[1:]
	}
}

func (m *model) hand() {
	slices.Reverse(m.kept)
	m.envoy.out = append(m.kept, m.envoy.out...)
	m.kept = nil
}

// flow delivers so many, as far as there are some.
func (m *model) flow(n int) {
	for range n {
		if !m.up() && !m.downward() {
			return
		}
	}
}

func (m *model) pass(d time.Duration) {
	m.now = m.now.Add(d)
	m.do(m.stream.Tick(m.now))
}

// rest lets everything happen that still can.
func (m *model) rest() {
	m.hand()
	for range 10_000 {
		if m.up() || m.downward() {
			continue
		}
		next := m.stream.Next()
		if next.IsZero() {
			return
		}
		m.pass(max(next.Sub(m.now), 0))
		if len(m.down) == 0 && len(m.envoy.out) == 0 && !m.stream.Next().After(m.now) && !m.stream.Next().IsZero() {
			m.t.Fatalf("the stream wants to be woken at %v, again and again", m.stream.Next())
		}
	}
	m.t.Fatal("it does not come to rest")
}

// settled checks that Envoy has what there is.
func (m *model) settled() {
	for cluster := range m.envoy.rewarms {
		if want := m.view.Get(ads.Endpoints, cluster); want == nil || !m.bad[id(want)] {
			m.t.Fatalf("cluster %s waits for its endpoints", cluster)
		}
	}
	for _, t := range []ads.Type{ads.Cluster, ads.Listener} {
		for _, name := range m.view.Names(t) {
			m.check(ads.Key{Type: t, Name: name}, m.view.Get(t, name))
		}
		for _, name := range m.envoy.names(t) {
			if m.view.Get(t, name) == nil {
				m.t.Fatalf("%v %s is gone, and the proxy still has it", t, name)
			}
		}
	}
	for t, waits := range m.envoy.starting {
		if waits {
			m.t.Fatalf("the proxy starts, and waits for the first response of %v", t)
		}
	}
	for k := range m.envoy.asked {
		if want := m.view.Get(k.Type, k.Name); want == nil || !m.bad[id(want)] {
			m.t.Fatalf("the proxy asked for %v, and was not answered", k)
		}
	}
	for k := range m.envoy.want {
		want := m.view.Get(k.Type, k.Name)
		if want == nil {
			want = nothingThere(k)
		}
		m.check(k, want)
	}
}

func (m *model) check(k ads.Key, want *ads.Resource) {
	got := m.envoy.has[k]
	switch {
	case m.envoy.silent[k]:
	case m.bad[id(want)]: // it has what it had before
	case got == nil:
		m.t.Fatalf("%s never came", id(want))
	case got.Version != want.Version && got.Version.Sequence <= want.Version.Sequence:
		m.t.Fatalf("the proxy has %s, and there is %s", id(got), id(want))
	}
}
