// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// tb is what *testing.T and *rapid.T have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is an API server with one release, its Deployments, and one work.
type world struct {
	work     *v1alpha1.ReleaseWork
	release  *v1alpha1.ABRelease
	baseline *unstructured.Unstructured
	clone    *unstructured.Unstructured
	// autoscalers are those of the baseline.
	autoscalers []*unstructured.Unstructured
	facts       work.Facts
	version     int
	// writes counts what was stored of targets, and sent how many writes of any kind came in.
	writes, sent int
	// cut ends the executor at that write: before it if early, else after it.
	cut   int
	early bool
}

// errCut is what a killed executor learns.
type errCut struct{}

func newBaseline() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "a-uid", "resourceVersion": "1", "labels": map[string]any{"app": "web"}},
		"spec": map[string]any{
			"replicas": int64(6), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "shop:1"}}},
			},
		},
	}}
}

func newWorld(t tb, verb v1alpha1.ReleaseWorkVerb, replicas int32) *world {
	t.Helper()
	w := &world{version: 100, baseline: newBaseline()}
	w.release = &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "r-uid"},
		Spec: v1alpha1.ABReleaseSpec{
			ServiceName: "web", Stable: "stable",
			Variations: []v1alpha1.Variation{
				{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web"}},
				{Name: "canary", Clone: &v1alpha1.VariationClone{Image: "shop:2", PodLabels: map[string]v1alpha1.LabelValue{"app": "web-canary"}}},
			},
			Rollout: &v1alpha1.Rollout{Promotion: v1alpha1.PromotionUpdateBaseline, RequestedBy: "alice"},
		},
		Status: v1alpha1.ABReleaseStatus{Rollout: &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{Number: 3, State: "Running"}}},
	}
	w.work = &v1alpha1.ReleaseWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-7", UID: "w-uid", Generation: 1},
		Spec: v1alpha1.ReleaseWorkSpec{
			ReleaseName: "web", ReleaseUID: "r-uid", Run: 3, Number: 7, Verb: verb, Variation: "canary", ExpectedHash: hashOf(t, w.baseline),
		},
	}
	if verb != v1alpha1.WorkUpdateBaseline {
		w.work.Spec.Replicas = &replicas
	}
	if verb == v1alpha1.WorkHoldMinReplicas {
		w.work.Spec.Variation, w.release.Spec.Rollout.Fallback = "stable", v1alpha1.FallbackHoldMinReplicas
		w.autoscalers = []*unstructured.Unstructured{newAutoscaler("web", 2)}
	}
	w.facts = work.Facts{
		Service: map[string]string{"app": "web"}, Now: now,
		Requester: work.Permission{Right: work.RightGiven}, Executor: work.Permission{Right: work.RightGiven}, Recorded: true,
	}
	body, err := clone.BodyOf(w.release, "canary", w.baseline, w.facts.Service, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.release.Status.Rollout.Run.To.Hash = hashOf(t, body)
	return w
}

// withClone adds the clone that the release gives, of an earlier work.
func (w *world) withClone(t tb, replicas int32) *world {
	t.Helper()
	body, err := clone.BodyOf(w.release, "canary", w.baseline, w.facts.Service, replicas)
	if err != nil {
		t.Fatal(err)
	}
	body.SetUID("c-uid")
	body.SetResourceVersion("50")
	w.clone = body
	return w
}

func hashOf(t tb, object *unstructured.Unstructured) string {
	t.Helper()
	hash, err := clone.TemplateHash(object)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// read are the facts as a live read finds them.
func (w *world) read() *work.Facts {
	f := w.facts
	f.Work, f.Release = w.work.DeepCopy(), w.release
	f.Baseline = copyOf(w.baseline)
	f.Clone = copyOf(w.clone)
	if w.release != nil && w.release.Spec.HasGroups() {
		w.readGroups(&f)
	}
	for _, a := range w.autoscalers {
		if !work.PutsBack(&w.work.Spec) || f.Holding != nil && f.Holding.Name == a.GetName() {
			f.Autoscalers = append(f.Autoscalers, copyOf(a))
		}
	}
	return &f
}

func copyOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	return object.DeepCopy()
}

// carry carries the work on until it waits, has ended, or the executor is cut.
func (w *world) carry(t tb) (last work.Action, cut bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			if _, is := r.(errCut); !is {
				panic(r)
			}
			cut = true
		}
	}()
	var tried, wrote *work.Answer
	for range 20 {
		f := w.read()
		f.Tried, f.Wrote = tried, wrote
		last = work.Next(f)
		switch last.Kind {
		case work.Wait, work.End:
			w.reach(func() { w.work.Status = last.Status })
			return last, false
		case work.Done:
			return last, false
		case work.Intend:
			w.reach(func() { w.work.Status = last.Status })
		case work.Try:
			tried = w.send(last, true)
		case work.Fence:
			w.reach(func() { w.send(last, false) })
		case work.Write:
			w.reach(func() { wrote = w.send(last, false) })
		case work.Look:
		}
	}
	t.Fatalf("the work does not end: %+v", last)
	return last, false
}

// reach makes a write, unless the executor is cut there.
func (w *world) reach(store func()) {
	w.sent++
	if w.sent == w.cut && w.early {
		panic(errCut{})
	}
	store()
	if w.sent == w.cut {
		panic(errCut{})
	}
}

// send stores a target, as the API server does: bound to uid and resourceVersion.
func (w *world) send(a work.Action, dry bool) *work.Answer {
	answer := &work.Answer{Result: work.Stored, ResourceVersion: a.Body.GetResourceVersion()}
	slot := &w.clone
	switch at := slices.IndexFunc(w.autoscalers, func(b *unstructured.Unstructured) bool { return b.GetName() == a.Body.GetName() }); {
	case a.Body.GetKind() == "HorizontalPodAutoscaler" && at < 0:
		answer.Result = work.Conflicted
		return answer
	case a.Body.GetKind() == "HorizontalPodAutoscaler":
		slot = &w.autoscalers[at]
	case a.Body.GetName() == "web":
		slot = &w.baseline
	}
	live := *slot
	if a.Create != (live == nil) || live != nil && (live.GetUID() != a.Body.GetUID() || live.GetResourceVersion() != a.Body.GetResourceVersion()) {
		answer.Result = work.Conflicted
		return answer
	}
	answer.Object = a.Body.DeepCopy()
	if a.Create {
		answer.Object.SetUID(types.UID(fmt.Sprint("made-", w.version)))
	}
	if !dry {
		w.version++
		answer.Object.SetResourceVersion(fmt.Sprint(w.version))
		*slot = answer.Object.DeepCopy()
		w.writes++
	}
	return answer
}

func imageOf(t testing.TB, object *unstructured.Unstructured) string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		t.Fatalf("no containers: %v", err)
	}
	return containers[0].(map[string]any)["image"].(string)
}
