// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// deploymentsLive are Deployments as the API server has them, by name.
type deploymentsLive map[string]*appsv1.Deployment

// Get implements Getter.
func (d deploymentsLive) Get(_ context.Context, ref exec.Reference) ([]byte, error) {
	switch found, is := d[ref.Name]; {
	case !is:
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, ref.Name)
	case found == nil:
		return nil, errLost
	default:
		return json.Marshal(found)
	}
}

// revisionOf is the revision of a Deployment with an image.
func revisionOf(t *testing.T, image string) string {
	t.Helper()
	raw, err := json.Marshal(deployment(image))
	if err != nil {
		t.Fatal(err)
	}
	hash, err := templateHash(raw)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// named is a Deployment with another name.
func named(name, image string) *appsv1.Deployment {
	d := deployment(image)
	d.Name, d.UID = name, types.UID(name)
	return d
}

// historyLine is a line of a stored history, some minutes after noon.
func historyLine(number, run int64, minute int, event rollout.EventName, percent int32) v1alpha1.RolloutEvent {
	p := v1alpha1.Percent(percent)
	return v1alpha1.RolloutEvent{Number: number, Run: run, EventTime: *at(time.Duration(minute) * time.Minute), Event: string(event), TrafficPercentage: &p, Message: "m"}
}

// promoted has run 3 of a release lead from shop:1 to shop:2 at noon, and canary be the active variation.
func promoted(t *testing.T) func(*v1alpha1.ABRelease) {
	t.Helper()
	return func(r *v1alpha1.ABRelease) {
		r.Status.ActiveVariation = "canary"
		in := r.Status.Rollout
		in.Run.From.Hash, in.Run.To.Hash = revisionOf(t, "shop:1"), revisionOf(t, "shop:2")
		in.History = []v1alpha1.RolloutEvent{
			historyLine(7, 3, -20, rollout.RunCreated, 0), historyLine(8, 3, -10, rollout.StageStarted, 50), historyLine(9, 3, 0, rollout.RunPromoted, 100),
		}
	}
}

// runWorld is a release whose run 3 was promoted, with the workload that serves it now, and an assessor.
func runWorld(t *testing.T, objects ...client.Object) (*world, *RunOpener, deploymentsLive) {
	t.Helper()
	release := released(promoted(t))
	w := newWorld(t, written(), append([]client.Object{release}, objects...)...)
	live := deploymentsLive{"web": named("web", "shop:1"), "web-next": named("web-next", "shop:2")}
	runs := &Runs{Live: live, Cached: w.client}
	w.r.Runs = runs
	return w, &RunOpener{Client: w.client, Runs: runs, Time: w}, live
}

var (
	keyOfRelease = types.NamespacedName{Namespace: "shop", Name: "pay"}
	keyOfRun     = types.NamespacedName{Namespace: "shop", Name: "pay-run3"}
)

func (o *RunOpener) open(t *testing.T) error {
	t.Helper()
	_, err := o.Reconcile(t.Context(), reconcile.Request{NamespacedName: keyOfRelease})
	return err
}

func (w *world) run3() *v1alpha1.EffectivenessAssessment {
	w.t.Helper()
	a := &v1alpha1.EffectivenessAssessment{}
	if err := w.client.Get(w.t.Context(), keyOfRun, a); err != nil {
		w.t.Fatal(err)
	}
	return a
}

// lookAtRun looks at the assessment of run 3 until it has ended.
func (w *world) lookAtRun() *v1alpha1.EffectivenessAssessment {
	w.t.Helper()
	for range maxLooks {
		result, err := w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: keyOfRun})
		if err != nil {
			w.t.Fatal(err)
		}
		if a := w.run3(); effect.Phase(a.Status.Phase).Ended() {
			return a
		}
		w.clock.SetTime(w.clock.Now().Add(result.RequeueAfter))
	}
	w.t.Fatalf("the assessment has not ended: %+v", w.run3().Status)
	return nil
}

// podOfNext is a pod of the workload that serves.
func podOfNext(name string, ready bool) client.Object {
	p := podOfWeb(name, ready)
	p.OwnerReferences[0].Name = "web-next-1"
	return p
}

