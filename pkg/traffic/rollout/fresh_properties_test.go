// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

const control = "fresh-control"

// controlWorld has a fresh control be made by an executor to which anything may happen, and carries out what is
// decided as a split.
type controlWorld struct {
	// size is that of the control's Deployment, and answers are those of the executor.
	size    int
	answers map[workID]rollout.WorkAnswer
	// comparison is what proxies have, and effective the split that was decided last.
	comparison rollout.Comparison
	effective  *release.State
	release    *v1alpha1.ABRelease
}

func newControlWorld(t *rapid.T) *controlWorld {
	c := &controlWorld{answers: map[workID]rollout.WorkAnswer{}, release: &v1alpha1.ABRelease{}}
	c.release.Namespace, c.release.Name, c.release.Generation = "shop", "web", 1
	c.release.Spec = v1alpha1.ABReleaseSpec{ServiceName: "web", Stable: "a", TrafficSplit: v1alpha1.TrafficSplit{
		Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{"a": v1alpha1.Percent(100), "b": v1alpha1.Percent(0)},
	}}
	for _, name := range []v1alpha1.VariationName{"a", "b"} {
		c.release.Spec.Variations = append(c.release.Spec.Variations, v1alpha1.Variation{Name: name, Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: string(name)}})
	}
	c.decide(t, rollout.Decision{After: rollout.State{Active: "a"}})
	return c
}

// decide does with a decision what the controller does.
func (c *controlWorld) decide(t *rapid.T, d rollout.Decision) {
	terms, err := release.TermsOf(c.release)
	if err != nil {
		t.Fatal(err)
	}
	if terms = terms.Shift(d.After.Active, d.Weight); d.Comparison.HasControl {
		terms = terms.Compare(d.Comparison.Weight)
	}
	if d.Checking {
		terms = terms.Check()
	}
	next := release.Decide(release.Facts{
		Terms: &terms, Before: c.effective, Ready: map[string]int{"a": 1, "b": 1, control: 1}, Prepares: d.After.IsOn(), Now: noon,
	})
	c.effective = next.After
}

// work has the executor carry out what was decided before, or leave it.
func (c *controlWorld) work(t *rapid.T, works []rollout.Work) {
	for _, w := range works {
		id := workID{w.Run, w.Number}
		if w.Variation != control || w.Phase != rollout.WorkIsPending && w.Phase != rollout.WorkIsRunning || c.answers[id].Phase == rollout.WorkSucceeded {
			continue
		}
		phase := rapid.SampledFrom([]rollout.WorkPhase{"", rollout.WorkIsRunning, rollout.WorkSucceeded, rollout.WorkSucceeded, rollout.WorkSucceeded, rollout.WorkSucceeded, rollout.WorkIsRefused}).Draw(t, "phase of the control")
		if phase == "" {
			continue
		}
		c.answers[id] = rollout.WorkAnswer{Run: w.Run, Number: w.Number, Phase: phase, Message: "m", TemplateHash: "c"}
		if phase == rollout.WorkSucceeded {
			c.size = w.Replicas
		}
	}
}

// drawControlled draws facts about a run with a fresh control.
func (l *life) drawControlled(c *controlWorld) rollout.Facts {
	c.work(l.T, l.state.Works)
	f := l.next()
	f.Standing.Comparison = c.comparison
	if f.Plan != nil {
		if f.Plan.Control = rollout.ControlFresh; rapid.IntRange(0, 19).Draw(l.T, "no control") == 0 {
			f.Plan.Control = rollout.ControlStable
		}
		f.Plan.Warmup = rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Minute}).Draw(l.T, "warmup")
		f.Plan.Strategy.Stages = nil
		for _, weight := range []traffic.Weight{0, 1000, 2500, 3300, 5000, 9000, traffic.Total} {
			if rapid.Bool().Draw(l.T, "stage") || weight == traffic.Total {
				f.Plan.Strategy.Stages = append(f.Plan.Strategy.Stages, rollout.Stage{Weight: weight, Duration: time.Minute})
			}
		}
	}
	for id, a := range c.answers {
		if l.state.Run != nil && id.run == l.state.Run.Number {
			f.Works = append(f.Works, a)
		}
	}
	if c.size > 0 && rapid.IntRange(0, 19).Draw(l.T, "control is unknown") > 0 {
		ready := rapid.SampledFrom([]int{c.size, c.size, c.size, c.size, 0, 1}).Draw(l.T, "ready of the control")
		hash := rapid.SampledFrom([]string{"c", "c", "c", "c", "c", "c", "c", "c", "c", "evil"}).Draw(l.T, "template of the control")
		f.Arms[control] = rollout.Arm{Revision: rollout.Revision{Hash: hash}, Ready: min(ready, c.size), Targets: c.size, Updated: c.size}
	}
	return f
}

// owners returns who has the visitors of each hundredth of the keys.
func owners(split traffic.Split) (of [100]string) {
	at := traffic.Weight(0)
	for _, segment := range split.Shares.Layout() {
		for end := at + segment.Weight; at < end; at += 100 {
			of[at/100] = segment.Variation
		}
	}
	return of
}

