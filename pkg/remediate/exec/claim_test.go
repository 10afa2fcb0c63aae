// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

var (
	errConflict = apierrors.NewConflict(deploymentsGR, "web", errNetwork)
	errNotFound = apierrors.NewNotFound(deploymentsGR, "web")
)

var baselineKey = types.NamespacedName{Namespace: "shop", Name: "deployments.apps.web"}

// claimed is a world in which a plan of a phase holds the target; without a phase
// that plan is gone.
func claimed(t *testing.T, by string, phase v1alpha1.PlanPhase) *world {
	t.Helper()
	w := newWorld(t)
	baseline := &v1alpha1.Baseline{}
	read(w, baselineKey, baseline)
	baseline.Status.PlanName = by
	if err := w.Client.Status().Update(t.Context(), baseline); err != nil {
		t.Fatal(err)
	}
	if phase != "" {
		other := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: by}}
		if err := w.Client.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		other.Status.Phase = phase
		if err := w.Client.Status().Update(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	w.calls = nil
	return w
}

// times lets so many calls of a sort fail.
func (w *world) times(n int, call string, err error) {
	w.fails = func(of, _ string) error {
		if of != call || n == 0 {
			return nil
		}
		n--
		return err
	}
}

// claim is who holds the target as it is stored; "gone" without a Baseline.
func (w *world) claimNow() string {
	w.Helper()
	w.fails = nil
	baseline := &v1alpha1.Baseline{}
	if err := w.Client.Get(w.Context(), baselineKey, baseline); err != nil {
		return "gone"
	}
	return baseline.Status.PlanName
}

func TestAPlanClaimsATargetThatNoOtherPlanHolds(t *testing.T) {
	const own = "production-1"
	gone := func(w *world) { w.remove(w.newBaseline()) }
	none := func(*world) {}
	fails := func(call string, n int, err error) func(*world) {
		return func(w *world) { w.times(n, call, err) }
	}
	tests := map[string]struct {
		by     string
		phase  v1alpha1.PlanPhase
		world  func(*world)
		want   string
		writes int
	}{
		"free, it is claimed":                                              {"", "", none, "Yes, claim production-1", 1},
		"its own claim stays":                                              {own, "", none, "Yes, claim production-1", 0},
		"the claim of a plan under way stays":                              {"other", v1alpha1.PlanRunning, none, "No other, claim other", 0},
		"the claim of a paused plan stays":                                 {"other", v1alpha1.PlanPaused, none, "No other, claim other", 0},
		"the claim of a plan that has ended is taken over":                 {"other", v1alpha1.PlanCanceled, none, "Yes, claim production-1", 1},
		"the claim of a plan that is gone is taken over":                   {"other", "", none, "Yes, claim production-1", 1},
		"without a Baseline there is no claim":                             {"", "", gone, "Yes, claim gone", 0},
		"a Baseline that cannot be read is not claimed":                    {"", "", fails("get Baseline", 1, errNetwork), "Unknown, claim ", 0},
		"a plan that cannot be read may hold it":                           {"other", v1alpha1.PlanCanceled, fails("get RemediationPlan", 1, errNetwork), "Unknown, claim other", 0},
		"overtaken by another write, it looks again":                       {"", "", fails("update Baseline", 3, errConflict), "Yes, claim production-1", 4},
		"overtaken again and again, it asks later":                         {"", "", fails("update Baseline", -1, errConflict), "Unknown, claim ", conflictTries},
		"a claim that cannot be written is unknown, and not tried at once": {"", "", fails("update Baseline", -1, errNetwork), "Unknown, claim ", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := claimed(t, test.by, test.phase)
			test.world(w)
			answer, by := (&run{Executor: w.Executor, plan: w.plan}).claim(t.Context(), 0)
			got := answerText(answer)
			if by != "" {
				got += " " + by
			}
			if got += ", claim " + w.claimNow(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if writes := len(w.writes("update Baseline")); writes != test.writes {
				t.Errorf("%d writes of the claim, want %d", writes, test.writes)
			}
		})
	}
}

func TestAPlanLetsGoOnlyOfItsOwnClaim(t *testing.T) {
	const own = "production-1"
	fails := func(call string, n int, err error) func(*world) {
		return func(w *world) { w.times(n, call, err) }
	}
	tests := map[string]struct {
		by     string
		world  func(*world)
		want   string
		writes int
	}{
		"its own claim goes":                             {own, func(*world) {}, "Yes, claim ", 1},
		"the claim of another plan stays":                {"other", func(*world) {}, "Yes, claim other", 0},
		"without a claim there is none to let go of":     {"", func(*world) {}, "Yes, claim ", 0},
		"without a Baseline there is none either":        {own, func(w *world) { w.remove(w.newBaseline()) }, "Yes, claim gone", 0},
		"a Baseline that goes meanwhile holds none":      {own, fails("update Baseline", 1, errNotFound), "Yes, claim production-1", 1},
		"a Baseline that cannot be read is asked again":  {own, fails("get Baseline", 1, errNetwork), "Unknown, claim production-1", 0},
		"overtaken by another write, it looks again":     {own, fails("update Baseline", 3, errConflict), "Yes, claim ", 4},
		"overtaken again and again, it asks later":       {own, fails("update Baseline", -1, errConflict), "Unknown, claim production-1", conflictTries},
		"a write without an answer is not tried at once": {own, fails("update Baseline", -1, errNetwork), "Unknown, claim production-1", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := claimed(t, test.by, "")
			w.plan.Status.Steps = []v1alpha1.PlanStep{{State: v1alpha1.StepSkipped}}
			test.world(w)
			answer := (&run{Executor: w.Executor, plan: w.plan}).unclaim(t.Context(), 0)
			if got := answerText(answer) + ", claim " + w.claimNow(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if writes := len(w.writes("update Baseline")); writes != test.writes {
				t.Errorf("%d writes of the claim, want %d", writes, test.writes)
			}
		})
	}
}

// An executor that is slow to let go of the target of a step that it deferred would take the
// target from the executor after it.
func TestOnlyTheExecutorThatHasAPlanLetsGoOfTheTargetOfADeferredStep(t *testing.T) {
	tests := map[string]struct {
		world  func(*world)
		want   string
		writes int
	}{
		"it has the plan": {func(*world) {}, "Yes, claim ", 1},
		"another one has taken the plan over": {func(w *world) {
			stored := w.plan.DeepCopy()
			stored.Status.Epoch++
			if err := w.Client.Status().Update(w.Context(), stored); err != nil {
				w.Fatal(err)
			}
		}, "Unknown, claim production-1", 0},
		"who has the plan cannot be read": {func(w *world) { w.times(1, "get RemediationPlan", errNetwork) }, "Unknown, claim production-1", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := claimed(t, "production-1", "")
			w.plan.Status.Steps = []v1alpha1.PlanStep{{State: v1alpha1.StepPlanned}}
			test.world(w)
			answer := (&run{Executor: w.Executor, plan: w.plan}).unclaim(t.Context(), 0)
			if got := answerText(answer) + ", claim " + w.claimNow(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if writes := len(w.writes("update Baseline")); writes != test.writes {
				t.Errorf("%d writes of the claim, want %d", writes, test.writes)
			}
		})
	}
}

func answerText(a protocol.Answer) string {
	switch a {
	case protocol.Yes:
		return "Yes"
	case protocol.No:
		return "No"
	case protocol.Unknown:
		return "Unknown"
	case protocol.NotAsked:
	}
	return fmt.Sprint("not asked: ", int(a))
}
