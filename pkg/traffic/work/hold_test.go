// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

const hold = v1alpha1.WorkHoldMinReplicas

// newAutoscaler scales Deployment web up to 10 replicas.
func newAutoscaler(name string, minimum int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
		"metadata": map[string]any{"name": name, "namespace": "shop", "uid": name + "-uid", "resourceVersion": "1"},
		"spec": map[string]any{
			"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
			"minReplicas":    minimum, "maxReplicas": int64(10),
		},
	}}
}

// autoscaler is the first one; nil if there is none.
func (w *world) autoscaler() *unstructured.Unstructured {
	if len(w.autoscalers) == 0 {
		return nil
	}
	return w.autoscalers[0]
}

func (w *world) minimum() int64 {
	n, _, _ := unstructured.NestedInt64(w.autoscaler().Object, "spec", "minReplicas")
	return n
}

func (w *world) setMinimum(n int64) {
	if err := unstructured.SetNestedField(w.autoscaler().Object, n, "spec", "minReplicas"); err != nil {
		panic(err)
	}
	w.touch()
}

// holding is what an earlier work has raised.
func holding(former, minimum int32) *v1alpha1.HeldAutoscaler {
	return &v1alpha1.HeldAutoscaler{Name: "web", UID: "web-uid", FormerMinReplicas: &former, MinReplicas: &minimum}
}

func TestNext_HoldsAMinimum(t *testing.T) {
	w := newWorld(t, hold, 6)
	w.carry(t)
	want := v1alpha1.ReleaseWorkStatus{
		ObservedGeneration: 1, Phase: v1alpha1.WorkSucceeded, StartTime: new(metav1.NewTime(now)), EndTime: new(metav1.NewTime(now)),
		TargetRef: &v1alpha1.ReleaseWorkTarget{Kind: v1alpha1.WorkTargetAutoscaler, Name: "web", UID: "web-uid"},
		Intent:    &v1alpha1.ReleaseWorkIntent{UID: "web-uid", ResourceVersion: "1", StorageTime: metav1.NewTime(now)},
		Result:    &v1alpha1.ReleaseWorkResult{ResourceVersion: "101", Origin: v1alpha1.ResultResponse},
		Held:      holding(2, 6),
	}
	if diff := cmp.Diff(want, w.work.Status); diff != "" || w.minimum() != 6 || w.writes != 1 || w.autoscaler().GetLabels()[v1alpha1.LabelReleaseWork] != "w-uid" {
		t.Errorf("the autoscaler is %v, and the status (-want +got):\n%s", w.autoscaler(), diff)
	}
	if imageOf(t, w.baseline) != "shop:1" || w.clone != nil {
		t.Error("a Deployment was written")
	}
}

