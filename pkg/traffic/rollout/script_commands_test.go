// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// copy has the canary be a clone.
func (s *story) copy(t *testing.T, d *datadriven.TestData) {
	if s.clone == nil {
		s.clone = &rollout.Clone{Variation: "canary", Deployment: "web-canary", Baseline: "web", Hash: "b", Change: "image shop:b of container shop"}
	}
	s.release.Spec.Variations[1].Clone = &v1alpha1.VariationClone{}
	if first := v1alpha1.PromotionPolicy(d.CmdArgs[0].Key); first == v1alpha1.PromotionUpdateBaseline || first == v1alpha1.PromotionAwaitBaseline {
		s.promotion = first
	}
	d.MaybeScanArgs(t, "min", &s.clone.MinReplicas)
	d.MaybeScanArgs(t, "change", &s.clone.Hash)
	s.clone.Changed, s.clone.Altered = d.HasArg("changed"), false
}

// edit has the spec ask for another change of the clone, while the clone has the one before.
func (s *story) edit(t *testing.T, d *datadriven.TestData) {
	if s.kept == nil {
		s.kept = &rollout.Kept{Clone: *s.clone, Arm: s.arms["canary"]}
	}
	next := *s.clone
	d.MaybeScanArgs(t, "change", &next.Hash)
	next.Change, next.Changed, next.Altered = "image shop:"+next.Hash+" of container shop", false, false
	s.clone = &next
	s.arms = maps.Clone(s.arms)
	s.arms["canary"] = rollout.Arm{Revision: rollout.Revision{Hash: "pl1:sha256:" + next.Hash, Image: "shop:" + next.Hash}, Targets: s.kept.Arm.Targets}
}

// answer as the executor does; the last answer to a work is the one that is known.
func (s *story) answer(t *testing.T, d *datadriven.TestData) {
	a := rollout.WorkAnswer{Run: 1, Phase: rollout.WorkPhase(d.CmdArgs[1].Key), Message: strings.TrimSpace(d.Input)}
	d.MaybeScanArgs(t, "run", &a.Run)
	a.Distrusted = d.HasArg("distrusted")
	number, err := strconv.ParseInt(d.CmdArgs[0].Key, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	a.Number = number
	s.recall(t, d, &a)
	s.works = slices.DeleteFunc(s.works, func(b rollout.WorkAnswer) bool { return a.Run == b.Run && a.Number == b.Number })
	s.works = append(s.works, a)
	s.scale(&a)
}

// recall fills an answer with what the work says, and with the autoscaler that the executor holds. A work of an
// earlier run says the same as before.
func (s *story) recall(t *testing.T, d *datadriven.TestData, a *rollout.WorkAnswer) {
	for _, b := range s.works {
		if b.Run == a.Run && b.Number == a.Number {
			a.Verb, a.Variation, a.Replicas = b.Verb, b.Variation, b.Replicas
		}
	}
	for _, w := range rollout.StateOf(&s.release.Status).Works {
		if w.Run == a.Run && w.Number == a.Number {
			a.Verb, a.Variation, a.Replicas = w.Verb, w.Variation, w.Replicas
		}
	}
	text := ""
	if d.MaybeScanArgs(t, "held", &text); text == "" {
		return
	}
	name, values, _ := strings.Cut(text, "/")
	a.Held = &rollout.HeldAutoscaler{Name: name, UID: "h"}
	if _, err := fmt.Sscanf(values, "%d/%d", &a.Held.Former, &a.Held.Minimum); err != nil {
		t.Fatal(err)
	}
}

// hearOfCohort has counts of the cohort check of the run under way: a ratio, or too few requests for one.
func (s *story) hearOfCohort(t *testing.T, d *datadriven.TestData) {
	s.cohort = rollout.Cohort{Ratio: judge.DefaultR0, Known: d.HasArg("ratio")}
	if run := rollout.StateOf(&s.release.Status).Run; run != nil {
		s.cohort.Run = run.Number
	}
	for _, arg := range d.CmdArgs {
		if _, err := fmt.Sscan(arg.Vals[0], &s.cohort.Ratio); err != nil {
			t.Fatal(err)
		}
	}
}

// hear the answer that a gate is going to give.
func (s *story) hear(t *testing.T, d *datadriven.TestData) {
	key := gates.Key{Kind: gates.KindWebhook, Name: d.CmdArgs[0].Key}
	a := gates.Answer{Message: strings.TrimSpace(d.Input)}
	switch {
	case d.Cmd == "query":
		if key.Kind = gates.KindQuery; len(d.CmdArgs) > 1 {
			value, err := strconv.ParseFloat(d.CmdArgs[1].Key, 64)
			if err != nil {
				t.Fatal(err)
			}
			a.Value = &value
		}
	case d.HasArg("silent"):
		delete(s.says, key)
		return
	default:
		a.Result = gates.Result(d.CmdArgs[1].Key)
	}
	s.says[key] = a
}

// ask the gates of the run, as the controller does.
func (s *story) ask(state rollout.State) (answers []gates.Answer) {
	for _, q := range state.Questions(rollout.WebhooksOf(&s.release), s.now) {
		if a, is := s.says[q.Key]; is {
			a.Question, a.Time = q, s.now
			answers = append(answers, a)
		}
	}
	return answers
}

// asksMore tells whether there is a question that was not answered in this look.
func (s *story) asksMore(state rollout.State, answered []gates.Answer) bool {
	return slices.ContainsFunc(s.ask(state), func(a gates.Answer) bool {
		return !slices.ContainsFunc(answered, func(b gates.Answer) bool { return a.Question == b.Question })
	})
}
