// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// endedClone is a release with a clone whose run has ended: all is scaled to 0.
func endedClone() rollout.Facts {
	return rollout.Facts{
		Stable: "a", Variations: [2]string{"a", "b"}, Now: noon, Standing: rollout.Standing{Active: "a", Acknowledged: true},
		Plan:   &rollout.Plan{Promotion: rollout.UpdateBaseline, Strategy: rollout.Strategy{Stages: []rollout.Stage{{Weight: traffic.Total}}}},
		Clone:  &rollout.Clone{Variation: "b", Hash: "c", Changed: true},
		Before: rollout.State{Active: "a", Seen: map[string]rollout.Revision{"b": {Hash: "b1", Label: "x.c"}}, Run: &rollout.Run{Number: 1, State: rollout.Completed, Active: "a", Canary: "b"}},
		Arms:   map[string]rollout.Arm{"a": {Revision: rollout.Revision{Hash: "a2", Label: "y"}}, "b": {Revision: rollout.Revision{Hash: "b1", Label: "y.c"}}},
	}
}

// The clone's revision follows from the baseline, which has another label since it has the change. An upgrade
// of Kubernetes then changes the hash.
func TestAnUpgradeAfterAPromotionBeginsNoRun(t *testing.T) {
	f := endedClone()
	f.Clone.Changed = false
	f.Before = rollout.Decide(f).After
	if got := f.Before.Seen["b"]; got.Label != "y.c" {
		t.Fatalf("seen is %+v", got)
	}
	f.Arms = map[string]rollout.Arm{"a": {Revision: rollout.Revision{Hash: "a3", Label: "y"}}, "b": {Revision: rollout.Revision{Hash: "b2", Label: "y.c"}}}
	d := rollout.Decide(f)
	if d.After.IsOn() || d.After.Seen["b"].Hash != "b2" {
		t.Errorf("the state is %+v", d.After)
	}
	f.Before, f.Arms["b"] = d.After, rollout.Arm{Revision: rollout.Revision{Hash: "b3", Label: "y.d"}}
	if d = rollout.Decide(f); !d.After.IsOn() {
		t.Errorf("another change begins no run: %+v", d.After)
	}
}

func TestAVariationThatBecomesACloneIsNotActiveAnyMore(t *testing.T) {
	f := endedClone()
	f.Before.Active = "b"
	if d := rollout.Decide(f); d.After.Active != "a" || d.Canary != "b" {
		t.Errorf("active is %s, and the canary %s", d.After.Active, d.Canary)
	}
	f.Before.Run = &rollout.Run{Number: 1, State: rollout.Running, Active: "b", Canary: "a", Stages: []rollout.StageStatus{{State: rollout.StageRunning, StartTime: noon.Add(-time.Minute)}}}
	if d := rollout.Decide(f); d.After.Active != "a" || d.After.Run.EndReason != rollout.EndSuperseded {
		t.Errorf("active is %s in %+v", d.After.Active, d.After.Run)
	}
}

// A long run keeps its last works, and their numbers go on.
func TestTheLastWorksAreKept(t *testing.T) {
	f := endedClone()
	f.Before.Run.Promotion = rollout.UpdateBaseline
	for n := range rollout.MaxWorks {
		f.Before.Works = append(f.Before.Works, rollout.Work{Number: int64(n + 1), Run: 1, Verb: rollout.ScaleClone, Replicas: n + 1, Phase: rollout.WorkSucceeded})
	}
	d := rollout.Decide(f)
	if len(d.After.Works) != rollout.MaxWorks || d.After.Works[0].Number != 2 {
		t.Fatalf("kept are %+v", d.After.Works)
	}
	want := rollout.Work{Number: rollout.MaxWorks + 1, Run: 1, Verb: rollout.ScaleClone, Variation: "b", Phase: rollout.WorkIsPending}
	if diff := cmp.Diff([]rollout.Work{want}, d.Works); diff != "" {
		t.Errorf("asked for is (-want +got):\n%s", diff)
	}
}

func TestACloneNeedsAWayIntoTheBaseline(t *testing.T) {
	r := &v1alpha1.ABRelease{}
	r.Spec.Variations = []v1alpha1.Variation{{Name: "a"}, {Name: "b", Clone: &v1alpha1.VariationClone{}}}
	for promotion, refused := range map[v1alpha1.PromotionPolicy]bool{"": true, v1alpha1.PromotionKeepVariation: true, v1alpha1.PromotionUpdateBaseline: false, v1alpha1.PromotionAwaitBaseline: false} {
		r.Spec.Rollout = &v1alpha1.Rollout{Promotion: promotion, Strategy: &v1alpha1.RolloutStrategySpec{Stages: []v1alpha1.RolloutStage{{TrafficPercentage: new(v1alpha1.Percent(100)), Duration: &metav1.Duration{}}}}}
		plan, err := rollout.PlanOf(r, nil, rollout.Installation{})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "spec.rollout.promotion: variation b is a clone") {
			t.Errorf("with %q the error is %v", promotion, err)
		}
		if err == nil && string(plan.Promotion) != string(promotion) {
			t.Errorf("the promotion is %s, want %s", plan.Promotion, promotion)
		}
	}
}

func TestReleaseWorkOf(t *testing.T) {
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	scale := rollout.ReleaseWorkOf(r, &rollout.Work{Number: 3, Run: 12, Verb: rollout.ScaleClone, Variation: "canary", Replicas: 4, ExpectedHash: "h"})
	want := v1alpha1.ReleaseWorkSpec{ReleaseName: "web", ReleaseUID: "u", Run: 12, Number: 3, Verb: v1alpha1.WorkScale, Variation: "canary", Replicas: new(int32(4)), ExpectedHash: "h"}
	if diff := cmp.Diff(want, scale.Spec); diff != "" || scale.Name != "web-12-3" || scale.Namespace != "shop" || scale.OwnerReferences[0].UID != "u" {
		t.Errorf("it is %s/%s (-want +got):\n%s", scale.Namespace, scale.Name, diff)
	}
	if update := rollout.ReleaseWorkOf(r, &rollout.Work{Verb: rollout.ChangeBaseline}); update.Spec.Replicas != nil {
		t.Errorf("UpdateBaseline has %d replicas", *update.Spec.Replicas)
	}
	scale.Status = v1alpha1.ReleaseWorkStatus{Phase: v1alpha1.WorkRefused, Reason: v1alpha1.WorkNotAllowed, Message: "ada may not"}
	other := scale.DeepCopy()
	other.Spec.ReleaseUID = "another"
	got := rollout.AnswersOf(r, []v1alpha1.ReleaseWork{*scale, *other, {Spec: v1alpha1.ReleaseWorkSpec{ReleaseName: "web", ReleaseUID: "u", Run: 12, Number: 4}}})
	answers := []rollout.WorkAnswer{{Run: 12, Number: 3, Verb: rollout.ScaleClone, Variation: "canary", Replicas: 4, Phase: rollout.WorkIsRefused, Message: "NotAllowed: ada may not"}, {Run: 12, Number: 4, Phase: rollout.WorkIsPending}}
	if diff := cmp.Diff(answers, got); diff != "" {
		t.Errorf("the answers (-want +got):\n%s", diff)
	}
}