// TestNext_HoldsEndAs tells what works about autoscalers come to. The minimum is 2 before.
func TestNext_HoldsEndAs(t *testing.T) {
	refused, pending, succeeded := v1alpha1.WorkRefused, v1alpha1.WorkPending, v1alpha1.WorkSucceeded
	byHand := func(n int64) func(*world) { return func(w *world) { w.facts.Holding = holding(2, 6); w.setMinimum(n) } }
	cases := map[string]struct {
		replicas int32
		change   func(*world)
		phase    v1alpha1.ReleaseWorkPhase
		reason   v1alpha1.ReleaseWorkReason
		message  string
		minimum  int64
		held     *v1alpha1.HeldAutoscaler
	}{
		"no autoscaler":                         {6, func(w *world) { w.autoscalers = nil }, refused, v1alpha1.WorkAutoscalerMissing, "no HorizontalPodAutoscaler scales the Deployment web: set spec.rollout.fallback to Wait, or create one", 0, nil},
		"two autoscalers":                       {6, func(w *world) { w.autoscalers = append(w.autoscalers, newAutoscaler("other", 1)) }, refused, v1alpha1.WorkAutoscalerAmbiguous, "other, web scale the Deployment web: keep one", 2, nil},
		"a maximum below the need":              {11, nil, refused, v1alpha1.WorkAutoscalerTooSmall, "maxReplicas of the HorizontalPodAutoscaler web is 10, and all requests need 11: raise maxReplicas", 2, nil},
		"an autoscaler that Git owns":           {6, func(w *world) { w.facts.Tool = "Argo CD" }, refused, v1alpha1.WorkGitOpsOwned, "raise minReplicas there, and set spec.rollout.fallback to Wait", 2, nil},
		"an autoscaler that KEDA keeps":         {6, keptBy("ScaledObject", "queue"), refused, v1alpha1.WorkAutoscalerControlled, "the ScaledObject queue keeps the HorizontalPodAutoscaler web", 2, nil},
		"an autoscaler that is being deleted":   {6, func(w *world) { w.autoscaler().SetDeletionTimestamp(new(metav1.NewTime(now))) }, refused, v1alpha1.WorkTerminating, "being deleted", 2, nil},
		"a variation without a workload":        {6, func(w *world) { w.release.Spec.Variations[0].Workload = nil }, refused, v1alpha1.WorkInvalidSpec, "the variation stable names no Deployment", 2, nil},
		"a DaemonSet":                           {6, func(w *world) { w.release.Spec.Variations[0].Workload.Kind = v1alpha1.VariationDaemonSet }, refused, v1alpha1.WorkInvalidSpec, "spec.rollout.fallback", 2, nil},
		"a release that asks for no minimum":    {6, func(w *world) { w.release.Spec.Rollout.Fallback = v1alpha1.FallbackWait }, refused, v1alpha1.WorkInvalidSpec, "does not ask", 2, nil},
		"a guard that distrusts the author":     {6, func(w *world) { w.facts.Distrusting = "SpecGuard/workloads" }, pending, v1alpha1.WorkRequesterNotTrusted, "SpecGuard/workloads does not trust alice", 2, nil},
		"putting back asks no guard":            {0, func(w *world) { byHand(6)(w); w.facts.Distrusting = "SpecGuard/workloads" }, succeeded, "", "", 2, nil},
		"a requester without the right":         {6, func(w *world) { w.facts.Requester = denied("alice may not update it") }, refused, v1alpha1.WorkNotAllowed, "alice", 2, nil},
		"an executor without the right waits":   {6, func(w *world) { w.facts.Executor = denied("guard.resources") }, pending, v1alpha1.WorkNotAllowed, "guard.resources", 2, nil},
		"an earlier work waits":                 {6, func(w *world) { w.facts.Earlier = "web-6" }, pending, v1alpha1.WorkQueued, "web-6", 2, nil},
		"a halt":                                {6, func(w *world) { w.facts.Halted = "bob has halted it" }, refused, v1alpha1.WorkHalted, "bob", 2, nil},
		"a run that is over":                    {6, func(w *world) { w.release.Status.Rollout.Run.State = "RolledBack" }, refused, v1alpha1.WorkRunOver, "is RolledBack", 2, nil},
		"a release that is being deleted":       {6, func(w *world) { w.release.DeletionTimestamp = new(metav1.NewTime(now)) }, refused, v1alpha1.WorkReleaseDeleted, "being deleted", 2, nil},
		"another pod template is no objection":  {6, func(w *world) { setImage(w.baseline, "shop:9") }, succeeded, "", "", 6, holding(2, 6)},
		"a minimum that is enough":              {2, nil, succeeded, "", "minReplicas of the HorizontalPodAutoscaler web is 2 already", 2, nil},
		"a minimum that is absent is 1":         {6, func(w *world) { unstructured.RemoveNestedField(w.autoscaler().Object, "spec", "minReplicas") }, succeeded, "", "", 6, holding(1, 6)},
		"a minimum that is raised further":      {8, byHand(6), succeeded, "", "", 8, holding(2, 8)},
		"a minimum that is held and enough":     {5, byHand(6), succeeded, "", "is 6 already", 6, holding(2, 6)},
		"a minimum that a person lowered since": {6, byHand(3), succeeded, "", "", 6, holding(3, 6)},
		"a minimum that a person raised since":  {6, byHand(7), succeeded, "", "is 7 already", 7, nil},
		"put back":                              {0, byHand(6), succeeded, "", "", 2, nil},
		"put back where nothing is held":        {0, nil, succeeded, "", "no minimum is held", 2, nil},
		"put back what a person has put back":   {0, byHand(2), succeeded, "", "is 2 already", 2, nil},
		"put back what a person has changed":    {0, byHand(4), succeeded, "", "another writer has set minReplicas of the HorizontalPodAutoscaler web to 4, which stays; it was 2 before the run", 4, nil},
		"put back what was made again":          {0, func(w *world) { byHand(6)(w); w.autoscaler().SetUID("other") }, succeeded, "", "which had minReplicas 2 before the run, is gone or was made again", 6, nil},
		"put back what is gone":                 {0, func(w *world) { byHand(6)(w); w.autoscalers[0] = newAutoscaler("other", 6) }, succeeded, "", "is gone or was made again", 6, nil},
		"put back in a halt":                    {0, func(w *world) { byHand(6)(w); w.facts.Halted = "bob" }, succeeded, "", "", 2, nil},
		"put back after the run":                {0, func(w *world) { byHand(6)(w); w.release.Status.Rollout.Run.State = "Completed" }, succeeded, "", "", 2, nil},
		"put back while the release is deleted": {0, func(w *world) { byHand(6)(w); w.release.DeletionTimestamp = new(metav1.NewTime(now)) }, succeeded, "", "", 2, nil},
		"put back for a user without the right": {0, func(w *world) { byHand(6)(w); w.facts.Requester = denied("alice") }, succeeded, "", "", 2, nil},
		"put back without a rollout":            {0, func(w *world) { byHand(6)(w); w.release.Spec.Rollout = nil }, succeeded, "", "", 2, nil},
		"put back without the executor's right": {0, func(w *world) { byHand(6)(w); w.facts.Executor = denied("bind") }, pending, v1alpha1.WorkNotAllowed, "bind", 6, nil},
		"put back for another run":              {0, func(w *world) { byHand(6)(w); w.work.Spec.Run = 2 }, refused, v1alpha1.WorkRunOver, "run 2", 6, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hold, tc.replicas)
			if tc.change != nil {
				tc.change(w)
			}
			w.carry(t)
			got := &w.work.Status
			if got.Phase != tc.phase || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %s, %s, %q", got.Phase, got.Reason, got.Message)
			}
			if diff := cmp.Diff(tc.held, got.Held); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if w.autoscaler() != nil && w.minimum() != tc.minimum {
				t.Errorf("the minimum is %d, want %d", w.minimum(), tc.minimum)
			}
		})
	}
}

