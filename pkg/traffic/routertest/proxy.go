// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Proxy divides requests in memory. The zero one divides none yet, and has all capabilities. It may
// be used by many at once.
type Proxy struct {
	mu      sync.Mutex
	routers map[types.NamespacedName]*proxied
	// can are the capabilities of its routers; nil for all. roundRobin deals requests without a key in turn.
	can        *traffic.Capabilities
	roundRobin bool
	hangs      bool
	// asked counts requests: those that no key decides are drawn by it.
	asked uint64
}

// NewProxy makes one whose routers have certain capabilities. Requests without a key go to the variations in turn
// if roundRobin says so.
func NewProxy(can traffic.Capabilities, roundRobin bool) *Proxy {
	return &Proxy{can: &can, roundRobin: roundRobin}
}

var (
	_ Counter = (*Proxy)(nil)
	_ Faulty  = (*Proxy)(nil)
	_ Orderer = (*Proxy)(nil)
	_ Holder  = (*Proxy)(nil)
)

// errHangs is the error of a router whose program hangs.
var errHangs = errors.New("the program does not answer")

// Router returns the router of a release.
func (p *Proxy) Router(release types.NamespacedName) traffic.Router {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.router(release)
}

func (p *Proxy) router(release types.NamespacedName) *proxied {
	if p.routers == nil {
		p.routers = map[types.NamespacedName]*proxied{}
	}
	if p.routers[release] == nil {
		r := &proxied{of: p}
		if p.can != nil {
			r.Limit(*p.can)
		}
		p.routers[release] = r
	}
	return p.routers[release]
}

// Ask implements Asker.
func (p *Proxy) Ask(r Request) (Answer, error) {
	to, end, err := p.Hold(r)
	if err == nil {
		end()
	}
	return to, err
}

// Hold implements Holder.
func (p *Proxy) Hold(r Request) (Answer, func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hangs {
		return Answer{}, nil, errHangs
	}
	p.asked++
	for _, router := range p.routers {
		split := router.running
		if split == nil || r.Service != (types.NamespacedName{Namespace: split.Namespace, Name: split.Service}) {
			continue
		}
		to := decide(split, r, fmt.Sprint("request-", p.asked))
		if to.drawn && p.roundRobin {
			to.variation = router.inTurn()
		}
		at := slices.IndexFunc(split.Variations, func(v traffic.Variation) bool { return v.Name == to.variation })
		return Answer{Divided: true, Variation: split.Variations[at], Visitor: to.visitor}, p.begin(router, to, r.Fails), nil
	}
	return Answer{}, func() {}, nil
}

// begin counts a request of a router, and returns what ends it.
func (p *Proxy) begin(r *proxied, to destination, fails bool) (end func()) {
	if to.forced {
		return func() {}
	}
	if r.inFlight == nil {
		r.inFlight = map[string]int64{}
	}
	r.inFlight[to.variation]++
	sequence := r.running.Sequence
	return func() {
		p.change(func() {
			r.inFlight[to.variation]--
			r.count(counted{to.variation, sequence}, fails)
		})
	}
}

// Flush implements Counter.
func (p *Proxy) Flush() {
	p.change(func() {
		for _, r := range p.routers {
			r.close()
		}
	})
}

// Hang implements Faulty.
func (p *Proxy) Hang() { p.change(func() { p.hangs = true }) }

// Resume implements Faulty.
func (p *Proxy) Resume() { p.change(func() { p.hangs = false }) }

// Restart implements Faulty. The program has no memory.
func (p *Proxy) Restart() {
	p.change(func() {
		for _, r := range p.routers {
			r.run(nil)
		}
	})
}

// Edit implements Faulty.
func (p *Proxy) Edit(release types.NamespacedName) {
	p.change(func() {
		r := p.router(release)
		edited := cloned(*r.running)
		for i := range edited.Shares {
			edited.Shares[i].Weight = 0
		}
		edited.Shares[0].Weight = traffic.Total
		r.run(&edited)
	})
}

// Order implements Orderer.
func (p *Proxy) Order(split traffic.Split) {
	p.change(func() {
		split = cloned(split)
		p.router(types.NamespacedName{Namespace: split.Namespace, Name: split.Name}).run(&split)
	})
}

