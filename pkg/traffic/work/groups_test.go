// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// newGroups is a world in which run 3 divides the replicas of the Deployments web and web-next, of which so many
// are asked for and ready. The work scales one of them.
func newGroups(t tb, variation v1alpha1.VariationName, replicas int32, active, canary int64) *world {
	t.Helper()
	w := newWorld(t, v1alpha1.WorkScale, replicas)
	w.release.Spec.ServiceName, w.release.Spec.Rollout.Promotion, w.release.Spec.Rollout.Model = "", "", v1alpha1.RolloutModelTargetGroup
	w.release.Spec.Variations = []v1alpha1.Variation{
		{Name: "stable", Group: &v1alpha1.VariationGroup{Kind: v1alpha1.VariationGroupDeployment, Name: "web"}},
		{Name: "canary", Group: &v1alpha1.VariationGroup{Kind: v1alpha1.VariationGroupDeployment, Name: "web-next"}},
	}
	run := w.release.Status.Rollout.Run
	run.From.Variation, run.To.Variation = "stable", "canary"
	run.Division = &v1alpha1.RolloutDivision{Replicas: new(int32(4)), Active: new(int32(4)), Canary: new(int32(0))}
	w.clone = newBaseline()
	w.clone.SetName("web-next")
	w.clone.SetUID("n-uid")
	if err := unstructured.SetNestedField(w.clone.Object, "next", "spec", "template", "metadata", "labels", "app"); err != nil {
		t.Fatal(err)
	}
	setReplicas(t, w.baseline, active, active)
	setReplicas(t, w.clone, canary, canary)
	w.work.Spec.Variation, w.work.Spec.ExpectedHash = variation, hashOf(t, w.baseline)
	if variation == "canary" {
		w.work.Spec.ExpectedHash = hashOf(t, w.clone)
	}
	return w
}

