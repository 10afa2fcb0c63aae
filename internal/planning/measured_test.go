// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// assessmentOf is an assessment of a write at a time before now, measured for at most half an hour.
func assessmentOf(c *cluster, object string, ago time.Duration, phase v1alpha1.AssessmentPhase) v1alpha1.EffectivenessAssessment {
	window := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	return v1alpha1.EffectivenessAssessment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly-1-0"},
		Spec: v1alpha1.EffectivenessAssessmentSpec{
			Target:      v1alpha1.AssessedTarget{BaselineName: c.BaselineName(object)},
			WrittenTime: &metav1.Time{Time: epoch.Add(-ago)},
			Windows:     v1alpha1.AssessmentWindows{Stabilization: window(5 * time.Minute), Validity: window(30 * time.Minute)},
		},
		Status: v1alpha1.EffectivenessAssessmentStatus{Phase: phase},
	}
}

func TestWhichObjectsAreBeingMeasured(t *testing.T) {
	ended := func(c *cluster, w *World, result *v1alpha1.StepResult, ago time.Duration) {
		p := c.Ended("nightly-1", v1alpha1.PlanSucceeded, v1alpha1.StepVerified, "")
		p.Status.Steps[0].Result, p.Status.Steps[0].CompletionTime = result, &metav1.Time{Time: epoch.Add(-ago)}
		w.Plans, w.BeginsAssessments = append(w.Plans, *p), true
	}
	wrote := &v1alpha1.StepResult{}
	tests := map[string]struct {
		fill  func(*cluster, *World)
		by    string
		until time.Time
	}{
		"no assessment": {fill: func(*cluster, *World) {}},
		"an assessment that stabilizes": {func(c *cluster, w *World) {
			w.Assessments = append(w.Assessments, assessmentOf(c, "web", time.Minute, v1alpha1.AssessmentStabilizing))
		}, "nightly-1-0", epoch.Add(29 * time.Minute)},
		"an assessment that no assessor has looked at": {func(c *cluster, w *World) {
			w.Assessments = append(w.Assessments, assessmentOf(c, "web", time.Minute, ""))
		}, "nightly-1-0", epoch.Add(29 * time.Minute)},
		"an assessment that has ended": {fill: func(c *cluster, w *World) {
			w.Assessments = append(w.Assessments, assessmentOf(c, "web", time.Minute, v1alpha1.AssessmentCompleted))
		}},
		"the assessment of a run of a release": {fill: func(c *cluster, w *World) {
			a := assessmentOf(c, "web", time.Minute, v1alpha1.AssessmentStabilizing)
			a.Spec.Subject.Release = &v1alpha1.AssessedRun{Name: "web", UID: "web", Run: 3}
			w.Assessments = append(w.Assessments, a)
		}},
		"an assessment of another object": {fill: func(c *cluster, w *World) {
			w.Assessments = append(w.Assessments, assessmentOf(c, "db", time.Minute, v1alpha1.AssessmentStabilizing))
		}},
		"an assessment in another namespace": {fill: func(c *cluster, w *World) {
			a := assessmentOf(c, "web", time.Minute, v1alpha1.AssessmentStabilizing)
			a.Namespace = "bank"
			w.Assessments = append(w.Assessments, a)
		}},
		"the later one of two": {func(c *cluster, w *World) {
			for _, ago := range []time.Duration{time.Minute, 2 * time.Minute} {
				w.Assessments = append(w.Assessments, assessmentOf(c, "web", ago, v1alpha1.AssessmentStabilizing))
			}
		}, "nightly-1-0", epoch.Add(29 * time.Minute)},
		"a step whose assessment is about to begin": {func(c *cluster, w *World) {
			ended(c, w, wrote, time.Second)
		}, "nightly-1-0", epoch.Add(59 * time.Second)},
		"a step that wrote nothing": {fill: func(c *cluster, w *World) { ended(c, w, nil, time.Second) }},
		"a step whose assessment has ended": {fill: func(c *cluster, w *World) {
			ended(c, w, wrote, time.Second)
			w.Assessments = append(w.Assessments, assessmentOf(c, "web", time.Minute, v1alpha1.AssessmentCompleted))
		}},
		"a step where no effects are assessed": {fill: func(c *cluster, w *World) {
			ended(c, w, wrote, time.Second)
			w.BeginsAssessments = false
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, w := newCluster(t), &World{}
			tc.fill(c, w)
			g := &gatherer{world: w, byName: map[string]*v1alpha1.RemediationPlan{}}
			for i := range w.Plans {
				g.byName[w.Plans[i].Namespace+"/"+w.Plans[i].Name] = &w.Plans[i]
			}
			by, until := g.measurement(c.Baselines["web"])
			if by != tc.by || !until.Equal(tc.until) {
				t.Errorf("it is measured by %q until %s, want %q until %s", by, until, tc.by, tc.until)
			}
		})
	}
}

// What a person sees in an explanation is read live.
func TestTheObjectThatIsMeasuredIsInNoPlan(t *testing.T) {
	c := newCluster(t)
	a := assessmentOf(c, "web", time.Minute, v1alpha1.AssessmentStabilizing)
	c.Further = append(c.Further, &a)
	g := c.gather()
	if len(g.Input.Drifts) != 1 || g.Input.Drifts[0].MeasuredBy != effect.NameOf("nightly-1", 0) {
		t.Errorf("the drifts are %+v", g.Input.Drifts)
	}
}