func (p *Proxy) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// proxied is the router of one release. Its Recorder has what the router was told.
type proxied struct {
	Recorder
	of *Proxy
	// running is what the program carries out; nil if it divides no requests of the release.
	running *traffic.Split
	// dealt counts the requests without a key that went to each variation since the split runs.
	dealt map[string]int
	// open are the outcomes that are not told yet, and inFlight the requests that have none.
	open     map[counted]outcomes
	inFlight map[string]int64
	cells    uint64
}

// counted is a variation, and the sequence by which requests went there.
type counted struct {
	variation string
	sequence  uint64
}

// Apply implements traffic.Router: the program takes the split, unless it hangs or has a later one.
func (r *proxied) Apply(ctx context.Context, split traffic.Split) error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if err := r.Recorder.Apply(ctx, split); err != nil {
		return err
	}
	switch {
	case r.of.hangs:
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, errHangs)
	case r.running != nil && r.running.Sequence > split.Sequence:
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, &traffic.LaterError{Sequence: r.running.Sequence})
	}
	if told := r.Current(); !gocmp.Equal(told, r.running) {
		r.run(told)
	}
	return nil
}

// Remove implements traffic.Router.
func (r *proxied) Remove(ctx context.Context) error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if r.of.hangs {
		return fmt.Errorf("removing the split: %w", errHangs)
	}
	if err := r.Recorder.Remove(ctx); err != nil {
		return err
	}
	r.run(nil)
	return nil
}

// Observe implements traffic.Router: it reads back what the program carries out.
func (r *proxied) Observe(ctx context.Context) (traffic.Observation, error) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	seen, err := r.Recorder.Observe(ctx)
	for i, arm := range seen.Arms {
		if !r.Capabilities().InFlight {
			break
		}
		seen.Arms[i].Outcomes = &traffic.Outcomes{InFlight: r.inFlight[arm.Variation]}
	}
	if told := r.Current(); err != nil || told == nil || gocmp.Equal(told, r.running) && !r.of.hangs {
		return seen, err
	}
	late := traffic.OutOfSync{Name: "proxy", Why: "it carries out another split"}
	seen.Sequence, seen.Acknowledged, seen.Knowledge = 0, 0, traffic.Unknown
	switch told := r.Current(); {
	case r.of.hangs:
		late.Why = errHangs.Error()
	case r.running == nil:
		late.Why = "it carries out no split"
	case r.running.Sequence > told.Sequence:
		late.Has, seen.Ahead, seen.Knowledge = r.running.Sequence, r.running.Sequence, traffic.Contradicted
	case r.running.Sequence == told.Sequence:
		seen.Knowledge = traffic.Contradicted
	default:
		late.Has, seen.Sequence = r.running.Sequence, r.running.Sequence
	}
	seen.OutOfSync = []traffic.OutOfSync{late}
	return seen, nil
}

// run has the program carry out a split from now on.
func (r *proxied) run(split *traffic.Split) {
	r.running, r.dealt = split, map[string]int{}
}

// inTurn returns the variation that is furthest below its share.
func (r *proxied) inTurn() string {
	requests := traffic.Weight(1)
	for _, n := range r.dealt {
		requests += traffic.Weight(n)
	}
	owed := func(s traffic.Share) traffic.Weight {
		return s.Weight*requests - traffic.Total*traffic.Weight(r.dealt[s.Variation])
	}
	shares := r.running.Shares
	furthest := slices.MaxFunc(shares, func(a, b traffic.Share) int { return int(owed(a) - owed(b)) })
	r.dealt[furthest.Variation]++
	return furthest.Variation
}

func (r *proxied) count(by counted, fails bool) {
	if r.open == nil {
		r.open = map[counted]outcomes{}
	}
	o := r.open[by]
	if o.Over++; fails {
		o.Failed++
	}
	r.open[by] = o
}

// close makes cells of what was counted.
func (r *proxied) close() {
	for by, o := range r.open {
		r.cells++
		r.Count(traffic.Cell{
			Part: "proxy", Position: traffic.Position{Epoch: 1, Cell: r.cells}, Variation: by.variation,
			Sequence: by.sequence, Over: o.Over, Failed: o.Failed,
		})
	}
	r.open = nil
}
