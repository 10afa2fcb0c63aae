// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// story is one release over time, as a script tells it. The state goes through the status each time, as
// between two leaders.
type story struct {
	release v1alpha1.ABRelease
	named   map[string]*v1alpha1.RolloutStrategySpec
	arms    map[string]rollout.Arm
	verdict rollout.Health
	// lags says that proxies have not acknowledged a weight, and isSlow that they do not at once acknowledge the
	// next one; weight is the one that they have, of the
	// variation that is not active.
	lags, isSlow bool
	// checking says that proxies have the active variation serve the canary, and cohort has the counts of then.
	checking bool
	cohort   rollout.Cohort
	// comparison is the place of the fresh control in what proxies have.
	comparison    rollout.Comparison
	active        string
	weight        traffic.Weight
	contradiction string
	deletion      *rollout.Deletion
	now           time.Time
	installation  rollout.Installation
	// clone is nil unless the canary is one, and works are the answers of the executor.
	clone *rollout.Clone
	// kept is the change that the clone was made from, once the spec asks for another one.
	kept      *rollout.Kept
	promotion v1alpha1.PromotionPolicy
	works     []rollout.WorkAnswer
	// groups is nil unless the variations are groups.
	groups *rollout.Groups
	// says has the answer of each gate to all questions.
	says map[gates.Key]gates.Answer
}

// TestStories runs the scripts. Among the commands, visitors has the split keep them, and cohort (ratio=N) tells
// the counts of a cohort check, or too few without a ratio. The other commands are spec (YAML of spec.rollout), strategy NAME (YAML), arms
// (NAME=REVISION/READY/TARGETS/UPDATED, changed if the baseline has the change of the clone, and altered if the clone has another template), verdict, proxies, do (a verb, by=USER), pause, delete
// (to=VARIATION ready=N wants=N), installation, query (NAME VALUE, or the reason of no data), webhook
// (NAME RESULT, and a message), groups, clone (PROMOTION min=N change=HASH changed), work (NUMBER PHASE run=N distrusted
// hash=TEMPLATE held=NAME/FORMER/MINIMUM, and a message), edit (change=HASH of a clone that keeps the one before; arms then has
// kept=REVISION/READY/TARGETS/UPDATED, and none when the clone is made anew), and at. With groups an arm is
// NAME=REVISION/READY/REPLICAS/UPDATED/RESTARTED, or gone, and a work that succeeded scales it. With groups beside
// requests (groups hybrid) workers has the groups in this form, or unread, and arms what serves. Rewrite the scripts
// with UPDATE_GOLDEN=1.
func TestStories(t *testing.T) {
	if golden.Updates() {
		if err := flag.Set("rewrite", "true"); err != nil {
			t.Fatal(err)
		}
	}
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{now: noon, named: map[string]*v1alpha1.RolloutStrategySpec{}, arms: map[string]rollout.Arm{}, says: map[gates.Key]gates.Answer{}}
		s.release.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1}
		s.release.Spec.Stable = "stable"
		s.release.Spec.Rollout = &v1alpha1.Rollout{StrategyName: "standard"}
		s.release.Spec.Variations = []v1alpha1.Variation{{Name: "stable"}, {Name: "canary"}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.change(t, d)
			return s.decide(t)
		})
	})
}

