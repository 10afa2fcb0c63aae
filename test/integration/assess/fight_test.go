// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

const imagePath = "/spec/template/spec/containers/[name=app]/image"

// reversalImage has a person change the image of web, or CI put it back, and waits
// until that is seen.
func (w *world) reversalImage(user string) {
	w.t.Helper()
	if user == ci {
		w.SetImage(ci, "web", "registry.example/shop:1")
		w.Until("web", "it is in sync", isState(v1alpha1.StateInSync))
		return
	}
	w.SetImage(user, "web", "registry.example/evil:1")
	w.UntilOn(poll.Detection, "web", "it drifts", isState(v1alpha1.StateDrifted))
}

// fighting checks who fights over the image and since when; nobody if empty.
func fighting(with ...string) func(*v1alpha1.Baseline) error {
	return func(b *v1alpha1.Baseline) error {
		c := b.Status.Contention
		told := v1alpha1.IsDegradedFor(b.Status.Conditions, v1alpha1.ReasonContended)
		switch {
		case len(with) == 0 && c == nil && !told:
			return nil
		case c == nil || len(with) == 0 || !told:
			return fmt.Errorf("contention is %+v, Contended is %t", c, told)
		}
		if got := slices.Sorted(slices.Values(c.With)); !slices.Equal(got, with) {
			return fmt.Errorf("the fighters are %q, want %q", got, with)
		}
		if len(c.Places) != 1 || c.Places[0].Path != imagePath || c.Places[0].Aspect != v1alpha1.AspectValue {
			return fmt.Errorf("they fight over %+v", c.Places)
		}
		return nil
	}
}

// TestARestartInTheMiddleOfAFight: the assessor that sees the third reversal did not
// see the first two; it knows them from the Baseline, with place and writer.
func TestARestartInTheMiddleOfAFight(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.reversalImage(alice)
	w.reversalImage(ci)
	p.Halt(t)
	p = start(t)
	w.reversalImage(alice)
	b := w.Until("web", "the fight is recognized", fighting(alice, ci))
	var reversals []string
	for _, f := range b.Status.Reversals {
		for _, place := range f.Places {
			reversals = append(reversals, fmt.Sprint(place.Path, " ", place.By, " ", place.Class))
		}
	}
	want := []string{imagePath + " alice Untrusted", imagePath + " " + ci + " Trusted", imagePath + " alice Untrusted"}
	if !slices.Equal(reversals, want) {
		t.Errorf("the reversals are %q, want %q", reversals, want)
	}
	p.Halt(t)
	start(t)
	// Elsewhere: no part in the fight, whoever saw its beginning.
	w.SetEnv(bob, "web", "DEBUG", "1")
	w.Until("web", "bob's change is seen and he is no fighter", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Findings) != 2 {
			return fmt.Errorf("it has %d findings", len(b.Status.Findings))
		}
		return fighting(alice, ci)(b)
	})
}

// TestAFightEndsAfterTenQuietMinutes, be it that the assessor runs on or that
// another one starts after them.
func TestAFightEndsAfterTenQuietMinutes(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %t", restarts), func(t *testing.T) {
			rotation.Share(t, 2)
			w := newWorld(t)
			c := &laterClock{}
			p := start(t, withClock(c))
			w.UnderGuard()
			w.Deploy(ci, "web")
			w.UntilIs("web", "InSync")
			quiet, err := p.figures()
			w.Must(err)
			for range 3 {
				w.reversalImage(alice)
				w.reversalImage(ci)
			}
			w.Until("web", "the fight is recognized", fighting(alice, ci))
			const contended = "plumbline_drift_contended_objects{}"
			w.shows(p, contended, map[string]float64{contended: quiet[contended] + 1})
			pass := func(d time.Duration) {
				if restarts {
					p.Halt(t)
				}
				c.forward(d)
				if restarts {
					p = start(t, withClock(c))
				}
				w.look("web")
			}
			pass(9 * time.Minute)
			w.stays("web", "InSync")
			b, err := w.Baseline("web")
			w.Must(err)
			if err := fighting(alice, ci)(b); err != nil {
				t.Errorf("after nine minutes: %v", err)
			}
			pass(time.Minute)
			w.Until("web", "the fight is over", fighting())
			w.shows(p, contended, map[string]float64{contended: quiet[contended]})
			w.Eventually("its end is told", func() error {
				told, err := w.events("Deployment", "web", specguard.ReasonContentionEnded)
				if err == nil && len(told) != 1 {
					err = fmt.Errorf("%d events", len(told))
				}
				return err
			})
		})
	}
}