func keptBy(kind, name string) func(*world) {
	return func(w *world) {
		w.autoscaler().SetOwnerReferences([]metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true), UID: "k"}})
	}
}

// TestNext_KnowsTheFormerMinimumWithoutItsLabel: another writer has replaced the autoscaler, and kept the minimum,
// before the executor could say that it had written.
func TestNext_KnowsTheFormerMinimumWithoutItsLabel(t *testing.T) {
	w := newWorld(t, hold, 6)
	w.cut = 2 // after the write
	w.carry(t)
	w.autoscaler().SetLabels(nil)
	w.touch()
	w.carry(t)
	if diff := cmp.Diff(holding(2, 6), w.work.Status.Held); diff != "" || w.work.Status.Phase != v1alpha1.WorkSucceeded {
		t.Errorf("got %+v, held (-want +got):\n%s", w.work.Status, diff)
	}
}

// TestNext_LeavesTheMinimumOfAPersonWhoWasFaster: the write of the executor before comes too late.
func TestNext_LeavesTheMinimumOfAPersonWhoWasFaster(t *testing.T) {
	w := newWorld(t, hold, 6)
	w.cut = 1 // after the intent
	w.carry(t)
	late := work.Next(w.read())
	w.setMinimum(9)
	w.carry(t)
	if got := w.work.Status; got.Phase != v1alpha1.WorkSucceeded || got.Held != nil || w.minimum() != 9 || w.writes != 0 {
		t.Errorf("got %+v, and the minimum is %d", got, w.minimum())
	}
	if got := w.send(late, false); got.Result != work.Conflicted {
		t.Errorf("a late write is %s", got.Result)
	}
}

