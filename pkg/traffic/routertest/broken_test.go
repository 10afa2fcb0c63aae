// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// verdict collects whether a check fails, in the place of the test that runs it.
type verdict struct {
	testing.TB
	failed bool
}

func (v *verdict) Error(...any)          { v.failed = true }
func (v *verdict) Errorf(string, ...any) { v.failed = true }

func (v *verdict) Fatal(...any) {
	v.failed = true
	runtime.Goexit()
}

func (v *verdict) Fatalf(string, ...any) { v.Fatal() }

// fails tells whether routers of a Maker fail a check that fits them.
func fails(t *testing.T, m Maker, named string) bool {
	t.Helper()
	at := slices.IndexFunc(checks(), func(c check) bool { return c.name == named })
	if at < 0 {
		t.Fatalf("the suite has no check %q", named)
	}
	c, stand := checks()[at], m.Begin(t)
	if !c.fits(m, stand) {
		t.Fatalf("the check %q does not fit", named)
	}
	v, done := &verdict{TB: t}, make(chan struct{})
	go func() {
		defer close(done) // also when the check ends early
		c.run(&bench{TB: v, Maker: m, stand: stand})
	}()
	<-done
	return v.failed
}

// altered is a proxy with one defect.
type altered struct {
	*Proxy
	wrap func(*proxied) traffic.Router
	ask  func(*Proxy, Request) (Answer, error)
	// order is the way in which a prepared rollback arrives.
	order func(*Proxy, traffic.Split)
	// lost counts the requests that had no answer of a variation.
	lost *int
	// draws has requests without a key drawn, whatever the Maker declares.
	draws bool
}

func (a altered) Router(release types.NamespacedName) traffic.Router {
	r := a.Proxy.Router(release).(*proxied) //nolint:forcetypeassert // a Proxy has no others
	if a.wrap == nil {
		return r
	}
	return a.wrap(r)
}

func (a altered) Ask(r Request) (Answer, error) {
	if a.ask == nil {
		return a.Proxy.Ask(r)
	}
	return a.ask(a.Proxy, r)
}

func (a altered) Order(split traffic.Split) {
	if a.order == nil {
		a.Proxy.Order(split)
		return
	}
	a.order(a.Proxy, split)
}

// defects of routers.
type (
	lying     struct{ *proxied }
	forgetful struct{ *proxied }
	lenient   struct{ *proxied }
	silent    struct{ *proxied }
	backward  struct{ *proxied }
	doubling  struct{ *proxied }
	repeating struct{ *proxied }
	lasting   struct{ *proxied }
	trusting  struct{ *proxied }
	boasting  struct{ *proxied }
	sharing   struct{ *proxied }
	unproven  struct{ *proxied }
	draining  struct{ *proxied }
	gapped    struct {
		*proxied
		lost *int
	}
)

// Observe says of the last split that it is proven, whatever the program does.
func (r lying) Observe(ctx context.Context) (traffic.Observation, error) {
	return r.Recorder.Observe(ctx)
}

// Remove forgets the split, and a program that hangs keeps it.
func (r forgetful) Remove(ctx context.Context) error {
	_ = r.proxied.Remove(ctx)
	return nil
}

// Validate accepts each split.
func (r lenient) Validate(traffic.Split) error { return nil }

// Validate refuses without a reason.
func (r silent) Validate(s traffic.Split) error {
	if err := r.proxied.Validate(s); err != nil {
		return fmt.Errorf("refused")
	}
	return nil
}

// Apply takes any sequence.
func (r backward) Apply(ctx context.Context, s traffic.Split) error {
	if current := r.Current(); current != nil && s.Sequence < current.Sequence {
		return nil
	}
	return r.proxied.Apply(ctx, s)
}

// Measure counts each request twice.
func (r doubling) Measure(ctx context.Context, since traffic.Cursor) (traffic.Measurement, error) {
	m, err := r.proxied.Measure(ctx, since)
	for i := range m.Cells {
		m.Cells[i].Over *= 2
	}
	return m, err
}