func setReplicas(t tb, group *unstructured.Unstructured, replicas, ready int64) {
	t.Helper()
	for _, err := range []error{
		unstructured.SetNestedField(group.Object, replicas, "spec", "replicas"),
		unstructured.SetNestedField(group.Object, ready, "status", "readyReplicas"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readGroups reads both Deployments.
func (w *world) readGroups(f *work.Facts) {
	f.Groups = &work.Groups{
		Deployments: map[v1alpha1.VariationName]*unstructured.Unstructured{"stable": copyOf(w.baseline), "canary": copyOf(w.clone)},
		Tools:       map[v1alpha1.VariationName]string{},
	}
	if w.facts.Groups != nil {
		f.Groups.Replicas, f.Groups.Tools = w.facts.Groups.Replicas, w.facts.Groups.Tools
	}
}

func replicasOf(group *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(group.Object, "spec", "replicas")
	return n
}

// begun says that an earlier work of the run has read so many replicas.
func begun(replicas int32) func(tb, *world) {
	return func(_ tb, w *world) { w.facts.Groups = &work.Groups{Replicas: &replicas} }
}

// over says that the run was rolled back.
func over(_ tb, w *world) { w.release.Status.Rollout.Run.State = "RolledBack" }

func TestNext_ScalesGroups(t *testing.T) {
	type change = func(tb, *world)
	ready := func(active, canary int64) change {
		return func(t tb, w *world) {
			setReplicas(t, w.baseline, replicasOf(w.baseline), active)
			setReplicas(t, w.clone, replicasOf(w.clone), canary)
		}
	}
	denied := func(_ tb, w *world) {
		w.facts.Requester = work.Permission{Right: work.RightMissing, Denied: "alice may not"}
	}
	appliedBy := func(annotation string, fields string) change {
		return func(_ tb, w *world) {
			w.facts.Groups = &work.Groups{Tools: map[v1alpha1.VariationName]string{"stable": "Argo CD"}}
			if annotation != "" {
				w.baseline.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: annotation})
			}
			if fields != "" {
				w.baseline.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "argocd", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}})
			}
		}
	}
	scaledBy := func(deployment string) change {
		return func(t tb, w *world) {
			a := newAutoscaler("web", 2)
			if err := unstructured.SetNestedField(a.Object, deployment, "spec", "scaleTargetRef", "name"); err != nil {
				t.Fatal(err)
			}
			w.autoscalers = []*unstructured.Unstructured{a}
		}
	}
	done, refused, waits := v1alpha1.WorkSucceeded, v1alpha1.WorkRefused, v1alpha1.WorkPending
	for name, c := range map[string]struct {
		variation      v1alpha1.VariationName
		replicas       int32
		active, canary int64
		changes        []change
		phase          v1alpha1.ReleaseWorkPhase
		reason         v1alpha1.ReleaseWorkReason
		message        string
		writes         int
	}{
		"the canary grows":                            {"canary", 1, 4, 0, nil, done, "", "", 1},
		"the active group shrinks":                    {"stable", 3, 4, 1, []change{begun(4)}, done, "", "", 1},
		"the active group has it already":             {"stable", 3, 3, 1, []change{begun(4)}, done, "", "no write was necessary", 0},
		"the active group goes to 0":                  {"stable", 0, 4, 4, []change{begun(4)}, done, "", "", 1},
		"more than there was":                         {"canary", 5, 4, 0, nil, refused, v1alpha1.WorkTooManyReplicas, "asks for 5 replicas, and both groups had 4", 0},
		"the run began with another number":           {"canary", 1, 3, 0, nil, refused, v1alpha1.WorkGroupChanged, "both groups have 3 replicas together", 0},
		"the status claims more than there was":       {"canary", 1, 4, 0, []change{begun(3)}, refused, v1alpha1.WorkGroupChanged, "", 0},
		"the canary is not ready":                     {"stable", 3, 4, 1, []change{begun(4), ready(4, 0)}, waits, v1alpha1.WorkCapacityShort, "3 ready pods, and wanted are 4", 0},
		"the active group is not ready":               {"stable", 3, 4, 1, []change{begun(4), ready(2, 1)}, waits, v1alpha1.WorkCapacityShort, "3 ready pods", 0},
		"a stolen order takes all pods":               {"stable", 0, 4, 0, nil, waits, v1alpha1.WorkCapacityShort, "0 ready pods", 0},
		"a group does not exist":                      {"canary", 1, 4, 0, []change{func(_ tb, w *world) { w.baseline = nil }}, refused, v1alpha1.WorkGroupGone, "Deployment web, which is the group of stable", 0},
		"the canary does not exist":                   {"canary", 1, 4, 0, []change{func(_ tb, w *world) { w.clone = nil }}, refused, v1alpha1.WorkGroupGone, "web-next", 0},
		"an autoscaler scales the other group":        {"canary", 1, 4, 0, []change{scaledBy("web")}, refused, v1alpha1.WorkGroupAutoscaled, "delete the autoscaler", 0},
		"an autoscaler scales another Deployment":     {"canary", 1, 4, 0, []change{scaledBy("shop")}, done, "", "", 1},
		"the pod template has changed":                {"canary", 1, 4, 0, []change{func(_ tb, w *world) { w.work.Spec.ExpectedHash = "other" }}, refused, v1alpha1.WorkGroupChanged, "web-next", 0},
		"the variation is none":                       {"other", 1, 4, 0, nil, refused, v1alpha1.WorkInvalidSpec, "other is no group", 0},
		"the author may not":                          {"canary", 1, 4, 0, []change{denied}, refused, v1alpha1.WorkNotAllowed, "alice may not", 0},
		"a guard distrusts the author":                {"canary", 1, 4, 0, []change{func(_ tb, w *world) { w.facts.Distrusting = "guard" }}, waits, v1alpha1.WorkRequesterNotTrusted, "", 0},
		"a plan holds the group":                      {"canary", 1, 4, 0, []change{func(_ tb, w *world) { w.facts.Plan = "plan" }}, waits, v1alpha1.WorkTargetClaimed, "Deployment web-next", 0},
		"the ledger is halted":                        {"canary", 1, 4, 0, []change{func(_ tb, w *world) { w.facts.Halted = "halted" }}, refused, v1alpha1.WorkHalted, "", 0},
		"the run is over":                             {"canary", 1, 4, 0, []change{over}, refused, v1alpha1.WorkRunOver, "", 0},
		"a tool applies the replicas":                 {"canary", 1, 4, 0, []change{appliedBy(`{"spec":{"replicas":4}}`, "")}, refused, v1alpha1.WorkGitOpsOwned, "leave spec.replicas out", 0},
		"a tool applies all but the replicas":         {"canary", 1, 4, 0, []change{appliedBy(`{"spec":{}}`, "")}, done, "", "", 1},
		"a tool owns the replicas":                    {"canary", 1, 4, 0, []change{appliedBy("", `{"f:spec":{"f:replicas":{}}}`)}, refused, v1alpha1.WorkGitOpsOwned, "Argo CD applies spec.replicas of the Deployment web", 0},
		"a tool owns other fields":                    {"canary", 1, 4, 0, []change{appliedBy("", `{"f:spec":{"f:template":{}}}`)}, done, "", "", 1},
		"of a tool it is not known":                   {"canary", 1, 4, 0, []change{appliedBy("", "")}, refused, v1alpha1.WorkGitOpsOwned, "", 0},
		"all replicas come back":                      {"stable", 4, 3, 1, []change{over, begun(4), denied, ready(0, 0)}, done, "", "", 1},
		"all replicas come back to what is scaled":    {"stable", 4, 3, 1, []change{over, begun(4), scaledBy("web")}, done, "", "", 1},
		"the canary goes afterwards":                  {"canary", 0, 4, 1, []change{over, begun(4), denied}, done, "", "", 1},
		"the canary goes in a halt":                   {"canary", 0, 4, 1, []change{over, begun(4), func(_ tb, w *world) { w.facts.Halted = "halted" }}, done, "", "", 1},
		"the canary does not go before":               {"canary", 0, 4, 1, []change{over, begun(4), ready(3, 1)}, waits, v1alpha1.WorkCapacityShort, "3 ready pods", 0},
		"the active group does not go after a run":    {"stable", 0, 4, 4, []change{over, begun(4)}, refused, v1alpha1.WorkRunOver, "", 0},
		"the active group does not grow beyond a run": {"stable", 5, 4, 0, []change{over, begun(4)}, refused, v1alpha1.WorkRunOver, "", 0},
	} {
		scales := func(t *testing.T, arrange change) {
			w := newGroups(t, c.variation, c.replicas, c.active, c.canary)
			arrange(t, w)
			for _, change := range c.changes {
				change(t, w)
			}
			w.carry(t)
			is := w.work.Status
			if is.Phase != c.phase || is.Reason != c.reason || !strings.Contains(is.Message, c.message) || w.writes != c.writes {
				t.Errorf("after %d writes the work is %+v", w.writes, is)
			}
			if c.writes == 0 {
				return
			}
			target := w.baseline
			if c.variation == "canary" {
				target = w.clone
			}
			if n := replicasOf(target); n != int64(c.replicas) || target.GetLabels()[v1alpha1.LabelReleaseWork] != string(w.work.UID) {
				t.Errorf("the Deployment has %d replicas and the labels %v", n, target.GetLabels())
			}
			if is.GroupReplicas == nil || *is.GroupReplicas != 4 || is.TargetRef == nil || is.TargetRef.Name != target.GetName() {
				t.Errorf("the status is %+v", is)
			}
		}
		t.Run(name, func(t *testing.T) { scales(t, func(tb, *world) {}) })
		t.Run(name+", beside requests", func(t *testing.T) { scales(t, besideRequests) })
	}
}

