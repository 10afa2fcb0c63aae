// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Where pods are registered, the webhooks leave out what controllers make, and one of them alone sees pods.
func TestRegisteredPods(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Snapshot, hash, verdict *Webhook)
		want   string // part of the finding, empty for none
	}{
		"as the chart registers them": {func(*Snapshot, *Webhook, *Webhook) {}, ""},
		"without the condition of pods": {func(_ *Snapshot, hash, verdict *Webhook) {
			hash.Conditions, verdict.Conditions = hash.Conditions[:1], verdict.Conditions[:1]
		}, "matchConditions are watched-content-changed and not watched-content-changed, not-a-controllers-pod alone"},
		"with another condition of pods": {func(_ *Snapshot, hash, _ *Webhook) {
			hash.Conditions[1].Expression = "false"
		}, "the two webhooks have different matchConditions"},
		"updates left out": {func(_ *Snapshot, _, verdict *Webhook) {
			verdict.Rules[len(verdict.Rules)-1].Operations = lives
		}, "its rules lack pods (UPDATE)"},
		"known to the policy alone": {func(_ *Snapshot, _, verdict *Webhook) {
			verdict.Rules = verdict.Rules[:len(verdict.Rules)-1]
		}, "its rules lack pods (CREATE, UPDATE, DELETE)"},
		"where the webhook stamps the writer": {func(s *Snapshot, _, _ *Webhook) {
			s.Workloads.Value[0].Args = []string{"--stamp-writer=true"}
		}, "its rules lack pods (CREATE, UPDATE)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			hash, verdict := &s.Webhooks.Value[0], &s.Webhooks.Value[1]
			verdict.Rules = append(slices.Clone(verdict.Rules), rule(anyWrite, "", "pods"))
			for i := range s.Policies.Value.Policies[:1] {
				p := &s.Policies.Value.Policies[i]
				p.Rules = append(p.Rules, namedRules([]admissionv1.RuleWithOperations{rule(storing, "", "pods")})...)
			}
			for _, w := range []*Webhook{hash, verdict} {
				w.Conditions = append(slices.Clone(w.Conditions), admissionv1.MatchCondition{Name: podConditionName, Expression: "true"})
			}
			tc.change(s, hash, verdict)
			found := slices.DeleteFunc(append(checkRegistration(s), checkRules(s)...), func(f Finding) bool { return f.Severity == OK })
			switch {
			case tc.want == "" && len(found) > 0:
				t.Errorf("it finds %+v", found)
			case tc.want != "" && !slices.ContainsFunc(found, func(f Finding) bool { return f.Severity == Critical && strings.Contains(f.Message, tc.want) }):
				t.Errorf("it lacks %q: %+v", tc.want, found)
			}
		})
	}
}
