// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

// measurements bounds how often a router is asked in one look: a leader that begins reads half an hour.
const measurements = 32

// analysis is what was counted of a run in this look, and what follows.
type analysis struct {
	rollout.Analysis
	config     judge.Config
	assessment *judge.Assessment
	// stored are the counts that the status had.
	stored rollout.Counts
}

// analyze counts what the router has measured since the last look, and judges the stage under way. Without
// an answer nothing is counted, and nothing moves forward.
func (r *Reconciler) analyze(ctx context.Context, s *subject, before rollout.State, standing rollout.Standing) rollout.Health {
	if !before.IsOn() {
		return rollout.Health{}
	}
	a := &analysis{Analysis: rollout.AnalysisOf(&s.release.Status), config: judge.DefaultConfig(before.Run.Canary, before.ComparedWith())}
	a.config.Buckets = signals.Bounds()
	if a.Problem != "" {
		r.Log.Info("the checkpoint of a run could not be read; its measurement restarts", "release", s.release.Namespace+"/"+s.release.Name, "error", a.Problem)
	}
	sequence := uint64(0)
	if standing.Acknowledged && standing.Checking == before.IsChecking() && standing.Comparison == before.Comparison() && len(s.decision.After.Clamped) == 0 {
		sequence = s.decision.After.Split.Sequence
	}
	var isFresh bool
	a.Analysis, isFresh = a.Follow(before)
	a.stored = rollout.CountsOf(a.State)
	if isFresh && !r.count(ctx, s, a) { // the canary of that time is none of this run's
		return rollout.Health{}
	}
	a.Analysis = a.Enter(before, sequence, standing.Weight, rollout.WarmupOf(s.release))
	s.analysis = a
	if !r.count(ctx, s, a) {
		return rollout.Health{}
	}
	if s.cohort = rollout.CohortOf(before, a.State); before.Current() == 0 {
		return rollout.Health{}
	}
	facts := rollout.FactsOf(before, s.now.Truncate(time.Second))
	facts.InFlight, facts.ControlInFlight = s.inFlight(before.Run.Canary), s.inFlight(before.ComparedWith())
	assessment := judge.Judge(a.State, &a.config, &facts)
	a.assessment = &assessment
	r.History.note(s, before, a)
	return rollout.HealthOf(before, &assessment)
}

// count reads all that the router has; false if the router did not answer.
func (r *Reconciler) count(ctx context.Context, s *subject, a *analysis) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for range measurements {
		m, err := s.router.Measure(ctx, a.State.Cursor())
		if err != nil {
			r.Log.V(1).Info("the counts of the run are unknown", "release", s.release.Namespace+"/"+s.release.Name, "error", err.Error())
			return false
		}
		a.State.Count(&a.config, &m)
		r.History.count(s, &m)
		if !m.More {
			break
		}
	}
	return true
}

// inFlight are the requests of a variation that are not over.
func (s *subject) inFlight(variation string) uint64 {
	if s.seen == nil {
		return 0
	}
	for _, arm := range s.seen.Arms {
		if arm.Variation == variation && arm.Outcomes != nil {
			return uint64(max(arm.Outcomes.InFlight, 0)) //nolint:gosec // it is not negative
		}
	}
	return 0
}

// writeAnalysis keeps what was counted.
func (r *Reconciler) writeAnalysis(s *subject, was, status *v1alpha1.ABReleaseStatus) {
	if status.Rollout == nil {
		return
	}
	if was.Rollout != nil {
		status.Rollout.Analysis = was.Rollout.Analysis
	}
	if s.analysis == nil {
		return
	}
	if err := s.analysis.Write(status.Rollout, &s.analysis.config, s.analysis.assessment); err != nil {
		s.tally.Counts = rollout.Counts{} // the next look counts it again
		r.Log.Info("the counts of the run are not kept; another process would restart the measurement", "release", s.release.Namespace+"/"+s.release.Name, "error", err.Error())
	}
}
