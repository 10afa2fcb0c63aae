// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"math"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// DefaultCohortCheck is how long a cohort check lasts where visitors stay with a variation.
const DefaultCohortCheck = 5 * time.Minute

// CohortCheck compares the visitors of the first stage with all others before the run: the active
// variation serves both. So a difference is one between visitors, and the judge does not blame the canary
// for it.
type CohortCheck struct {
	Duration time.Duration
	// ShiftTime is when the range of the first stage was given to the check, StartTime when proxies had
	// acknowledged that, and EndTime when the check was over.
	ShiftTime, StartTime, EndTime time.Time
	// Ratio is that of the error rates up to which the canary counts as good, from judge.DefaultR0 to
	// judge.MaxR0, with two decimals; 0 before the end.
	Ratio float64
	// Skipped says that a person ended the check before its time.
	Skipped bool
}

// Cohort is what a cohort check has shown until now.
type Cohort struct {
	Run   int64
	Ratio float64
	// Known says that there were enough requests for a bound; Ratio is the default otherwise.
	Known bool
}

// CohortOf reads what the counts of a check show; the zero Cohort if no check is under way.
func CohortOf(s State, counted *judge.State) Cohort {
	if !s.IsChecking() || counted == nil {
		return Cohort{}
	}
	ratio, known := judge.RatioAfterCheck(counted)
	return Cohort{Run: s.Run.Number, Ratio: math.Min(math.Ceil(ratio*100)/100, judge.MaxR0), Known: known}
}

// checkOf a run; nil if the plan has none, or if there is nothing to compare the cohort with.
func checkOf(plan *Plan) *CohortCheck {
	first := plan.Strategy.Stages[0].Weight
	if plan.CohortCheck <= 0 || first <= 0 || first >= traffic.Total {
		return nil
	}
	return &CohortCheck{Duration: plan.CohortCheck}
}

// IsChecking tells whether the active variation serves the visitors of the canary.
func (s State) IsChecking() bool {
	return s.Run != nil && s.Run.State == Deploying && s.Run.Check != nil && !s.Run.Check.ShiftTime.IsZero() && s.Run.Check.EndTime.IsZero()
}

// check the visitors of the first stage; it tells whether the state has changed.
func (m *machine) check() (changed, over bool) {
	c := m.next.Run.Check
	first := m.next.Run.Stages[0].Weight
	switch {
	case c == nil || !c.EndTime.IsZero():
		return false, true
	case c.Skipped:
		m.endCheck(judge.DefaultR0, "the cohort check was skipped")
		return true, true
	case c.ShiftTime.IsZero():
		c.ShiftTime = m.Now
		m.tell(CohortCheckStarted, false, "a cohort check of %s has begun: %s serves %s%% of the visitors in the place of %s", c.Duration, m.next.Run.Active, percent(first), m.next.Run.Canary)
		return true, false
	case c.StartTime.IsZero():
		c.StartTime = m.Now
		return true, false
	}
	if over := c.StartTime.Add(c.Duration); m.Now.Before(over) {
		m.waitUntil(WaitCohortCheck, over, "the visitors of stage 1 to be compared with the others for %s", c.Duration)
		return false, false
	}
	if m.Cohort.Run != m.next.Run.Number {
		m.waitTold(WaitData, m.deadlines().Extension, "no data about the cohort check")
		return false, false
	}
	how := "the cohort check is over"
	if !m.Cohort.Known {
		how = "the cohort check saw too few requests for a bound"
	}
	m.endCheck(m.Cohort.Ratio, how)
	return true, true
}

// endCheck leaves the range of the check to the first stage: no visitor gets it back.
func (m *machine) endCheck(ratio float64, how string) {
	c := m.next.Run.Check
	c.EndTime, c.Ratio = m.Now, ratio
	m.tell(CohortCheckEnded, false, "%s: the canary counts as good up to %s times the errors of the others", how, strconv.FormatFloat(ratio, 'f', -1, 64))
}

// skipCheck ends the check under way for a person; the text says why it does not. What the check has shown until
// then is no bound, so the canary is judged as without a check.
func (m *machine) skipCheck() string {
	if m.isPaused() {
		return m.refuseUnless(false)
	}
	m.next.Run.Check.Skipped = true
	return ""
}

// ratio up to which the canary of a run counts as good.
func (r *Run) ratio() float64 {
	if r.Check != nil && r.Check.Ratio > 0 {
		return r.Check.Ratio
	}
	return judge.DefaultR0
}

func (r *Run) writeCheck() *v1alpha1.RolloutCohortCheck {
	c := r.Check
	if c == nil {
		return nil
	}
	out := &v1alpha1.RolloutCohortCheck{DurationSeconds: seconds(c.Duration), ShiftTime: timeOrNil(c.ShiftTime), StartTime: timeOrNil(c.StartTime), CompletionTime: timeOrNil(c.EndTime)}
	if c.Skipped {
		out.Skipped = v1alpha1.Enabled
	}
	if c.Ratio > 0 {
		out.Ratio = strconv.FormatFloat(c.Ratio, 'f', -1, 64)
	}
	return out
}

func checkIn(in *v1alpha1.RolloutCohortCheck) *CohortCheck {
	if in == nil {
		return nil
	}
	c := &CohortCheck{Duration: time.Duration(in.DurationSeconds) * time.Second, ShiftTime: timeOf(in.ShiftTime), StartTime: timeOf(in.StartTime), EndTime: timeOf(in.CompletionTime), Skipped: in.Skipped == v1alpha1.Enabled}
	if ratio, err := strconv.ParseFloat(in.Ratio, 64); err == nil && ratio >= judge.DefaultR0 && ratio <= judge.MaxR0 {
		c.Ratio = ratio
	}
	return c
}

// cohortCheckOf a release: where visitors stay with a variation, one is made unless the spec says otherwise.
func cohortCheckOf(r *v1alpha1.ABRelease) time.Duration {
	var asked *metav1.Duration
	if in := r.Spec.Rollout.Analysis; in != nil {
		asked = in.CohortCheck
	}
	if r.Spec.TrafficSplit.Sticky == nil {
		return 0
	}
	return durationOf(asked, DefaultCohortCheck)
}