func (s *story) change(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "spec":
		s.release.Spec.Rollout = &v1alpha1.Rollout{}
		unmarshal(t, d.Input, s.release.Spec.Rollout)
	case "strategy":
		spec := &v1alpha1.RolloutStrategySpec{}
		unmarshal(t, d.Input, spec)
		s.named[d.CmdArgs[0].Key] = spec
	case "arms":
		for _, arg := range d.CmdArgs {
			if arg.Key == "changed" { // the baseline has the change of the clone
				if s.kept != nil { // that of the run
					s.kept.Clone.Changed = true
					continue
				}
				s.clone.Changed = true
				continue
			}
			if arg.Key == "altered" { // another writer has changed the clone
				s.clone.Altered = true
				continue
			}
			if arg.Key == "none" { // the clone was made from the change of the spec
				s.kept = nil
				continue
			}
			if a := s.armOf(t, arg.Vals[0]); arg.Key == "kept" {
				s.kept.Arm = a
			} else {
				s.arms[arg.Key] = a
			}
		}
	case "verdict":
		s.verdict = rollout.Health{Message: strings.TrimSpace(d.Input)}
		s.verdict.Verdict = judge.Verdict(d.CmdArgs[0].Key)
		s.verdict.ClockStopped = d.HasArg("stopped")
	case "proxies":
		s.lags, s.isSlow, s.contradiction = d.HasArg("lag"), d.HasArg("slow"), strings.TrimSpace(d.Input)
	case "visitors":
		s.release.Spec.TrafficSplit.Sticky = &v1alpha1.Sticky{Cookie: "visitor"}
	case "cohort":
		s.hearOfCohort(t, d)
	case "pause":
		s.release.Spec.Rollout.Pause = v1alpha1.Toggle(d.CmdArgs[0].Key)
	case "do":
		c := &v1alpha1.RolloutControl{Verb: v1alpha1.RolloutVerb(d.CmdArgs[0].Key), RequestedBy: "ada"}
		d.MaybeScanArgs(t, "by", &c.RequestedBy)
		d.MaybeScanArgs(t, "run", &c.Run)
		d.MaybeScanArgs(t, "stage", &c.Stage)
		d.MaybeScanArgs(t, "attempt", &c.Attempt)
		variation := ""
		d.MaybeScanArgs(t, "variation", &variation)
		c.Variation = v1alpha1.VariationName(variation)
		s.release.Spec.Rollout.Control = c
	case "delete":
		s.deletion = &rollout.Deletion{}
		d.MaybeScanArgs(t, "to", &s.deletion.To)
		d.MaybeScanArgs(t, "ready", &s.deletion.Ready)
		d.MaybeScanArgs(t, "wants", &s.deletion.Wants)
	case "installation":
		s.installation = rollout.Installation{Prometheus: d.HasArg("prometheus"), InlineQueries: d.HasArg("inline")}
		if d.HasArg("secrets") {
			s.installation.GateSecrets = []string{"hook"}
		}
	case "query", "webhook":
		s.hear(t, d)
	case "clone":
		s.copy(t, d)
	case "edit":
		s.edit(t, d)
	case "groups":
		s.groups = &rollout.Groups{Deployments: map[string]string{"stable": "worker", "canary": "worker-next"}}
		if s.groups.Routed = d.HasArg("hybrid"); s.groups.Routed {
			s.groups.Arms = map[string]rollout.Arm{}
		}
	case "workers":
		s.employ(t, d)
	case "work":
		s.answer(t, d)
	case "at":
		after, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.now = noon.Add(after)
	default:
		t.Fatalf("no command %s", d.Cmd)
	}
}

