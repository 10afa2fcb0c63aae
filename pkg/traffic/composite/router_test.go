// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

// recorders give each release the composite of two recorders.
type recorders struct {
	of map[types.NamespacedName]*Router
}

func (r recorders) Router(release types.NamespacedName) traffic.Router {
	if r.of[release] == nil {
		r.of[release] = New(Part{"mesh", &routertest.Recorder{}}, Part{"edge", &routertest.Recorder{}})
	}
	return r.of[release]
}

// programs are two that divide requests in turn. Faults and orders are those of the second one alone.
type programs struct {
	mesh, edge *routertest.Proxy
	of         map[types.NamespacedName]*Router
	asked      int
}

func (p *programs) Router(release types.NamespacedName) traffic.Router {
	if p.of[release] == nil {
		p.of[release] = New(Part{"mesh", p.mesh.Router(release)}, Part{"edge", p.edge.Router(release)})
	}
	return p.of[release]
}

func (p *programs) Ask(r routertest.Request) (routertest.Answer, error) {
	if p.asked++; p.asked%2 == 0 {
		return p.mesh.Ask(r)
	}
	return p.edge.Ask(r)
}

func (p *programs) Hold(r routertest.Request) (routertest.Answer, func(), error) {
	if p.asked++; p.asked%2 == 0 {
		return p.mesh.Hold(r)
	}
	return p.edge.Hold(r)
}

func (p *programs) Flush() {
	p.mesh.Flush()
	p.edge.Flush()
}

func (p *programs) Hang()                             { p.edge.Hang() }
func (p *programs) Resume()                           { p.edge.Resume() }
func (p *programs) Restart()                          { p.edge.Restart() }
func (p *programs) Edit(release types.NamespacedName) { p.edge.Edit(release) }

func (p *programs) Order(split traffic.Split) {
	p.mesh.Order(split)
	p.edge.Order(split)
}

func TestCompositesConform(t *testing.T) {
	t.Run("of two recorders", func(t *testing.T) {
		routertest.Conform(t, routertest.Maker{Capabilities: traffic.FullCapabilities(), Begin: func(*testing.T) routertest.Stand {
			return recorders{map[types.NamespacedName]*Router{}}
		}})
	})
	weak := traffic.Capabilities{HeaderMap: true, Resolution: 10, Knowledge: traffic.Accepted, Outcomes: true}
	for name, tc := range map[string]struct{ mesh, edge, both traffic.Capabilities }{
		"of two programs alike":                   {traffic.FullCapabilities(), traffic.FullCapabilities(), traffic.FullCapabilities()},
		"of a program and one that can less":      {traffic.FullCapabilities(), weak, weak},
		"of a program and one that only accepted": {weak, traffic.FullCapabilities(), weak},
	} {
		t.Run(name, func(t *testing.T) {
			routertest.Conform(t, routertest.Maker{Capabilities: tc.both, Begin: func(*testing.T) routertest.Stand {
				return &programs{mesh: routertest.NewProxy(tc.mesh, false), edge: routertest.NewProxy(tc.edge, false), of: map[types.NamespacedName]*Router{}}
			}})
		})
	}
}

func TestARefusalOfOnePartKeepsTheSplitFromAll(t *testing.T) {
	mesh, edge := &routertest.Recorder{}, &routertest.Recorder{}
	edge.Limit(traffic.Capabilities{Resolution: 1, Knowledge: traffic.Accepted})
	err := New(Part{"mesh", mesh}, Part{"edge", edge}).Apply(t.Context(), routertest.Split(1, 5_000))
	var incapable *traffic.IncapableError
	if !errors.As(err, &incapable) || !strings.Contains(err.Error(), "router edge: ") {
		t.Errorf("got %v, want a refusal of edge", err)
	}
	if n := len(mesh.Applied()); n != 0 {
		t.Errorf("mesh was told %d splits", n)
	}
}

func TestAFailureOfOnePartKeepsNoOtherFromTheSplit(t *testing.T) {
	mesh, edge, broken := &routertest.Recorder{}, &routertest.Recorder{}, errors.New("broken")
	router := New(Part{"edge", edge}, Part{"mesh", mesh})
	edge.Break(broken)
	if err := router.Apply(t.Context(), routertest.Split(1, 5_000)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if mesh.Current() == nil {
		t.Error("mesh was not told")
	}
	if seen, err := router.Observe(t.Context()); err != nil || seen.Sequence != 0 || seen.Knowledge != traffic.Unknown {
		t.Errorf("one part has the split, and observed is %+v, %v", seen, err)
	}
	edge.Break(nil)
	if err := router.Apply(t.Context(), routertest.Split(1, 5_000)); err != nil {
		t.Fatal(err)
	}
	if seen, err := router.Observe(t.Context()); err != nil || seen.Sequence != 1 || seen.Knowledge != traffic.Proven {
		t.Errorf("all parts have the split, and observed is %+v, %v", seen, err)
	}
	edge.Break(broken)
	if err := router.Remove(t.Context()); !errors.Is(err, broken) || mesh.Current() != nil {
		t.Errorf("removing: %v, and mesh has %+v", err, mesh.Current())
	}
}

func TestTheLatestSequenceOfAllPartsIsTold(t *testing.T) {
	mesh, edge, third := &routertest.Recorder{}, &routertest.Recorder{}, &routertest.Recorder{}
	for recorder, sequence := range map[*routertest.Recorder]uint64{mesh: 5, edge: 9, third: 7} {
		if err := recorder.Apply(t.Context(), routertest.Split(sequence, 5_000)); err != nil {
			t.Fatal(err)
		}
	}
	err := New(Part{"mesh", mesh}, Part{"edge", edge}, Part{"third", third}).Apply(t.Context(), routertest.Split(6, 5_000))
	var later *traffic.LaterError
	if !errors.As(err, &later) || later.Sequence != 9 {
		t.Errorf("got %v, want a LaterError of 9", err)
	}
	if is := mesh.Current().Sequence; is != 6 {
		t.Errorf("mesh is at %d", is)
	}
}

// hanging waits for the end of its time, as a program does that was stopped.
type hanging struct{ routertest.Recorder }

func (h *hanging) Apply(ctx context.Context, _ traffic.Split) error {
	<-ctx.Done()
	return ctx.Err()
}

// Parts that are asked in turn would have no time left after one that hangs.
func TestAPartThatHangsTakesNoTimeOfOthers(t *testing.T) {
	mesh := &told{applied: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-mesh.applied
		cancel()
	}()
	err := New(Part{"edge", &hanging{}}, Part{"mesh", mesh}).Apply(ctx, routertest.Split(1, 5_000))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// told closes a channel when a split is applied.
type told struct {
	routertest.Recorder
	applied chan struct{}
}

func (r *told) Apply(ctx context.Context, split traffic.Split) error {
	defer close(r.applied)
	return r.Recorder.Apply(ctx, split)
}
