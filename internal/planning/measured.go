// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// begins is how long after the end of a step its assessment has begun. So a plan that follows at once finds the
// target measured already.
const begins = time.Minute

// measurement is an assessment that goes on, and until when it does at the latest.
type measurement struct {
	assessment string
	until      time.Time
}

// measurement returns the assessment that measures the last repair of an object; empty without one.
func (g *gatherer) measurement(b *v1alpha1.Baseline) (assessment string, until time.Time) {
	if g.measured == nil {
		g.measured = measurements(g.world, g.byName)
	}
	m := g.measured[object{b.Namespace, b.Name}]
	return m.assessment, m.until
}

// measurements finds the assessments that go on, and those that are about to begin, by their objects.
func measurements(w *World, plans map[string]*v1alpha1.RemediationPlan) map[object]measurement {
	all, known := map[object]measurement{}, map[object]bool{}
	note := func(of object, m measurement) {
		if m.until.After(all[of].until) {
			all[of] = m
		}
	}
	for i := range w.Assessments {
		a := &w.Assessments[i]
		known[object{a.Namespace, a.Name}] = true
		if a.Spec.Subject.Release != nil {
			continue // a repair does not wait for the measurement of a run, which takes notice of it
		}
		if written := a.Spec.WrittenTime; written != nil && !effect.Phase(a.Status.Phase).Ended() {
			note(object{a.Namespace, a.Spec.Target.BaselineName}, measurement{a.Name, deadlineOf(&a.Spec)})
		}
	}
	if !w.BeginsAssessments {
		return all
	}
	for _, p := range plans {
		for i := range p.Status.Steps {
			s := &p.Status.Steps[i]
			name := effect.NameOf(p.Name, s.Index)
			if s.Result == nil || s.CompletionTime == nil || known[object{p.Namespace, name}] || int(s.Index) >= len(p.Spec.Plan.Targets) {
				continue
			}
			note(object{p.Namespace, p.Spec.Plan.Targets[s.Index].BaselineName}, measurement{name, s.CompletionTime.Add(begins)})
		}
	}
	return all
}

// deadlineOf returns when an assessment expires.
func deadlineOf(spec *v1alpha1.EffectivenessAssessmentSpec) time.Time {
	return effect.WindowsOf(&spec.Windows).Schedule(spec.WrittenTime.Time).Deadline
}