// besideRequests gives each variation a workload beside its group. The executor does the same for both models.
func besideRequests(_ tb, w *world) {
	w.release.Spec.ServiceName, w.release.Spec.Rollout.Model = "shop", v1alpha1.RolloutModelHybrid
	for i := range w.release.Spec.Variations {
		v := &w.release.Spec.Variations[i]
		v.Workload = &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "shop-" + string(v.Name)}
	}
	run := w.release.Status.Rollout.Run
	run.From.Hash, run.To.Hash, run.Division.Model = "both:sha256:a", "both:sha256:b", v1alpha1.RolloutModelHybrid
}

// Whatever the discovery server orders while a run is on, and after it: no work leaves fewer ready pods in both
// groups than there were replicas before the run, unless there were fewer already.
func TestNoWorkTakesReadyPodsFromGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, name) }
		active, canary := draw("active", 5), draw("canary", 5)
		variation := rapid.SampledFrom([]v1alpha1.VariationName{"stable", "canary"}).Draw(t, "variation")
		w := newGroups(t, variation, int32(draw("replicas", 6)), active, canary) //nolint:gosec // few
		setReplicas(t, w.baseline, active, draw("ready", active))
		setReplicas(t, w.clone, canary, draw("canaries ready", canary))
		total := int32(draw("replicas of both", 6)) //nolint:gosec // few
		w.release.Status.Rollout.Run.Division.Replicas = &total
		if rapid.Bool().Draw(t, "begun") {
			begun(4)(t, w)
			total = 4
		}
		if rapid.Bool().Draw(t, "over") {
			over(t, w)
		}
		before := readyOf(w.baseline) + readyOf(w.clone)
		w.carry(t)
		after := readyOf(w.baseline) + readyOf(w.clone)
		if after < before && after < int64(total) {
			t.Fatalf("of %d replicas %d pods are ready, and were %d: %+v", total, after, before, w.work.Status)
		}
		if w.writes > 0 && *w.work.Spec.Replicas > total {
			t.Fatalf("a group has %d replicas of %d", *w.work.Spec.Replicas, total)
		}
	})
}

// readyOf counts the pods that stay ready with the replicas of a Deployment.
func readyOf(group *unstructured.Unstructured) int64 {
	ready, _, _ := unstructured.NestedInt64(group.Object, "status", "readyReplicas")
	return min(ready, replicasOf(group))
}

func TestGroupReplicasOf(t *testing.T) {
	of := func(uid string, run, number int64, replicas *int32) v1alpha1.ReleaseWork {
		return v1alpha1.ReleaseWork{
			Spec:   v1alpha1.ReleaseWorkSpec{ReleaseUID: uid, Run: run, Number: number},
			Status: v1alpha1.ReleaseWorkStatus{GroupReplicas: replicas},
		}
	}
	works := []v1alpha1.ReleaseWork{of("r", 2, 1, new(int32(9))), of("r", 3, 1, nil), of("r", 3, 2, new(int32(4))), of("s", 3, 1, new(int32(8))), of("r", 3, 9, new(int32(7)))}
	for name, c := range map[string]struct {
		number int64
		want   *int32
	}{"of the same run": {3, new(int32(4))}, "of no earlier one": {2, nil}} {
		t.Run(name, func(t *testing.T) {
			asked := of("r", 3, c.number, nil)
			if diff := cmp.Diff(c.want, work.GroupReplicasOf(&asked, works)); diff != "" {
				t.Error(fmt.Sprint("(-want +got):\n", diff))
			}
		})
	}
}