// checkSplit demands what holds of the split of each decision.
func (l *life) checkSplit(c *controlWorld, before *release.State, d rollout.Decision) {
	was, is := owners(before.Split), owners(c.effective.Split)
	run := d.After.Run
	isSame := l.state.Run != nil && run != nil && l.state.Run.Number == run.Number && l.state.IsOn() && d.After.IsOn()
	for key := range is {
		switch {
		case !isSame:
		case was[key] == run.Canary && is[key] != run.Canary && run.ReturnTime.IsZero():
			l.Fatalf("the visitors of key %d are moved back from %s to %s", key, run.Canary, is[key])
		case is[key] == control && was[key] != control && was[key] != run.Active:
			l.Fatalf("the fresh control takes the visitors of key %d from %s", key, was[key])
		}
	}
	shares := c.effective.Split.Shares
	at := slices.IndexFunc(shares, func(s traffic.Share) bool { return s.Variation == control })
	switch {
	case at < 0 != !d.Comparison.HasControl:
		l.Fatalf("the decision says %+v, and the split has %+v", d.Comparison, shares)
	case at >= 0 && shares[at].Weight > 0 && (shares[at].Weight != d.Weight || d.Weight > release.MaxControl || shares[0].Weight < d.Weight):
		l.Fatalf("the canary has %d, and the shares are %+v", d.Weight, shares)
	}
}

// checkRollback demands that a run which fails goes back to the prepared split. What proxies have belongs to the state
// before the decision, in each look of the controller.
func (l *life) checkRollback(c *controlWorld, before *release.State, f rollout.Facts, d rollout.Decision) {
	run := d.After.Run
	isFailed := run != nil && l.state.Run != nil && run.Number == l.state.Run.Number && l.state.IsOn() && run.State == rollout.RolledBack && run.EndReason == rollout.EndFailed
	if !isFailed || before.Prepared == 0 || f.Standing.Weight != l.state.Weight() {
		return
	}
	if diff := cmp.Diff(before.Retreated().Split, c.effective.Split, cmpopts.EquateEmpty()); diff != "" {
		l.Errorf("a run that failed goes back to another split than the prepared one (-prepared +decided):\n%s", diff)
	}
}

// checkControl demands of the works about the control that they are safe.
func (l *life) checkControl(f rollout.Facts, d rollout.Decision) {
	for _, w := range newWorks(l.state, d.After) {
		switch isOut := f.Standing.Comparison.Weight == 0 && f.Standing.Acknowledged && d.Comparison.Weight == 0; {
		case w.Variation != control:
		case w.Verb == rollout.ScaleClone && w.Replicas == 0 && !isOut:
			l.Errorf("the control is scaled to 0, and proxies have %+v", f.Standing)
		case w.Verb == rollout.CreateClone && (f.Standing.Comparison.Weight > 0 && !f.Standing.Checking || w.ExpectedHash != d.After.Run.From.Hash || f.Paused):
			l.Errorf("the control is made by %+v, paused %v, and proxies have %+v", w, f.Paused, f.Standing)
		case w.Verb == rollout.ChangeBaseline || w.Verb == rollout.HoldMinimum:
			l.Errorf("the control gets a %s", w.Verb)
		}
	}
	if rises := d.Comparison.Weight > l.state.Comparison().Weight && !d.Checking; !rises || d.After.Run == nil {
		return
	}
	ready, run := f.Arms[control].Ready, d.After.Run
	if ready < 1 || ready*int(traffic.Total) < int(d.Comparison.Weight)*run.Capacity {
		l.Errorf("the control gets %d of %d endpoints, and has %d", d.Comparison.Weight, run.Capacity, ready)
	}
	if since := run.Control.ReadyTime; f.Plan != nil && f.Plan.Warmup > 0 && (since.IsZero() || f.Now.Sub(since) < f.Plan.Warmup) {
		l.Errorf("the control is ready since %s, and gets requests at %s with a warmup of %s", since, f.Now, f.Plan.Warmup)
	}
}

func TestAFreshControlTakesVisitorsFromTheActiveVariationAlone(t *testing.T) {
	compared, dropped := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		l := &life{T: t, now: noon, revisions: map[string]string{"a": "1", "b": "1"}}
		c := newControlWorld(t)
		for range rapid.IntRange(1, 60).Draw(t, "decisions") {
			f := l.drawControlled(c)
			d := rollout.Decide(f)
			before := c.effective
			c.decide(t, d)
			l.check(f, d)
			l.checkSplit(c, before, d)
			l.checkRollback(c, before, f, d)
			l.checkControl(f, d)
			if d.Comparison.Weight > 0 {
				compared++
			}
			if slices.ContainsFunc(d.Events, func(e rollout.Event) bool { return e.Name == rollout.ControlEnded }) {
				dropped++
			}
			l.state = keep(t, f, d)
			if rapid.Bool().Draw(t, "told") {
				l.weight, l.checking, c.comparison = d.Weight, d.Checking, d.Comparison
			}
		}
	})
	if compared == 0 || dropped == 0 {
		t.Errorf("%d decisions have a control with requests, and %d end one", compared, dropped)
	}
}
