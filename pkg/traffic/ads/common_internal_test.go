// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// remembered are proofs that remember. Each stream has its own, so that it is the same in both.
type remembered struct{ last map[Key]*Resource }

func (p remembered) Proven(r *Resource) bool {
	last := p.Last(Key{r.Type, r.Name})
	return last != nil && last.Version == r.Version
}
func (p remembered) Prove(r *Resource)    { p.last[Key{r.Type, r.Name}] = r }
func (p remembered) Last(k Key) *Resource { return p.last[k] }

// none stands for endpoints and routes that are not there.
func none(k Key) *Resource {
	if k.Type.wildcard() {
		return nil
	}
	return &Resource{Type: k.Type, Name: k.Name, Version: Version{Hash: "none"}}
}

// twins are two streams of which the second one keeps all names.
type twins struct {
	t             *rapid.T
	one, other    *Stream
	view          *View
	now           time.Time
	sent          []Send
	shared, steps int
}

func newTwins(t *rapid.T) *twins {
	config := Config{Batch: 3, Window: 60}
	w := &twins{t: t, now: time.Unix(1_000, 0)}
	w.one = NewStream(config, remembered{map[Key]*Resource{}}, none, nil)
	w.other = NewStream(config, remembered{map[Key]*Resource{}}, none, nil)
	w.publish()
	return w
}

// both streams do something, and do the same. Between two steps is more than a suspicion, since the
// second stream has the names of a type acknowledged together, each time anew.
func (w *twins) both(do func(*Stream) []Effect) {
	w.steps, w.now = w.steps+1, w.now.Add(suspicion+time.Millisecond)
	one, other := do(w.one), do(w.other)
	if diff := cmp.Diff(told(other), told(one)); diff != "" {
		w.t.Fatalf("what the stream does (-one that keeps all names +one that does not):\n%s", diff)
	}
	for t := range w.one.types {
		if w.one.types[t].common.view != nil {
			w.shared++
		}
		w.other.types[t].spread()
	}
	for _, e := range one {
		if send, is := e.(Send); is {
			w.sent = append(w.sent, send)
		}
	}
	if diff := cmp.Diff(w.states(w.other), w.states(w.one)); diff != "" {
		w.t.Fatalf("what the stream knows (-one that keeps all names +one that does not):\n%s", diff)
	}
}

// told is what effects say.
func told(effects []Effect) (texts []string) {
	names := func(resources []*Resource) (texts []string) {
		for _, r := range resources {
			texts = append(texts, r.Name+"="+r.Version.String())
		}
		return texts
	}
	for _, e := range effects {
		switch x := e.(type) {
		case Send:
			texts = append(texts, fmt.Sprint("send ", x.Type, " ", x.Nonce, names(x.Resources), x.Removed))
		case Acked:
			texts = append(texts, fmt.Sprint("acked ", names(x.Resources)))
		case Rejected:
			texts = append(texts, fmt.Sprint("rejected ", x.Resource.Name, x.Message))
		case Late:
			texts = append(texts, "late "+x.Route.Name)
		case Withheld:
			texts = append(texts, "withheld "+x.Cluster.Name)
		case Ahead, Stalled, Stale:
			texts = append(texts, fmt.Sprintf("%T %v", x, x))
		}
	}
	return texts
}

// states of all names, without the times of what is there: a stream that keeps no names has those
// of its start together.
func (w *twins) states(s *Stream) any {
	all := func(Key) bool { return true }
	states := s.States(all)
	for i := range states {
		if states[i].Stage == Acknowledged || states[i].Stage == Going {
			states[i].Since = time.Time{}
		}
	}
	return []any{states, s.Count(all), s.Unknown(), s.Strange(), s.Settled(), s.Next()}
}

// publish another view of a few services.
func (w *twins) publish() {
	var resources []*Resource
	for _, name := range []string{"a", "b", "c"} {
		if !rapid.Bool().Draw(w.t, name+" is there") {
			continue
		}
		for t := range Type(types) {
			n := rapid.IntRange(1, 3).Draw(w.t, "version")
			r := &Resource{Type: t, Name: name, Version: Version{Hash: fmt.Sprint(n)}, Body: make([]byte, 10)}
			if t == Route {
				r.Version.Sequence, r.Clusters = uint64(n), []string{name} //nolint:gosec // small
			}
			resources = append(resources, r)
		}
	}
	before := w.view
	w.view = NewView(resources...)
	w.both(func(s *Stream) []Effect { return s.Publish(w.now, w.view, Diff(before, w.view)) })
}

func (w *twins) ask() {
	someNames := func(label string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "*", "lost"}), 0, 3, rapid.ID[string]).Draw(w.t, label)
	}
	r := Request{Type: Type(rapid.IntRange(0, types-1).Draw(w.t, "type")), Subscribe: someNames("wanted")}
	switch rapid.IntRange(0, 3).Draw(w.t, "how") {
	case 0:
		r.Unsubscribe = someNames("left")
	case 1:
		r.Initial = map[string]string{}
		for _, name := range r.Subscribe {
			r.Initial[name] = rapid.SampledFrom([]string{"0.1", "1.1", "2.2", "x"}).Draw(w.t, "version")
		}
	}
	w.both(func(s *Stream) []Effect { return s.Receive(w.now, r) })
}

