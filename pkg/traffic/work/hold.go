// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Holds says whether a work is about the minimum of an autoscaler.
func Holds(spec *v1alpha1.ReleaseWorkSpec) bool { return spec.Verb == v1alpha1.WorkHoldMinReplicas }

// PutsBack says whether a work puts the former minimum of an autoscaler back.
func PutsBack(spec *v1alpha1.ReleaseWorkSpec) bool {
	return Holds(spec) && spec.Replicas != nil && *spec.Replicas == 0
}

// GivesBack says whether a work makes the cluster do less, or returns what a run has taken from a group, so that
// the work needs no right of the author.
func GivesBack(work *v1alpha1.ReleaseWork, release *v1alpha1.ABRelease) bool {
	if ScalesGroup(work, release) {
		return givesGroupBack(work, release)
	}
	return ScalesToZero(&work.Spec) || PutsBack(&work.Spec)
}

func givesBack(f *Facts) bool { return GivesBack(f.Work, f.Release) }

// NeedsRecord says whether a signed record of the intent must be stored before the write. A work that makes the
// cluster do less, or gives replicas back, waits for no record.
func NeedsRecord(work *v1alpha1.ReleaseWork, release *v1alpha1.ABRelease) bool {
	return !GivesBack(work, release)
}

// IsBefore says whether a work comes before another one of the same release.
func IsBefore(a, b *v1alpha1.ReleaseWork) bool {
	return a.Spec.Run < b.Spec.Run || a.Spec.Run == b.Spec.Run && a.Spec.Number < b.Spec.Number
}

// HoldingOf returns what the works before a work of the same release hold; nil if they hold nothing. A work
// that failed found the minimum of another writer, which stays.
func HoldingOf(w *v1alpha1.ReleaseWork, works []v1alpha1.ReleaseWork) *v1alpha1.HeldAutoscaler {
	var earlier []*v1alpha1.ReleaseWork
	for i := range works {
		if works[i].Spec.ReleaseUID == w.Spec.ReleaseUID && IsBefore(&works[i], w) {
			earlier = append(earlier, &works[i])
		}
	}
	last := holderIn(earlier)
	if last == nil || last.Status.Phase != v1alpha1.WorkSucceeded || PutsBack(&last.Spec) {
		return nil
	}
	return last.Status.Held
}

// holderIn returns the newest work about an autoscaler that has written; nil if none has.
func holderIn(works []*v1alpha1.ReleaseWork) *v1alpha1.ReleaseWork {
	var last *v1alpha1.ReleaseWork
	for _, w := range works {
		hasWritten := w.Status.Phase == v1alpha1.WorkSucceeded || w.Status.Phase == v1alpha1.WorkFailed
		if Holds(&w.Spec) && hasWritten && (last == nil || IsBefore(last, w)) {
			last = w
		}
	}
	return last
}

// ScaledWorkload returns the workload of a variation that an autoscaler can scale; nil if there is none.
func ScaledWorkload(release *v1alpha1.ABRelease, variation v1alpha1.VariationName) *v1alpha1.VariationWorkload {
	if release == nil {
		return nil
	}
	for i := range release.Spec.Variations {
		v := &release.Spec.Variations[i]
		if v.Name != variation || v.Workload == nil {
			continue
		}
		if kind := v.Workload.Kind; kind == v1alpha1.VariationDeployment || kind == v1alpha1.VariationStatefulSet {
			return v.Workload
		}
	}
	return nil
}

// Scales says whether an autoscaler scales a workload.
func Scales(autoscaler *unstructured.Unstructured, workload *v1alpha1.VariationWorkload) bool {
	target, _, err := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	return err == nil && strings.HasPrefix(target["apiVersion"], "apps/") && target["kind"] == string(workload.Kind) && target["name"] == workload.Name
}

// autoscalerOf returns the autoscaler that the intent names, or else the only one; nil if there is none.
func autoscalerOf(f *Facts) *unstructured.Unstructured {
	if intent := f.Work.Status.Intent; intent != nil {
		at := slices.IndexFunc(f.Autoscalers, func(a *unstructured.Unstructured) bool { return string(a.GetUID()) == intent.UID })
		if at >= 0 {
			return f.Autoscalers[at]
		}
	}
	if len(f.Autoscalers) == 1 {
		return f.Autoscalers[0]
	}
	return nil
}

// minReplicas of an autoscaler. An absent field is 1, as the API server has it.
func minReplicas(autoscaler *unstructured.Unstructured) int32 {
	n, is, err := unstructured.NestedInt64(autoscaler.Object, "spec", "minReplicas")
	if err != nil || !is {
		return 1
	}
	return int32(n) //nolint:gosec // the API has 32 bits
}

// objectToAutoscaler is about the autoscaler whose minimum a work raises.
func objectToAutoscaler(f *Facts) *objection {
	spec := &f.Work.Spec
	const remedy = "set spec.rollout.fallback to Wait"
	workload := ScaledWorkload(f.Release, spec.Variation)
	switch {
	case f.Release.Spec.Rollout.Fallback != v1alpha1.FallbackHoldMinReplicas:
		return object(v1alpha1.WorkInvalidSpec, "spec.rollout.fallback: the release does not ask for HoldMinReplicas")
	case workload == nil:
		return object(v1alpha1.WorkInvalidSpec, "spec.rollout.fallback: the variation %s names no Deployment and no StatefulSet that an autoscaler scales: %s", spec.Variation, remedy)
	case len(f.Autoscalers) == 0:
		return object(v1alpha1.WorkAutoscalerMissing, "no HorizontalPodAutoscaler scales the %s %s: %s, or create one", workload.Kind, workload.Name, remedy)
	case len(f.Autoscalers) > 1:
		return object(v1alpha1.WorkAutoscalerAmbiguous, "the HorizontalPodAutoscalers %s scale the %s %s: keep one of them", namesOf(f.Autoscalers), workload.Kind, workload.Name)
	}
	return objectToRaise(f, f.Autoscalers[0], remedy)
}

