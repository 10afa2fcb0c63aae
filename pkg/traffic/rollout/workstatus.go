// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxReplicas of a work in the schema.
const maxReplicas = 100_000

// ReleaseWorkOf returns the object that asks the executor for a work. Its name follows from the release, the
// run and the number, so a process that does not know whether it has asked asks again for the same.
func ReleaseWorkOf(r *v1alpha1.ABRelease, w *Work) *v1alpha1.ReleaseWork {
	return &v1alpha1.ReleaseWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: fmt.Sprintf("%s-%d-%d", r.Name, w.Run, w.Number),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ABRelease", Name: r.Name, UID: r.UID, Controller: new(true)}},
		},
		Spec: v1alpha1.ReleaseWorkSpec{
			ReleaseName: r.Name, ReleaseUID: string(r.UID), Run: w.Run, Number: w.Number, Verb: v1alpha1.ReleaseWorkVerb(w.Verb),
			Variation: v1alpha1.VariationName(w.Variation), Replicas: w.replicas(), ExpectedHash: w.ExpectedHash,
		},
	}
}

// AnswersOf reads what the executor says of the works of a release. Works of another release that had the
// name say nothing.
func AnswersOf(r *v1alpha1.ABRelease, works []v1alpha1.ReleaseWork) []WorkAnswer {
	var answers []WorkAnswer
	for i := range works {
		w := &works[i]
		if w.Spec.ReleaseName != r.Name || w.Spec.ReleaseUID != string(r.UID) {
			continue
		}
		a := WorkAnswer{
			Run: w.Spec.Run, Number: w.Spec.Number, Verb: WorkVerb(w.Spec.Verb), Variation: string(w.Spec.Variation),
			Phase: WorkPhase(w.Status.Phase), Message: w.Status.Message, TemplateHash: w.Status.TemplateHash, Held: heldOf(w.Status.Held),
		}
		if w.Spec.Replicas != nil {
			a.Replicas = int(*w.Spec.Replicas)
		}
		if a.Phase == "" {
			a.Phase = WorkIsPending
		}
		a.Distrusted = w.Status.Reason == v1alpha1.WorkRequesterNotTrusted && !a.Phase.settled()
		switch {
		case a.Distrusted: // the run waits for a reason of that name
		case w.Status.Reason != "":
			a.Message = string(w.Status.Reason) + ": " + a.Message
		}
		answers = append(answers, a)
	}
	return answers
}

func writeWorks(works []Work) []v1alpha1.RolloutWork {
	var out []v1alpha1.RolloutWork
	for i := range works {
		w := &works[i]
		out = append(out, v1alpha1.RolloutWork{
			Number: w.Number, Run: w.Run, Verb: v1alpha1.ReleaseWorkVerb(w.Verb), Variation: v1alpha1.VariationName(w.Variation), Replicas: w.replicas(),
			ExpectedHash: w.ExpectedHash, Phase: v1alpha1.ReleaseWorkPhase(w.Phase), Message: w.Message,
		})
	}
	return out
}

// replicas is nil of a work that sets none.
func (w *Work) replicas() *int32 {
	if w.Verb == ChangeBaseline {
		return nil
	}
	return new(int32(min(w.Replicas, maxReplicas))) //nolint:gosec // bounded
}

func readWorks(in []v1alpha1.RolloutWork) []Work {
	var out []Work
	for i := range in {
		w := &in[i]
		work := Work{Number: w.Number, Run: w.Run, Verb: WorkVerb(w.Verb), Variation: string(w.Variation), ExpectedHash: w.ExpectedHash, Phase: WorkPhase(w.Phase), Message: w.Message}
		if w.Replicas != nil {
			work.Replicas = int(*w.Replicas)
		}
		out = append(out, work)
	}
	return out
}

// writeClone returns nil for a run whose canary is no clone.
func (r *Run) writeClone() *v1alpha1.RolloutClone {
	if !r.isCloned() {
		return nil
	}
	out := &v1alpha1.RolloutClone{Promotion: v1alpha1.PromotionPolicy(r.Promotion), ChangeHash: r.Change, QueuedTime: timeOrNil(r.QueuedTime), ReturnTime: timeOrNil(r.ReturnTime)}
	if r.Baseline.Hash != "" {
		out.Changed = new(revisionOf(r.Active, r.Baseline))
	}
	return out
}

func (r *Run) readClone(in *v1alpha1.RolloutClone) {
	if in == nil {
		return
	}
	r.Promotion, r.Change, r.QueuedTime, r.ReturnTime = Promotion(in.Promotion), in.ChangeHash, timeOf(in.QueuedTime), timeOf(in.ReturnTime)
	if in.Changed != nil {
		r.Baseline = readRevision(in.Changed)
	}
}
