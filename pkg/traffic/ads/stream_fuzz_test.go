// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// FuzzStream has a proxy say whatever it likes, in whatever order, while the mesh
// changes: the stream never panics, says nothing that was not asked for, and keeps to
// what it promises of routes.
func FuzzStream(f *testing.F) {
	subscribe, answer, publish, pass := byte(0), byte(1), byte(2), byte(3)
	f.Add([]byte{})
	f.Add([]byte{ // as an Envoy does
		subscribe, 0, 0, answer, 0, subscribe, 1, 3, answer, 0, subscribe, 2, 0, answer, 0, subscribe, 3, 3, answer, 0, answer, 0, publish, 7, answer, 0, answer, 0,
	})
	f.Add([]byte{subscribe, 0, 128, subscribe, 1, 255, subscribe, 3, 255, publish, 255, pass, 5, answer, 3, answer, 1, publish, 0, pass, 255, answer, 9})
	f.Add([]byte{subscribe, 3, 3, pass, 2, subscribe, 1, 3, answer, 128, answer, 129, subscribe, 1, 67, pass, 40, publish, 9, answer, 255, pass, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCaprice(t)
		for len(data) >= 2 && c.steps < 300 {
			op, argument := data[0], data[1]
			data = data[2:]
			c.steps++
			switch op % 4 {
			case subscribe:
				c.ask(ads.Type(op/4%4), argument)
			case answer:
				c.answer(argument)
			case publish:
				c.publish(argument)
			case pass:
				c.pass(time.Duration(argument) * time.Second / 5)
			}
		}
		c.rest()
	})
}

// caprice is a proxy that keeps to nothing, and what is known of it.
type caprice struct {
	*script
	steps int
	// sent are all responses so far.
	sent []ads.Send
	// asked are the types of which it has asked for anything, or that come unasked.
	asked map[ads.Type]bool
	// named are what it ever asked for by name, all of which types it wants everything.
	named map[ads.Key]bool
	all   map[ads.Type]bool
	// populated are the clusters of which it ever acknowledged, or reported, endpoints.
	populated map[string]bool
	// late are the routes that were told to be.
	late map[string]bool
}

func newCaprice(t *testing.T) *caprice {
	c := &caprice{
		script: newScript(t), asked: map[ads.Type]bool{}, named: map[ads.Key]bool{}, all: map[ads.Type]bool{},
		populated: map[string]bool{}, late: map[string]bool{},
	}
	c.stream = ads.NewStream(ads.Config{Batch: 3, Window: 60}, c.proofs, nothingThere, c.view)
	c.publish(3)
	return c
}