// objectToRaise is about the only autoscaler of the workload.
func objectToRaise(f *Facts, a *unstructured.Unstructured, remedy string) *objection {
	owner := metav1.GetControllerOfNoCopy(a)
	most, _, _ := unstructured.NestedInt64(a.Object, "spec", "maxReplicas")
	switch wants := int64(*f.Work.Spec.Replicas); {
	case a.GetDeletionTimestamp() != nil:
		return object(v1alpha1.WorkTerminating, "the HorizontalPodAutoscaler %s is being deleted", a.GetName())
	case f.Tool != "":
		return object(v1alpha1.WorkGitOpsOwned, "%s applies the HorizontalPodAutoscaler %s and would take the change back: raise minReplicas there, and %s", f.Tool, a.GetName(), remedy)
	case owner != nil:
		return object(v1alpha1.WorkAutoscalerControlled, "the %s %s keeps the HorizontalPodAutoscaler %s: raise the minimum there, and %s", owner.Kind, owner.Name, a.GetName(), remedy)
	case most < wants:
		return object(v1alpha1.WorkAutoscalerTooSmall, "maxReplicas of the HorizontalPodAutoscaler %s is %d, and all requests need %d: raise maxReplicas", a.GetName(), most, wants)
	}
	return nil
}

func namesOf(objects []*unstructured.Unstructured) string {
	names := make([]string, 0, len(objects))
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// held computes the autoscaler as the work leaves it; nil if nothing is to be written.
func held(f *Facts) (*unstructured.Unstructured, error) {
	a := autoscalerOf(f)
	if PutsBack(&f.Work.Spec) {
		if a == nil || !isHeld(a, f.Holding) {
			return nil, nil //nolint:nilnil // nothing to write is no error
		}
		return withMinimum(f, a, *f.Holding.FormerMinReplicas)
	}
	if minReplicas(a) >= *f.Work.Spec.Replicas {
		return nil, nil //nolint:nilnil // nothing to write is no error
	}
	return withMinimum(f, a, *f.Work.Spec.Replicas)
}

// isHeld says whether an autoscaler has the minimum that a work gave it.
func isHeld(a *unstructured.Unstructured, by *v1alpha1.HeldAutoscaler) bool {
	return by != nil && by.UID == string(a.GetUID()) && *by.MinReplicas == minReplicas(a)
}

func withMinimum(f *Facts, a *unstructured.Unstructured, n int32) (*unstructured.Unstructured, error) {
	out := a.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, int64(n), "spec", "minReplicas"); err != nil {
		return nil, fmt.Errorf("setting spec.minReplicas of the HorizontalPodAutoscaler %s: %w", a.GetName(), err)
	}
	return marked(f, out), nil
}

// holdsAsIntended says whether an autoscaler has the minimum that the work gives it.
func holdsAsIntended(f *Facts, a *unstructured.Unstructured) bool {
	if PutsBack(&f.Work.Spec) {
		return f.Holding == nil || minReplicas(a) == *f.Holding.FormerMinReplicas
	}
	return minReplicas(a) == *f.Work.Spec.Replicas
}

// recordOf returns what a work holds at an autoscaler, with the value to put back; nil if the work puts one
// back, or if the minimum is that of another writer. A former value that is known already is kept: what an
// earlier work has raised is raised further, or the label of this work is gone.
func recordOf(f *Facts, a *unstructured.Unstructured) *v1alpha1.HeldAutoscaler {
	if a == nil || PutsBack(&f.Work.Spec) {
		return nil
	}
	live, wants := minReplicas(a), *f.Work.Spec.Replicas
	record := &v1alpha1.HeldAutoscaler{Name: a.GetName(), UID: string(a.GetUID()), FormerMinReplicas: &live, MinReplicas: new(max(live, wants))}
	for _, known := range []*v1alpha1.HeldAutoscaler{f.Work.Status.Held, f.Holding} {
		if isHeld(a, known) {
			record.FormerMinReplicas = new(*known.FormerMinReplicas)
			return record
		}
	}
	if live >= wants {
		return nil
	}
	return record
}

// settleHold ends a work that has nothing to write.
func settleHold(f *Facts) Action {
	a := succeed(f, unheldText(f))
	a.Status.Held = recordOf(f, autoscalerOf(f))
	return a
}

// unheldText says why nothing was written.
func unheldText(f *Facts) string {
	a, by := autoscalerOf(f), f.Holding
	switch {
	case !PutsBack(&f.Work.Spec):
		return fmt.Sprintf("minReplicas of the HorizontalPodAutoscaler %s is %d already", a.GetName(), minReplicas(a))
	case by == nil:
		return "no minimum is held"
	case a == nil || by.UID != string(a.GetUID()):
		return fmt.Sprintf("the HorizontalPodAutoscaler %s, which had minReplicas %d before the run, is gone or was made again", by.Name, *by.FormerMinReplicas)
	case minReplicas(a) == *by.FormerMinReplicas:
		return fmt.Sprintf("minReplicas of the HorizontalPodAutoscaler %s is %d already", by.Name, *by.FormerMinReplicas)
	}
	return fmt.Sprintf("another writer has set minReplicas of the HorizontalPodAutoscaler %s to %d, which stays; it was %d before the run", by.Name, minReplicas(a), *by.FormerMinReplicas)
}