func TestTheEffectOfARun(t *testing.T) {
	type outcome struct {
		Reason  v1alpha1.AssessmentReason
		Verdict v1alpha1.EffectVerdict
		Score   int32
	}
	set := func(w *world, change func(*v1alpha1.ABRelease)) {
		r := &v1alpha1.ABRelease{}
		if err := w.client.Get(w.t.Context(), keyOfRelease, r); err != nil {
			w.t.Fatal(err)
		}
		change(r)
		if err := w.client.Update(w.t.Context(), r); err != nil {
			w.t.Fatal(err)
		}
	}
	tests := map[string]struct {
		pods []bool
		// happens after the assessment has begun.
		happens func(*world, deploymentsLive)
		want    outcome
		says    string
	}{
		"a promotion after which all pods are ready": {[]bool{true, true}, func(*world, deploymentsLive) {}, outcome{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000}, "the write is in effect"},
		"a promotion after which no pod is ready":    {[]bool{false, false}, func(*world, deploymentsLive) {}, outcome{v1alpha1.AssessedFull, v1alpha1.VerdictIneffective, 0}, "Health"},
		"the active variation gets another template": {[]bool{true, true}, func(_ *world, live deploymentsLive) {
			d := named("web-next", "evil:1")
			d.Generation++
			live["web-next"] = d
		}, outcome{v1alpha1.AssessedSpecDrift, v1alpha1.VerdictInvalidated, 0}, "not the one that the run left"},
		"its replicas are not its revision": {[]bool{true, true}, func(_ *world, live deploymentsLive) {
			d := live["web-next"]
			d.Generation, d.Status.ObservedGeneration, d.Spec.Replicas = 8, 8, new(int32(1))
			d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1, 1, 1
		}, outcome{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000}, "the write is in effect"},
		"another run is promoted": {[]bool{true, true}, func(w *world, _ deploymentsLive) {
			set(w, func(r *v1alpha1.ABRelease) { r.Status.ActiveVariation = "stable" })
		}, outcome{v1alpha1.AssessedSpecDrift, v1alpha1.VerdictInvalidated, 0}, "not the one that the run left"},
		"its workload is gone":                 {[]bool{true, true}, func(_ *world, live deploymentsLive) { delete(live, "web-next") }, outcome{v1alpha1.AssessedSpecDrift, v1alpha1.VerdictInvalidated, 0}, "not the one that the run left"},
		"its workload cannot be read any more": {[]bool{true, true}, func(_ *world, live deploymentsLive) { live["web-next"] = nil }, outcome{v1alpha1.AssessedExpired, v1alpha1.VerdictInconclusive, -1}, "the answer is lost"},
		"another release has its name": {[]bool{true, true}, func(w *world, _ deploymentsLive) {
			set(w, func(r *v1alpha1.ABRelease) { r.UID = "other" })
		}, outcome{v1alpha1.AssessedExpired, v1alpha1.VerdictInconclusive, -1}, "another release has its name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var pods []client.Object
			for i, ready := range tc.pods {
				pods = append(pods, podOfNext([]string{"a", "b"}[i], ready))
			}
			w, opener, live := runWorld(t, pods...)
			if err := opener.open(t); err != nil {
				t.Fatal(err)
			}
			tc.happens(w, live)
			a := w.lookAtRun()
			got := outcome{a.Status.Reason, a.Status.Verdict, scoreOf(a.Status.Score)}
			if diff := cmp.Diff(tc.want, got); diff != "" || !strings.Contains(a.Status.Message, tc.says) {
				t.Errorf("the end differs (-want +got):\n%s%s", diff, a.Status.Message)
			}
		})
	}
}

func TestAnAssessmentOfARunBeginsOnce(t *testing.T) {
	w, opener, live := runWorld(t)
	if err := opener.open(t); err != nil {
		t.Fatal(err)
	}
	a := w.run3()
	if owner := a.OwnerReferences; len(owner) != 1 || owner[0].Kind != "ABRelease" || owner[0].UID != "release" || a.Spec.Target.UID != "web-next" || a.Spec.PostGeneration != 7 {
		t.Errorf("it is owned by %+v, and its target is %+v of generation %d", owner, a.Spec.Target, a.Spec.PostGeneration)
	}
	delete(live, "web-next")
	if err := opener.open(t); err != nil {
		t.Fatal(err)
	}
	if again := w.run3(); again.Spec.Target.UID != "web-next" {
		t.Errorf("it was made again: %+v", again.Spec)
	}
}

// A workload that cannot be read yet is read again; the assessment begins without it when it counts as stabilized.
func TestAnAssessmentOfARunWaitsForItsWorkload(t *testing.T) {
	w, opener, live := runWorld(t)
	live["web-next"] = nil
	if err := opener.open(t); !errors.Is(err, errUnseen) {
		t.Fatalf("the error is %v", err)
	}
	w.clock.SetTime(noon.Add(5 * time.Minute))
	if err := opener.open(t); err != nil {
		t.Fatal(err)
	}
	if a := w.run3(); a.Spec.PostHash != "" || a.Spec.Target.UID != "" || a.Spec.PreHash == "" {
		t.Errorf("it compares with %+v", a.Spec)
	}
	live["web-next"] = named("web-next", "shop:2")
	if a := w.lookAtRun(); a.Status.Verdict != v1alpha1.VerdictInconclusive || a.Status.Integrity != v1alpha1.IntegrityUnknown {
		t.Errorf("it ended as %+v", a.Status)
	}
}