// answer one of the responses, as a rule the first one.
func (w *twins) answer() {
	if len(w.sent) == 0 {
		return
	}
	i := rapid.IntRange(0, min(2, len(w.sent)-1)).Draw(w.t, "which")
	send := w.sent[i]
	w.sent = slices.Delete(w.sent, i, i+1)
	r := Request{Type: send.Type, Nonce: send.Nonce}
	if rapid.IntRange(0, 5).Draw(w.t, "refused") == 0 {
		r.Refused, r.Message = true, "no"
	}
	w.both(func(s *Stream) []Effect { return s.Receive(w.now, r) })
}

// obey as an Envoy does, until there is nothing more to answer.
func (w *twins) obey() {
	for t := range Type(types) {
		r := Request{Type: t}
		if !t.wildcard() {
			r.Subscribe = slices.Clone(w.view.Names(t))
		}
		w.both(func(s *Stream) []Effect { return s.Receive(w.now, r) })
	}
	for n := 0; len(w.sent) > 0 && n < 100; n++ {
		send := w.sent[0]
		w.sent = w.sent[1:]
		w.both(func(s *Stream) []Effect { return s.Receive(w.now, Request{Type: send.Type, Nonce: send.Nonce}) })
	}
}

func TestAStreamThatKeepsNoNamesDoesWhatOneDoesThatKeepsAll(t *testing.T) {
	shared, steps := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		defer func() { shared, steps = shared+w.shared, steps+w.steps }()
		t.Repeat(map[string]func(*rapid.T){
			"the mesh changes":       func(*rapid.T) { w.publish() },
			"a proxy asks":           func(*rapid.T) { w.ask() },
			"a proxy answers":        func(*rapid.T) { w.answer() },
			"a proxy answers again":  func(*rapid.T) { w.answer() },
			"a proxy does as Envoys": func(*rapid.T) { w.obey() },
			"time passes": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
				w.both(func(s *Stream) []Effect { return s.Tick(w.now) })
			},
			"the view is old, or not": func(t *rapid.T) {
				old := rapid.Bool().Draw(t, "old")
				w.both(func(s *Stream) []Effect { return s.Age(w.now, old) })
			},
		})
	})
	if shared < steps/4 { // of four types each
		t.Errorf("in %d steps only %d times the names of a type were not kept: the test compares nothing", steps, shared)
	}
}

// fifty Services as a sidecar has them, with their names as long as ours are.
func fifty() *View {
	var resources []*Resource
	for i := range 50 {
		name := fmt.Sprintf("namespace-%d/service-%d:8080/stable", i/10, i)
		for t := range Type(types) {
			resources = append(resources, &Resource{Type: t, Name: name, Version: Version{Hash: "0123456789abcdef"}, Body: make([]byte, 100)})
		}
		resources[len(resources)-1].Clusters = []string{name}
	}
	return NewView(resources...)
}

// started has all of a view, as an Envoy that has started.
func started(view *View) *Stream {
	now := time.Unix(1_000, 0)
	s := NewStream(Config{}, remembered{map[Key]*Resource{}}, none, view)
	var sent []Send
	take := func(effects []Effect) {
		for _, e := range effects {
			if send, is := e.(Send); is {
				sent = append(sent, send)
			}
		}
	}
	for t := range Type(types) {
		r := Request{Type: t}
		if !t.wildcard() {
			for _, name := range view.Names(t) {
				r.Subscribe = append(r.Subscribe, strings.Clone(name))
			}
		}
		take(s.Receive(now, r))
		for len(sent) > 0 {
			send := sent[0]
			sent = sent[1:]
			take(s.Receive(now, Request{Type: send.Type, Nonce: send.Nonce}))
		}
	}
	return s
}

// bytesPerStream that stay of one that has all of a view.
func bytesPerStream(view *View, streams int) uint64 {
	all := make([]*Stream, streams)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what was found in pools
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range all {
		all[i] = started(view)
		all[i].proofs = proofs{} // a server has one for all
	}
	after := heap()
	runtime.KeepAlive(all)
	return (after - before) / uint64(streams) //nolint:gosec // a hundred
}

// Of 200 names 64 bytes each were kept, and a place in a map: 21 KiB of each proxy.
func TestOfAProxyThatHasAllThereIsLittleIsKept(t *testing.T) {
	const want = 2 << 10
	view := fifty()
	if s := started(view); !s.Settled() {
		t.Fatal("the proxy has not got all")
	}
	if got := bytesPerStream(view, 200); got > want {
		t.Errorf("%d bytes are kept of a proxy with %d names, want at most %d", got, 4*50, want)
	}
}

// BenchmarkStreamMemory shows what stays of a proxy that has fifty Services.
func BenchmarkStreamMemory(b *testing.B) {
	view := fifty()
	for b.Loop() {
		b.ReportMetric(float64(bytesPerStream(view, 1_000)), "B/proxy")
	}
}