// Measure reads from the beginning each time.
func (r repeating) Measure(ctx context.Context, _ traffic.Cursor) (traffic.Measurement, error) {
	return r.proxied.Measure(ctx, nil)
}

// Remove leaves the program as it is.
func (r lasting) Remove(ctx context.Context) error { return r.Recorder.Remove(ctx) }

// Apply believes that the program still has a split that was applied before.
func (r trusting) Apply(ctx context.Context, s traffic.Split) error {
	if current := r.Current(); current != nil && s.Sequence == current.Sequence {
		return nil
	}
	return r.proxied.Apply(ctx, s)
}

// Capabilities claims all.
func (r boasting) Capabilities() traffic.Capabilities { return traffic.FullCapabilities() }

// Measure says that all requests belong to the first sequence.
func (r sharing) Measure(ctx context.Context, since traffic.Cursor) (traffic.Measurement, error) {
	m, err := r.proxied.Measure(ctx, since)
	for i := range m.Cells {
		m.Cells[i].Sequence = 1
	}
	return m, err
}

// Observe knows of no split.
func (r unproven) Observe(context.Context) (traffic.Observation, error) {
	return traffic.Observation{Knowledge: traffic.Unknown}, nil
}

// Observe forgets the requests in flight of a variation without a share.
func (r draining) Observe(ctx context.Context) (traffic.Observation, error) {
	seen, err := r.proxied.Observe(ctx)
	for i, arm := range seen.Arms {
		if at := slices.IndexFunc(r.Current().Shares, func(s traffic.Share) bool { return s.Variation == arm.Variation }); r.Current().Shares[at].Weight == 0 {
			seen.Arms[i].Outcomes = &traffic.Outcomes{}
		}
	}
	return seen, err
}

// Apply leaves no split in force for one request.
func (r gapped) Apply(ctx context.Context, s traffic.Split) error {
	if err := r.Remove(ctx); err != nil {
		return err
	}
	if to, err := r.of.Ask(Request{Service: web}); err != nil || !to.Divided {
		*r.lost++
	}
	return r.proxied.Apply(ctx, s)
}

// Load counts the requests that a gapped router has sent.
func (a altered) Load(types.NamespacedName) (stop func() (sent, lost int)) {
	return func() (int, int) { return steps, *a.lost }
}

