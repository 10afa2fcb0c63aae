// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestExplain_TellsOfTheWorksOfAClone(t *testing.T) {
	waits := func(reason, message string) func(*v1alpha1.ABRelease) {
		return func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Waiting = &v1alpha1.RolloutWait{Reason: reason, Message: message}
		}
	}
	promotes := func(then func(*v1alpha1.ABRelease)) func(*v1alpha1.ABRelease) {
		return func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Run.State, r.Status.Rollout.Stage = "Promoting", 0
			then(r)
		}
	}
	works := func(phase v1alpha1.ReleaseWorkPhase, message string) func(*v1alpha1.ABRelease) {
		return func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Works = []v1alpha1.RolloutWork{{Number: 1, Verb: v1alpha1.WorkCreateClone, Phase: "Succeeded"}, {Number: 2, Verb: v1alpha1.WorkScale, Replicas: new(int32(3)), Phase: phase, Message: message}}
		}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.ABRelease)
		want   string
	}{
		"an executor that does not come":     {waits("WorkPending", "no executor"), "Works Holds: no executor"},
		"an executor that refuses":           {waits("WorkRefused", "ada may not"), "Works Holds: ada may not"},
		"before the first work":              {func(*v1alpha1.ABRelease) {}, "Works Unknown: the executor has no work yet"},
		"after a work":                       {works("Succeeded", ""), "Works OK: work 2, Scale to 3, is Succeeded"},
		"while the clone follows":            {works("Refused", "Halted"), "Works Unknown: work 2, Scale to 3, is Refused: Halted"},
		"a baseline that its owner changes":  {promotes(waits("BaselineUnchanged", "merge shop:2")), "Baseline Holds: merge shop:2"},
		"a baseline whose pods come":         {promotes(waits("BaselineRollout", "1 of 4 pods")), "Baseline Holds: 1 of 4 pods"},
		"a baseline that is changed next":    {promotes(func(*v1alpha1.ABRelease) {}), "Baseline Unknown: a does not have the change yet"},
		"a baseline that has got the change": {promotes(func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.Clone.Changed = &v1alpha1.VariationRevision{} }), "Baseline OK: a has the change"},
		"a minimum that is held without a clone": {func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Run.Clone = nil
			r.Status.Rollout.Works = []v1alpha1.RolloutWork{{Number: 1, Verb: v1alpha1.WorkHoldMinReplicas, Replicas: new(int32(6)), Phase: "Succeeded"}}
		}, "Works OK: work 1, HoldMinReplicas to 6, is Succeeded"},
		"a canary that is no clone has no row": {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.Clone = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := underWay()
			r.Status.Rollout.Run.Clone, r.Status.Rollout.Run.From.Variation = &v1alpha1.RolloutClone{Promotion: v1alpha1.PromotionUpdateBaseline}, "a"
			c.change(r)
			e := Explain(&Question{Release: r})
			var got []string
			for _, gate := range e.Gates {
				if gate.Name == "Works" || gate.Name == "Baseline" {
					got = append(got, gate.Name+" "+string(gate.State)+": "+gate.Value)
				}
			}
			if text := strings.Join(got, "\n"); !strings.Contains(text, c.want) || c.want == "" && text != "" {
				t.Errorf("the gates are\n%s\nwant %q", text, c.want)
			}
		})
	}
}

func TestExplain_TellsThatTheNextRunIsQueued(t *testing.T) {
	for name, c := range map[string]struct {
		queued *metav1.Time
		want   string
	}{
		"another change waits in the spec": {new(metav1.Now()), "the next run is queued"},
		"the spec has that of the run":     {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := underWay()
			r.Status.Rollout.Run.Clone = &v1alpha1.RolloutClone{QueuedTime: c.queued}
			e := Explain(&Question{Release: r})
			at := slices.IndexFunc(e.Gates, func(g Gate) bool { return g.Name == "Revision" })
			if at < 0 || e.Gates[at].State != GateOK || !strings.HasPrefix(e.Gates[at].Next, c.want) || c.want == "" && e.Gates[at].Next != "" {
				t.Errorf("the gates are %+v", e.Gates)
			}
		})
	}
}
