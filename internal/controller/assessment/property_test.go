// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// drawAnswer is any answer of a source.
func drawAnswer(rt *rapid.T, name v1alpha1.EffectComponent) Answer {
	if rapid.Bool().Draw(rt, "silent") {
		return Answer{AssessedComponent: v1alpha1.AssessedComponent{State: v1alpha1.ComponentNotAnswered}}
	}
	bad := rapid.Bool().Draw(rt, "bad")
	return answered(name, rapid.Int32Range(0, effect.Best).Draw(rt, "score"), bad, bad && rapid.Bool().Draw(rt, "decaying"))
}

// Whatever sources answer, and however often the assessor dies, looks twice or too late, an assessment ends once, with
// one verdict, which follows from what is stored; and nothing is written afterwards.
func TestAnAssessmentEndsOnceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, written(func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.Windows = v1alpha1.AssessmentWindows{Stabilization: &metav1.Duration{Duration: 30 * time.Second}, Validity: &metav1.Duration{Duration: 2 * time.Minute}}
		}), twoPods(true, true)...)
		w.configure(rt)
		w.lose = func(int) (stored, lost bool) {
			stored = rapid.IntRange(0, 3).Draw(rt, "not stored") > 0
			return stored, !stored || rapid.Bool().Draw(rt, "lost")
		}
		for looks := 0; !effect.Phase(w.stored().Status.Phase).Ended(); looks++ {
			if looks > maxLooks {
				rt.Fatalf("it has not ended: %+v", w.stored().Status)
			}
			w.disturb(rt)
			if _, err := w.look(); err != nil || rapid.IntRange(0, 4).Draw(rt, "restart") == 0 {
				w.start()
				w.configure(rt)
			}
		}
		w.checkEnd(rt)
	})
}

// configure names sources that answer anything.
func (w *world) configure(rt *rapid.T) {
	for _, name := range []v1alpha1.EffectComponent{v1alpha1.ComponentAlerts, v1alpha1.ComponentMetrics} {
		w.r.Sources[name] = &scripted{answer: func(int) Answer { return drawAnswer(rt, name) }}
	}
}

// disturb moves the clock, has it not compared, has the target unreadable, or has another writer change the target.
func (w *world) disturb(rt *rapid.T) {
	w.clock.SetTime(w.clock.Now().Add(rapid.SampledFrom([]time.Duration{-30 * time.Second, 0, time.Second, 30 * time.Second, time.Minute}).Draw(rt, "passes")))
	w.skew, w.readFails = 0, nil
	switch rapid.IntRange(0, 12).Draw(rt, "disturbance") {
	case 0:
		w.unknownTime()
	case 1:
		w.readFails = errLost
	case 2:
		w.target = deployment("evil:1")
		w.target.Generation = 8
		w.judge()
	}
}

// checkEnd demands that the end follows from what is stored, and stays.
func (w *world) checkEnd(rt *rapid.T) {
	end := w.stored()
	components := effect.ReadComponents(&end.Status)
	reason := effect.Reason(end.Status.Reason)
	if got, want := effect.Verdict(end.Status.Verdict), effect.VerdictOf(reason, effect.Integrity(end.Status.Integrity), &components); got != want {
		rt.Errorf("the verdict is %s, and follows as %s from %+v", got, want, end.Status)
	}
	if diff := cmp.Diff(effect.ScoreOf(reason, &components), end.Status.Score); diff != "" {
		rt.Errorf("the score does not follow from the components (-want +got):\n%s", diff)
	}
	writes := w.writes
	for range 3 {
		w.disturb(rt)
		if _, err := w.look(); err != nil {
			rt.Fatal(err)
		}
	}
	if diff := cmp.Diff(end, w.stored()); diff != "" || w.writes != writes {
		rt.Errorf("the end did not stay, after %d further writes (-before +after):\n%s", w.writes-writes, diff)
	}
}