func TestHoldingOf(t *testing.T) {
	of := func(run, number int64, replicas int32, phase v1alpha1.ReleaseWorkPhase, held *v1alpha1.HeldAutoscaler) v1alpha1.ReleaseWork {
		return v1alpha1.ReleaseWork{
			Spec:   v1alpha1.ReleaseWorkSpec{ReleaseUID: "r", Run: run, Number: number, Verb: hold, Replicas: &replicas},
			Status: v1alpha1.ReleaseWorkStatus{Phase: phase, Held: held},
		}
	}
	succeeded, refused, failed := v1alpha1.WorkSucceeded, v1alpha1.WorkRefused, v1alpha1.WorkFailed
	other := of(1, 1, 6, succeeded, holding(1, 6))
	other.Spec.ReleaseUID = "other"
	scale := of(1, 2, 0, succeeded, nil)
	scale.Spec.Verb = v1alpha1.WorkScale
	for name, tc := range map[string]struct {
		works []v1alpha1.ReleaseWork
		want  *v1alpha1.HeldAutoscaler
	}{
		"no works":                         {nil, nil},
		"a work that holds":                {[]v1alpha1.ReleaseWork{of(1, 1, 6, succeeded, holding(2, 6)), scale}, holding(2, 6)},
		"the newest one":                   {[]v1alpha1.ReleaseWork{of(2, 1, 8, succeeded, holding(2, 8)), of(1, 9, 6, succeeded, holding(2, 6))}, holding(2, 8)},
		"one that was put back":            {[]v1alpha1.ReleaseWork{of(1, 1, 6, succeeded, holding(2, 6)), of(1, 2, 0, succeeded, nil)}, nil},
		"one that was refused says less":   {[]v1alpha1.ReleaseWork{of(1, 1, 6, succeeded, holding(2, 6)), of(1, 2, 8, refused, holding(2, 8))}, holding(2, 6)},
		"one that another writer undid":    {[]v1alpha1.ReleaseWork{of(1, 1, 6, succeeded, holding(2, 6)), of(1, 2, 8, failed, holding(2, 8))}, nil},
		"one that is under way":            {[]v1alpha1.ReleaseWork{of(1, 1, 6, v1alpha1.WorkRunning, holding(2, 6))}, nil},
		"a later one, and another release": {[]v1alpha1.ReleaseWork{of(3, 3, 6, succeeded, holding(2, 6)), other}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := of(3, 2, 0, "", nil)
			if diff := cmp.Diff(tc.want, work.HoldingOf(&w, tc.works)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestScales(t *testing.T) {
	workload := &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web"}
	for name, tc := range map[string]struct {
		field, value string
		want         bool
	}{
		"the workload":            {"name", "web", true},
		"another name":            {"name", "other", false},
		"another kind":            {"kind", "StatefulSet", false},
		"another group":           {"apiVersion", "example.com/v1", false},
		"another version of apps": {"apiVersion", "apps/v1beta2", true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAutoscaler("web", 1)
			if err := unstructured.SetNestedField(a.Object, tc.value, "spec", "scaleTargetRef", tc.field); err != nil {
				t.Fatal(err)
			}
			if got := work.Scales(a, workload); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
