// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/gatekeeper"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// oracle gives the answers of a test at once; a gate without an answer is silent.
type oracle struct {
	*world
	says      map[string]gates.Answer
	answers   map[string]gates.Answer
	asked     []string
	forgotten []string
}

// Answers implements Gates.
func (o *oracle) Answers(types.NamespacedName, string) (all []gates.Answer) {
	for _, a := range o.answers {
		all = append(all, a)
	}
	return all
}

// Ask implements Gates.
func (o *oracle) Ask(v gatekeeper.Visit) time.Duration {
	for _, q := range v.Questions {
		o.asked = append(o.asked, q.Key.String()+" "+q.Point.String())
		if a, is := o.says[q.Name]; is {
			a.Question, a.Time = q, o.clock.Now()
			o.answers[q.Name] = a
		}
	}
	return time.Second
}

// Forget implements Gates.
func (o *oracle) Forget(name types.NamespacedName) { o.forgotten = append(o.forgotten, name.String()) }

func number(value float64) gates.Answer { return gates.Answer{Value: &value} }

// gated is a world whose release has a query and a webhook of each event.
func gated(t *testing.T) (*world, *oracle) {
	t.Helper()
	w, _ := rolling(t)
	o := &oracle{world: w, says: map[string]gates.Answer{"errors": number(0)}, answers: map[string]gates.Answer{}}
	w.Gates, w.Installation = o, rollout.Installation{Prometheus: true, InlineQueries: true, GateSecrets: []string{"hook"}}
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.Rollout.Strategy.Queries = []v1alpha1.RolloutQuery{{Name: "errors", Query: "up", Maximum: "1", FailureLimit: 2}}
		r.Spec.Rollout.Gates = &v1alpha1.RolloutGates{}
		secret := v1alpha1.SecretKeyReference{Name: "hook", Key: "k"}
		for name, event := range map[string]v1alpha1.GateEvent{"start": "BeforeStart", "stage": "BeforeStage", "during": "DuringStage", "promotion": "BeforePromotion", "rollback": "AfterRollback"} {
			r.Spec.Rollout.Gates.Webhooks = append(r.Spec.Rollout.Gates.Webhooks, v1alpha1.GateWebhook{Name: name, Event: event, Destination: secret, SigningKey: secret})
			o.says[name] = gates.Answer{Result: gates.Pass}
		}
	})
	return w, o
}

// measures tells good counts of n times ten seconds, from a number on.
func (w *world) measures(from, n uint64) *v1alpha1.ABRelease {
	for i := range n {
		w.tells(from+i, 0)
		w.look()
	}
	return w.looks()
}

func TestARunGoesPastItsGates(t *testing.T) {
	w, o := gated(t)
	w.looks()
	r := w.measures(1, 14)
	if r.Status.Rollout.Run.State != "Completed" || r.Status.ActiveVariation != "canary" {
		t.Fatalf("the run is %+v, and waits for %+v: %+v", r.Status.Rollout.Run, r.Status.Rollout.Waiting, r.Status.Rollout.Gates)
	}
	slices.Sort(o.asked)
	want := []string{
		"query errors DuringStage 1", "query errors DuringStage 2", "webhook during DuringStage 1", "webhook during DuringStage 2", "webhook promotion BeforePromotion",
		"webhook stage BeforeStage 1", "webhook stage BeforeStage 2", "webhook start BeforeStart",
	}
	if diff := cmp.Diff(want, slices.Compact(o.asked)); diff != "" {
		t.Errorf("asked was (-want +got):\n%s", diff)
	}
}

func TestAGateHoldsItsPoint(t *testing.T) {
	for gate, stage := range map[string]int32{"start": 0, "stage": 0, "during": 1, "errors": 1, "promotion": 2} {
		t.Run(gate, func(t *testing.T) {
			w, o := gated(t)
			delete(o.says, gate)
			w.looks()
			r := w.measures(1, 14)
			if got := r.Status.Rollout; got.Waiting == nil || got.Waiting.Reason != "Gate" || !strings.Contains(got.Waiting.Message, gate+" was not asked") || got.Stage != stage {
				t.Errorf("stage %d waits for %+v", got.Stage, got.Waiting)
			}
		})
	}
}

func TestAQueryThatFailsRollsBackAndIsTold(t *testing.T) {
	w, o := gated(t)
	w.looks()
	w.measures(1, 2)
	o.says["errors"] = number(7)
	w.measures(3, 2)
	// Another process goes on with the row of failures.
	o.answers, w.written = map[string]gates.Answer{}, memory{}
	r := w.measures(5, 2)
	if run := r.Status.Rollout.Run; run.State != "RolledBack" || run.Reason != "GateFailed" || r.Status.Split != "stable 100 / canary 0" || len(r.Status.Rollout.Rejected) != 1 || !strings.Contains(run.Message, "query errors: 7 is above the maximum 1") {
		t.Fatalf("the run is %+v", run)
	}
	r = w.looks()
	if !slices.Contains(o.asked, "webhook rollback AfterRollback") {
		t.Errorf("asked was %v", o.asked)
	}
	told := slices.IndexFunc(r.Status.Rollout.Gates, func(g v1alpha1.RolloutGateStatus) bool { return g.Name == "rollback" })
	if told < 0 || r.Status.Rollout.Gates[told].Result != "Pass" {
		t.Errorf("the gates are %+v", r.Status.Rollout.Gates)
	}
}

func TestAFailureOfTheJudgeDoesNotWaitForGates(t *testing.T) {
	w, o := gated(t)
	w.looks()
	w.measures(1, 1)
	o.says, o.answers = nil, nil
	for n := range uint64(5) {
		w.tells(n+2, 50)
		w.look()
	}
	if r := w.looks(); r.Status.Rollout.Run.State != "RolledBack" || r.Status.Rollout.Run.Reason != "StageFailed" {
		t.Errorf("the run is %+v", r.Status.Rollout.Run)
	}
}

// The number of a query changes with each answer, and is stored as seldom as counts.
func TestANumberAloneIsStoredAsSeldomAsCounts(t *testing.T) {
	w, o := gated(t)
	w.looks()
	w.measures(1, 1)
	w.clock.Step(time.Minute)
	w.looks()
	before := w.writes
	for i := range 5 {
		o.says["errors"] = number(float64(i) / 10)
		w.clock.Step(time.Second)
		w.look()
	}
	if n := w.writes - before; n > 1 {
		t.Errorf("five numbers in five seconds were stored %d times", n)
	}
}
