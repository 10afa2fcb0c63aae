// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/explain"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func drifting(change ...func(*v1alpha1.Baseline)) *v1alpha1.Baseline {
	b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Status.State = v1alpha1.StateDrifted
	b.Status.Findings = []v1alpha1.Finding{{Path: "/spec/replicas", Operation: v1alpha1.OperationChanged, Before: "1", After: "5", Actor: v1alpha1.Actor{User: "alice"}}}
	for _, c := range change {
		c(b)
	}
	return b
}

func contended(b *v1alpha1.Baseline) {
	b.Status.Contention = &v1alpha1.Contention{With: []string{"bob", "system:serviceaccount:ci:deployer"}}
}

func TestTheNextStepOfADriftIsNamed(t *testing.T) {
	of := func(verdicts ...explain.Explanation) Outlook {
		for i := range verdicts {
			verdicts[i].Namespace, verdicts[i].Baseline = "shop", "web"
		}
		return Outlook{Explanations: verdicts}
	}
	never := explain.Explanation{Verdict: explain.NeverUnless, Because: "the policy only observes"}
	cases := map[string]struct {
		baseline *v1alpha1.Baseline
		outlook  Outlook
		want     string
	}{
		"no policy":                            {drifting(), Outlook{}, "no policy selects the object"},
		"policies that were not read":          {drifting(), Outlook{Unread: "forbidden"}, Unknown},
		"at once":                              {drifting(), of(explain.Explanation{Verdict: explain.RepairedNow}), "remediation now"},
		"at a time":                            {drifting(), of(explain.Explanation{Verdict: explain.RepairedAt, At: noon.Add(10 * time.Hour), Because: "the window is closed"}), "remediation in 10h: the window is closed"},
		"after an event":                       {drifting(), of(explain.Explanation{Verdict: explain.RepairedAfter, Because: "a rollout is under way"}), "remediation later: a rollout is under way"},
		"a plan":                               {drifting(), of(explain.Explanation{Verdict: explain.UnderWay, Plan: "p-1"}), "in plan p-1"},
		"a plan that waits for a person":       {drifting(), of(explain.Explanation{Verdict: explain.Executable}), "remediation when a person executes the plan"},
		"never":                                {drifting(), of(never), "not remediated: the policy only observes"},
		"not known":                            {drifting(), of(explain.Explanation{Verdict: explain.NotKnown, Because: "no ledger"}), "unknown: no ledger"},
		"a verdict of a later version":         {drifting(), of(explain.Explanation{Verdict: "Someday"}), "unknown: Someday"},
		"the policy that is nearest":           {drifting(), of(never, explain.Explanation{Verdict: explain.RepairedNow}), "remediation now"},
		"a contention":                         {drifting(contended), of(never), "contention: needs a decision"},
		"a contention under a plan":            {drifting(contended), of(explain.Explanation{Verdict: explain.UnderWay, Plan: "p-1"}), "in plan p-1"},
		"an object in sync has no next step":   {drifting(func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateInSync }), Outlook{}, ""},
		"an unknown object has no next step":   {drifting(func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateUnknown }), Outlook{}, ""},
		"an explanation about another object":  {drifting(), Outlook{Explanations: []explain.Explanation{{Namespace: "shop", Baseline: "cart", Verdict: explain.RepairedNow}}}, "no policy selects the object"},
		"an explanation of another namespace":  {drifting(), Outlook{Explanations: []explain.Explanation{{Namespace: "bank", Baseline: "web", Verdict: explain.RepairedNow}}}, "no policy selects the object"},
		"policies that were read only in part": {drifting(), Outlook{Explanations: []explain.Explanation{{Namespace: "shop", Baseline: "web", Verdict: explain.RepairedNow}}, Unread: "late"}, "remediation now"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.outlook.DescribeNext(tc.baseline, noon); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheWorstChangeIsSummarized(t *testing.T) {
	finding := func(f v1alpha1.Finding) func(*v1alpha1.Baseline) {
		return func(b *v1alpha1.Baseline) { b.Status.Findings = []v1alpha1.Finding{f} }
	}
	cases := map[string]struct {
		baseline *v1alpha1.Baseline
		want     string
	}{
		"a changed value":      {drifting(), "replicas 1 → 5"},
		"a contended value":    {drifting(contended), "replicas 1 ⇄ 5"},
		"several findings":     {drifting(func(b *v1alpha1.Baseline) { b.Status.FindingsTotal = 3 }), "replicas 1 → 5 (+2 more)"},
		"a removed container":  {drifting(finding(v1alpha1.Finding{Path: "/spec/template/spec/containers/[name=audit]", Operation: v1alpha1.OperationRemoved, Before: "{}"})), "containers[audit] removed"},
		"an added field":       {drifting(finding(v1alpha1.Finding{Path: "/spec/paused", Operation: v1alpha1.OperationAdded, After: "true"})), "paused added: true"},
		"a removed object":     {drifting(finding(v1alpha1.Finding{Operation: v1alpha1.OperationRemoved, Before: "{}"})), "object removed"},
		"an added object":      {drifting(finding(v1alpha1.Finding{Operation: v1alpha1.OperationAdded, After: "{}"})), "object added"},
		"no finding":           {drifting(func(b *v1alpha1.Baseline) { b.Status.Findings = nil }), ""},
		"a comparison to come": {drifting(func(b *v1alpha1.Baseline) { b.Status.State = "" }), "not compared yet"},
		"an object not read": {drifting(func(b *v1alpha1.Baseline) {
			b.Status.State, b.Status.Conditions = v1alpha1.StateUnknown, []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: "8.3 MiB are too much"}}
		}), "8.3 MiB are too much"},
		"an unlisted operation": {drifting(finding(v1alpha1.Finding{Path: "/spec/x", Operation: "Moved", Before: "1", After: "2"})), "x 1 → 2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := SummarizeChanges(tc.baseline); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := ListWriters(drifting(contended), false); got != "bob ⇄ ci/deployer (service account)" {
		t.Errorf("the writers of a contention are %q", got)
	}
}

func TestTheHeadOfStatusCountsDriftsAndRemediations(t *testing.T) {
	checked := metav1.NewTime(noon.Add(-4 * time.Second))
	missing := drifting(func(b *v1alpha1.Baseline) { b.Status.State, b.Status.LastCheckTime = v1alpha1.StateMissing, &checked })
	calm := drifting(func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateInSync })
	cases := map[string]struct {
		baselines []v1alpha1.Baseline
		outlook   Outlook
		want      string
	}{
		"one in sync":          {[]v1alpha1.Baseline{*calm}, Outlook{}, "0 of 1 object drifted"},
		"drifted and missing":  {[]v1alpha1.Baseline{*drifting(), *missing, *calm}, Outlook{}, "1 of 3 objects drifted, 1 missing · last check 4s ago"},
		"two policies":         {[]v1alpha1.Baseline{*drifting()}, Outlook{Explanations: []explain.Explanation{{Policy: "a", Verdict: explain.RepairedNow}, {Policy: "b", Verdict: explain.NeverUnless}, {Policy: "a", Verdict: explain.UnderWay}}}, "1 of 1 object drifted · policy a remediates 2 · policy b remediates 0"},
		"policies not allowed": {[]v1alpha1.Baseline{*drifting()}, Outlook{Unread: "no"}, "1 of 1 object drifted · decisions of policies unknown: no"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := HeadStatus(tc.baselines, &tc.outlook, noon); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