// some of three names, a star, and one that is never there.
func some(bits byte) (names []string) {
	for i, name := range []string{"a", "b", "c", "*", "lost"} {
		if bits>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return names
}

// ask takes of an argument what is asked for, and how.
func (c *caprice) ask(kind ads.Type, argument byte) {
	r, names := ads.Request{Type: kind}, some(argument)
	switch argument >> 5 {
	case 0, 1, 2:
		r.Subscribe = names
	case 3:
		r.Unsubscribe = names
	case 4:
		r.Subscribe, r.Unsubscribe = names, []string{"a", "*"}
	default:
		r.Subscribe, r.Initial = names, map[string]string{}
		for _, name := range names {
			r.Initial[name] = []string{"0.1", "1.1", "x"}[argument>>5-5]
		}
	}
	c.all[kind] = c.all[kind] || slices.Contains(r.Subscribe, "*") || kind == ads.Cluster || kind == ads.Listener
	for _, name := range r.Subscribe {
		c.named[ads.Key{Type: kind, Name: name}] = true
	}
	for name := range r.Initial {
		c.named[ads.Key{Type: kind, Name: name}] = true
		c.populated[name] = c.populated[name] || kind == ads.Endpoints
	}
	c.asked[kind] = true
	c.take(c.stream.Receive(c.now, r))
}

// answer takes or refuses one of the last responses, maybe once more, or none.
func (c *caprice) answer(argument byte) {
	r := ads.Request{Nonce: strconv.Itoa(int(argument)), Refused: argument&128 != 0, Message: "no"}
	if back := int(argument & 7); back < len(c.sent) {
		s := c.sent[len(c.sent)-1-back]
		r.Type, r.Nonce = s.Type, s.Nonce
		if !r.Refused && s.Type == ads.Endpoints {
			for _, e := range s.Resources {
				c.populated[e.Name] = true
			}
		}
	}
	if argument&64 != 0 {
		r.Subscribe = []string{"b"}
		c.named[ads.Key{Type: r.Type, Name: "b"}] = true
	}
	c.asked[r.Type] = true
	c.all[r.Type] = c.all[r.Type] || r.Type == ads.Cluster || r.Type == ads.Listener
	c.take(c.stream.Receive(c.now, r))
}

// publish takes of an argument which services there are, and in which version.
func (c *caprice) publish(argument byte) {
	var all []*ads.Resource
	add := func(r *ads.Resource) {
		if old := c.view.Get(r.Type, r.Name); old != nil && old.Version == r.Version && slices.Equal(old.Clusters, r.Clusters) {
			r = old
		}
		all = append(all, r)
	}
	var clusters []string
	for i, name := range []string{"a", "b", "c"} {
		if argument>>i&1 == 1 {
			clusters = append(clusters, name)
			add(of(ads.Cluster, name, fmt.Sprint(argument>>3&1)))
			add(of(ads.Endpoints, name, fmt.Sprint(argument>>4&3)))
		}
	}
	for _, name := range clusters {
		add(of(ads.Listener, name, "1"))
		add(of(ads.Route, name, fmt.Sprint(argument), clusters...))
	}
	before := c.view
	c.view = ads.NewView(all...)
	c.take(c.stream.Publish(c.now, c.view, ads.Diff(before, c.view)))
}

func (c *caprice) pass(d time.Duration) {
	c.now = c.now.Add(d)
	c.take(c.stream.Tick(c.now))
}

// rest is over when the stream needs no waking any more: it does not go on for ever.
func (c *caprice) rest() {
	for range 1_000 {
		next := c.stream.Next()
		if next.IsZero() {
			return
		}
		c.pass(max(next.Sub(c.now), 0))
	}
	c.t.Fatal("it does not come to rest")
}

// take checks what the stream does.
func (c *caprice) take(effects []ads.Effect) {
	for _, e := range effects {
		switch x := e.(type) {
		case ads.Late:
			c.late[id(x.Route)] = true
		case ads.Send:
			c.sends(x)
		case ads.Acked, ads.Ahead, ads.Rejected, ads.Withheld, ads.Stalled, ads.Stale:
		}
	}
}

func (c *caprice) sends(s ads.Send) {
	if s.Type == ads.Cluster { // they go unasked in the end
		c.asked[s.Type], c.all[s.Type] = true, true
	}
	if !c.asked[s.Type] {
		c.t.Fatalf("a response of %v, of which nothing was asked", s.Type)
	}
	if s.Nonce != strconv.Itoa(len(c.sent)+1) {
		c.t.Fatalf("nonce %s of response %d", s.Nonce, len(c.sent)+1)
	}
	c.sent = append(c.sent, s)
	there := map[string]bool{}
	for _, r := range s.Resources {
		if r.Type != s.Type || there[r.Name] {
			c.t.Fatalf("%s is twice in a response of %v, or of another type", id(r), s.Type)
		}
		there[r.Name] = true
		if !c.all[r.Type] && !c.named[ads.Key{Type: r.Type, Name: r.Name}] {
			c.t.Fatalf("%s was not asked for", id(r))
		}
		if fragile := s.Type == ads.Endpoints || s.Type == ads.Route; fragile && len(s.Resources) > 1 && !c.proofs.Proven(r) && !empty(r) {
			c.t.Fatalf("%s, which nobody has acknowledged yet, travels with others", id(r))
		}
		c.routes(r)
	}
	for _, name := range s.Removed {
		if there[name] {
			c.t.Fatalf("%s is in a response, and gone", name)
		}
	}
}

// routes checks that a route names no cluster whose endpoints were never acknowledged,
// unless it is told to be late.
func (c *caprice) routes(r *ads.Resource) {
	for _, cluster := range r.Clusters {
		if r.Type == ads.Route && !c.populated[cluster] && !c.late[id(r)] {
			c.t.Fatalf("%s names %s, whose endpoints were never acknowledged", id(r), cluster)
		}
	}
}