// answer as the executor does; the last answer to a work is the one that is known.
func (s *story) answer(t *testing.T, d *datadriven.TestData) {
	a := rollout.WorkAnswer{Run: 1, Phase: rollout.WorkPhase(d.CmdArgs[1].Key), Message: strings.TrimSpace(d.Input)}
	d.MaybeScanArgs(t, "run", &a.Run)
	a.Distrusted = d.HasArg("distrusted")
	if text := ""; d.HasArg("hash") {
		d.ScanArgs(t, "hash", &text)
		a.TemplateHash = "pl1:sha256:" + text
	}
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

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func (s *story) facts() rollout.Facts {
	in := s.release.Spec.Rollout
	in.Promotion = s.promotion
	f := rollout.Facts{
		Stable: "stable", Variations: [2]string{"stable", "canary"}, Control: rollout.ControlOf(in.Control), Paused: in.Pause == v1alpha1.Enabled, Approval: rollout.ApprovalOf(in),
		Before: rollout.StateOf(&s.release.Status), Arms: s.arms, Health: s.verdict, Deletion: s.deletion, Now: s.now,
		Cohort:   s.cohort,
		Standing: rollout.Standing{Active: s.inForce(), Weight: s.weight, Checking: s.checking, Comparison: s.comparison, Acknowledged: !s.lags, Contradiction: s.contradiction},
		Clone:    s.clone, Kept: s.kept, Works: s.works, Groups: s.groups,
	}
	f.Webhooks, f.Answers = rollout.WebhooksOf(&s.release), s.ask(f.Before)
	plan, err := rollout.PlanOf(&s.release, s.named[in.StrategyName], s.installation)
	if f.Plan = plan; err != nil {
		f.Problem = err.Error()
	}
	if f.Before.Run != nil {
		f.Health.Run, f.Health.Stage, f.Health.ShiftTime = f.Before.Run.Number, f.Before.Current(), time.Time{}
		if n := f.Before.Current(); n > 0 {
			f.Health.ShiftTime = f.Before.Run.Stages[n-1].ShiftTime
		}
	}
	s.joinGroups(&f)
	return f
}

// decide decides until nothing changes, as the controller does: a decision that changes the weight is
// followed by another one when proxies have it.
func (s *story) decide(t *testing.T) string {
	var out strings.Builder
	for range 20 {
		f := s.facts()
		d := rollout.Decide(f)
		for _, e := range d.Events {
			fmt.Fprintf(&out, "%s: %s\n", e.Name, e.Message)
		}
		before, beforeActive, checked, compared := s.weight, s.active, s.checking, s.comparison
		d.After.Write(&s.release.Status)
		again := rollout.StateOf(&s.release.Status)
		if diff := cmp.Diff(d.After, again); diff != "" {
			t.Errorf("the status does not keep the state (-decided +read):\n%s", diff)
		}
		f.Before = again
		if twice := rollout.Decide(f); len(twice.Events) > 0 || cmp.Diff(d.After, twice.After) != "" {
			t.Errorf("the same facts twice change something: %v\n%s", twice.Events, cmp.Diff(d.After, twice.After))
		}
		if s.lags || d.Weight == before && d.Checking == checked && d.Comparison == compared && d.After.Active == beforeActive && !s.asksMore(again, f.Answers) {
			s.describe(&out, d)
			return out.String()
		}
		s.weight, s.checking, s.comparison, s.active, s.lags = d.Weight, d.Checking, d.Comparison, d.After.Active, s.isSlow && d.Weight != before
	}
	t.Error("the decisions do not end")
	return out.String()
}

func (s *story) describe(out *strings.Builder, d rollout.Decision) {
	fmt.Fprintf(out, "active %s, %s has %d", d.After.Active, d.Canary, d.Weight)
	if d.Checking {
		fmt.Fprintf(out, " served by %s", d.After.Active)
	}
	if d.Comparison.HasControl {
		fmt.Fprintf(out, ", the fresh control has %d", d.Comparison.Weight)
	}
	if run := d.After.Run; run != nil {
		fmt.Fprintf(out, "; run %d %s", run.Number, run.State)
		if n := d.After.Current(); n > 0 {
			fmt.Fprintf(out, " stage %d %s", n, run.Stages[n-1].State)
		}
		if run.EndReason != "" {
			fmt.Fprintf(out, " %s", run.EndReason)
		}
		if run.ActiveImages != nil {
			fmt.Fprintf(out, "; returns to %s", strings.Join(run.ActiveImages, " "))
		}
	}
	out.WriteString("\n")
	if w := d.After.Waiting; w != nil {
		fmt.Fprintf(out, "waits for %s", w.Reason)
		if !w.Deadline.IsZero() {
			fmt.Fprintf(out, " until %s", w.Deadline.Sub(noon))
		}
		fmt.Fprintf(out, ": %s\n", w.Message)
	}
	for _, w := range d.Works {
		fmt.Fprintf(out, "asks for work %d of run %d: %s of %s to %d", w.Number, w.Run, w.Verb, w.Variation, w.Replicas)
		if w.ExpectedHash != "" {
			fmt.Fprintf(out, " from %s", w.ExpectedHash)
		}
		out.WriteString("\n")
	}
	if d.Returned {
		out.WriteString("the release can go\n")
	}
	if !d.Again.IsZero() {
		fmt.Fprintf(out, "again at %s\n", d.Again.Sub(noon))
	}
}

// inForce is the variation that comes first in what proxies have.
func (s *story) inForce() string {
	if s.active == "" {
		return "stable"
	}
	return s.active
}