func TestARouterWithADefectFailsTheSuite(t *testing.T) {
	full := traffic.FullCapabilities()
	modest := full
	modest.Sticky, modest.AnonymousVisitors, modest.Override = false, false, false
	toStable := func(p *Proxy, r Request) (Answer, error) {
		a, err := p.Ask(r)
		if a.Divided {
			a.Variation = Split(1, 0).Variations[0]
		}
		return a, err
	}
	leak := func(p *Proxy, r Request) (Answer, error) {
		a, err := p.Ask(r)
		if a.Divided && p.asked%100 == 0 {
			a.Variation = Split(1, 0).Variations[1]
		}
		return a, err
	}
	keyless := func(p *Proxy, r Request) (Answer, error) { return p.Ask(Request{Service: r.Service, Fails: r.Fails}) }
	capital := func(p *Proxy, r Request) (Answer, error) {
		delete(r.Headers, "X-Group")
		delete(r.Headers, "X-Variation")
		return p.Ask(r)
	}
	lost := new(int)
	for name, tc := range map[string]struct {
		can        traffic.Capabilities
		roundRobin bool
		stand      altered
		want       []string
	}{
		"proven is what was told":            {full, false, altered{wrap: func(p *proxied) traffic.Router { return lying{p} }}, []string{"a split that a hung program never took is not proven", "after a restart a split is proven only if requests follow it", "an edit by hand ends the proof, and the split is restored", "a prepared rollback that came past the API server stays, and is known"}},
		"a removal is believed":              {full, false, altered{wrap: func(p *proxied) traffic.Router { return forgetful{p} }}, []string{"a removal that a hung program never took is repeated"}},
		"each split is valid":                {modest, false, altered{wrap: func(p *proxied) traffic.Router { return lenient{p} }}, []string{"a split that is not whole is refused", "a split is refused by the name of the capability that is missing, and only then"}},
		"a refusal has no name":              {modest, false, altered{wrap: func(p *proxied) traffic.Router { return silent{p} }}, []string{"a split is refused by the name of the capability that is missing, and only then"}},
		"a lower sequence is no error":       {full, false, altered{wrap: func(p *proxied) traffic.Router { return backward{p} }}, []string{"a sequence may come twice and never goes back", "a refused split, or one that goes back, leaves requests as they were"}},
		"each request is counted twice":      {full, false, altered{wrap: func(p *proxied) traffic.Router { return doubling{p} }}, []string{"requests are counted as their clients count them, and each is told once", "a count belongs to the sequence that decided its requests"}},
		"counts are told again":              {full, false, altered{wrap: func(p *proxied) traffic.Router { return repeating{p} }}, []string{"requests are counted as their clients count them, and each is told once"}},
		"counts have a wrong sequence":       {full, false, altered{wrap: func(p *proxied) traffic.Router { return sharing{p} }}, []string{"a count belongs to the sequence that decided its requests"}},
		"a removed split goes on":            {full, false, altered{wrap: func(p *proxied) traffic.Router { return lasting{p} }}, []string{"a removed split divides no requests, and other releases go on"}},
		"the program is never looked at":     {full, false, altered{wrap: func(p *proxied) traffic.Router { return trusting{p} }}, []string{"after a restart a split is proven only if requests follow it", "an edit by hand ends the proof, and the split is restored"}},
		"more is claimed than there is":      {modest, false, altered{wrap: func(p *proxied) traffic.Router { return boasting{p} }}, []string{"a router declares its capabilities, no more and no less"}},
		"no split is ever known":             {full, false, altered{wrap: func(p *proxied) traffic.Router { return unproven{p} }}, []string{"a split that requests follow is observed"}},
		"weights stay as they were":          {full, false, altered{ask: toStable}, []string{"requests are divided by the weights", "a variation at weight 0 gets no request", "users are divided by the weights, and stay while the share grows"}},
		"a variation at 0 gets some":         {full, false, altered{ask: leak}, []string{"a variation at weight 0 gets no request"}},
		"visitors are not kept":              {full, false, altered{ask: keyless}, []string{"users are divided by the weights, and stay while the share grows", "a session stays while the share grows", "a visitor gets a cookie and stays while the share grows", "of three variations users leave only the stable one for that which grows"}},
		"headers are not looked at":          {full, false, altered{ask: capital}, []string{"a header that is mapped comes before the weights", "a header that names a variation comes before the weights", "a header that names a variation comes before one that is mapped"}},
		"requests have no split between two": {full, false, altered{lost: lost, wrap: func(p *proxied) traffic.Router { return gapped{p, lost} }}, []string{"no request is lost while the split changes"}},
		"what is in flight is forgotten":     {full, false, altered{wrap: func(p *proxied) traffic.Router { return draining{p} }}, []string{"requests in flight are counted until they end, whatever the split becomes"}},
		"a round robin draws":                {full, true, altered{draws: true}, []string{"requests are divided by the weights", "requests are divided between three variations by the weights"}},
		"an order is lost":                   {full, false, altered{order: func(*Proxy, traffic.Split) {}}, []string{"a prepared rollback that came past the API server stays, and is known"}},
		"a leader that is behind goes back":  {full, false, altered{order: func(p *Proxy, s traffic.Split) { s.Sequence = 0; p.Order(s) }}, []string{"a prepared rollback that came past the API server stays, and is known"}},
		"a release keeps its former Service": {full, false, altered{ask: func(p *Proxy, r Request) (Answer, error) { r.Service.Name = "web"; return p.Ask(r) }}, []string{"a release that names another Service leaves the former one", "requests of another Service are not divided"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := Maker{Capabilities: tc.can, RoundRobin: tc.roundRobin, Begin: func(*testing.T) Stand {
				stand := tc.stand
				stand.Proxy = NewProxy(tc.can, tc.roundRobin && !stand.draws)
				return stand
			}}
			for _, check := range tc.want {
				if !fails(t, m, check) {
					t.Errorf("the suite does not notice it in the check %q", check)
				}
			}
		})
	}
}