func TestAssessmentsOfRunsGoWithTheHistory(t *testing.T) {
	of := func(name string, run int64, change ...func(*v1alpha1.EffectivenessAssessment)) *v1alpha1.EffectivenessAssessment {
		a := ended()
		a.Name, a.UID = name, types.UID(name)
		a.Spec.Subject = v1alpha1.AssessmentSubject{Release: &v1alpha1.AssessedRun{Name: "pay", UID: "release", Run: run}}
		for _, c := range change {
			c(a)
		}
		return a
	}
	w, opener, _ := runWorld(t,
		of("pay-1", 1), of("pay-2", 2, func(a *v1alpha1.EffectivenessAssessment) { a.Status.Phase = v1alpha1.AssessmentStabilizing }),
		of("other-1", 1, func(a *v1alpha1.EffectivenessAssessment) { a.Spec.Subject.Release.UID = "other" }),
	)
	if err := opener.open(t); err != nil {
		t.Fatal(err)
	}
	var all v1alpha1.EffectivenessAssessmentList
	if err := w.client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	if diff := cmp.Diff([]string{"nightly-1-0", "other-1", "pay-2", "pay-run3"}, names); diff != "" {
		t.Errorf("the assessments (-want +got):\n%s", diff)
	}
}

// The revision of a workload with a group beside it is one of both.
func TestTheRevisionOfAPairIsOneOfBoth(t *testing.T) {
	live := deploymentsLive{"web": named("web", "shop:1"), "worker": named("worker", "worker:1")}
	release := released(func(r *v1alpha1.ABRelease) {
		r.Spec.Variations[0].Group = &v1alpha1.VariationGroup{Kind: "Deployment", Name: "worker"}
	})
	runs := &Runs{Live: live}
	first := runs.see(t.Context(), release)
	live["worker"] = named("worker", "worker:2")
	second := runs.see(t.Context(), release)
	if !strings.HasPrefix(first.Hash, "both:") || first.Hash == second.Hash || !first.Read || !second.Read {
		t.Errorf("the hashes are %q and %q", first.Hash, second.Hash)
	}
	delete(live, "worker")
	if gone := runs.see(t.Context(), release); gone.Read || gone.Why == "" {
		t.Errorf("without the group it is %+v", gone)
	}
}

func TestWhichChangesOfAReleaseAreNews(t *testing.T) {
	update := func(before, after client.Object) event.UpdateEvent {
		return event.UpdateEvent{ObjectOld: before, ObjectNew: after}
	}
	plain, ended := released(), released(promoted(t))
	talks := released(promoted(t), func(r *v1alpha1.ABRelease) {
		r.Status.Rollout.History = append(r.Status.Rollout.History, historyLine(10, 4, 1, rollout.RunCreated, 0))
	})
	tests := map[string]struct{ got, want bool }{
		"a run has ended":                       {runsEnded().Update(update(plain, ended)), true},
		"the next run has begun":                {runsEnded().Update(update(ended, talks)), false},
		"a release without a run, at the start": {runsEnded().Create(event.CreateEvent{Object: plain}), false},
		"one of which a run has ended":          {runsEnded().Create(event.CreateEvent{Object: talks}), true},
		"a release that is deleted":             {runsEnded().Delete(event.DeleteEvent{Object: ended}), false},
		"another variation serves":              {servesByAnother().Update(update(plain, ended)), true},
		"the same one does":                     {servesByAnother().Update(update(ended, talks)), false},
		"a release at the start":                {servesByAnother().Create(event.CreateEvent{Object: ended}), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("it is news: %t, want %t", tc.got, tc.want)
			}
		})
	}
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: keyOfRun}}, ofRelease(t.Context(), talks)); diff != "" {
		t.Errorf("it wakes (-want +got):\n%s", diff)
	}
}

// Where there are no rollouts, an assessment of a run that is there fails.
func TestAnInstallationWithoutRolloutsAssessesNoRun(t *testing.T) {
	w, opener, _ := runWorld(t)
	if err := opener.open(t); err != nil {
		t.Fatal(err)
	}
	w.r.Runs = nil
	if a := w.lookAtRun(); a.Status.Phase != v1alpha1.AssessmentFailed || a.Status.Message != "this installation has no rollouts" {
		t.Errorf("it ended as %+v", a.Status)
	}
}
