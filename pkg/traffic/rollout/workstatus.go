// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func writeWorks(works []Work) []v1alpha1.RolloutWork {
	var out []v1alpha1.RolloutWork
	for i := range works {
		w := &works[i]
		out = append(out, v1alpha1.RolloutWork{
			Number: w.Number, Run: w.Run, Verb: string(w.Verb), Variation: v1alpha1.VariationName(w.Variation), Replicas: int32(w.Replicas), //nolint:gosec // pods of a namespace
			ExpectedHash: w.ExpectedHash, Phase: string(w.Phase), Message: w.Message,
		})
	}
	return out
}

func readWorks(in []v1alpha1.RolloutWork) []Work {
	var out []Work
	for i := range in {
		w := &in[i]
		out = append(out, Work{
			Number: w.Number, Run: w.Run, Verb: WorkVerb(w.Verb), Variation: string(w.Variation), Replicas: int(w.Replicas),
			ExpectedHash: w.ExpectedHash, Phase: WorkPhase(w.Phase), Message: w.Message,
		})
	}
	return out
}

// writeClone returns nil for a run whose canary is no clone.
func (r *Run) writeClone() *v1alpha1.RolloutClone {
	if !r.isCloned() {
		return nil
	}
	out := &v1alpha1.RolloutClone{Promotion: string(r.Promotion), ChangeHash: r.Change, ReturnTime: timeOrNil(r.ReturnTime)}
	if r.Baseline.Hash != "" {
		out.Changed = new(revisionOf(r.Active, r.Baseline))
	}
	return out
}

func (r *Run) readClone(in *v1alpha1.RolloutClone) {
	if in == nil {
		return
	}
	r.Promotion, r.Change, r.ReturnTime = Promotion(in.Promotion), in.ChangeHash, timeOf(in.ReturnTime)
	if in.Changed != nil {
		r.Baseline = readRevision(in.Changed)
	}
}
