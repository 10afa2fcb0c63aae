// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

func gated(queries ...v1alpha1.RolloutQuery) *v1alpha1.RolloutStrategySpec {
	return &v1alpha1.RolloutStrategySpec{
		Stages:  []v1alpha1.RolloutStage{{TrafficPercentage: new(v1alpha1.Percent(100)), Duration: &metav1.Duration{}}},
		Queries: queries,
	}
}

// Gates that the installation would not ask are refused: a run would wait for them forever.
func TestGatesThatNothingAsksAreRefused(t *testing.T) {
	query := v1alpha1.RolloutQuery{Name: "errors", Query: "up", Maximum: "1"}
	unknown := query
	unknown.Query = `up{pod="$(pod)"}`
	inline := v1alpha1.Rollout{Strategy: gated(query)}
	named := v1alpha1.Rollout{StrategyName: "gated"}
	hook := v1alpha1.Rollout{Strategy: gated(), Gates: &v1alpha1.RolloutGates{Webhooks: []v1alpha1.GateWebhook{{
		Name: "board", Event: v1alpha1.GateBeforePromotion, Destination: v1alpha1.SecretKeyReference{Name: "hook", Key: "url"}, SigningKey: v1alpha1.SecretKeyReference{Name: "keys", Key: "key"},
	}}}}
	tests := map[string]struct {
		rollout v1alpha1.Rollout
		named   *v1alpha1.RolloutStrategySpec
		has     rollout.Installation
		fault   string
	}{
		"inline queries":                           {inline, nil, rollout.Installation{Prometheus: true}, "spec.rollout.strategy.queries: the installation permits queries in RolloutStrategies alone: name a RolloutStrategy, or set delivery.inlineQueries"},
		"inline queries that are permitted":        {inline, nil, rollout.Installation{Prometheus: true, InlineQueries: true}, ""},
		"inline queries without Prometheus":        {inline, nil, rollout.Installation{InlineQueries: true}, "spec.rollout.strategy.queries: the installation has no Prometheus: set metrics.prometheus.url"},
		"queries of a strategy":                    {named, gated(query), rollout.Installation{Prometheus: true}, ""},
		"queries of a strategy without Prometheus": {named, gated(query), rollout.Installation{}, "spec.rollout.strategyName: RolloutStrategy gated has queries, and the installation has no Prometheus"},
		"an unknown placeholder":                   {named, gated(query, unknown), rollout.Installation{Prometheus: true}, `queries[1].name: another query is named "errors"` + "\n" + "queries[1].query: unknown placeholder $(pod)"},
		"a strategy without queries":               {named, gated(), rollout.Installation{}, ""},
		"a webhook":                                {hook, nil, rollout.Installation{GateSecrets: []string{"keys", "hook"}}, ""},
		"a webhook whose URL is not to be read":    {hook, nil, rollout.Installation{GateSecrets: []string{"keys"}}, "spec.rollout.gates.webhooks[0].destination.name: gates may not read Secret hook: add the Secret to the chart value delivery.gateSecrets"},
		"a webhook whose key is not to be read":    {hook, nil, rollout.Installation{GateSecrets: []string{"hook"}}, "spec.rollout.gates.webhooks[0].signingKey.name: gates may not read Secret keys"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{}
			r.Spec.Rollout = &tc.rollout
			_, err := rollout.PlanOf(r, tc.named, tc.has)
			if (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("the error is %v, want %q", err, tc.fault)
			}
		})
	}
}

func TestSubjectOf(t *testing.T) {
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout", UID: "u"}}
	r.Spec.ServiceName = "web"
	got := rollout.SubjectOf(r, rollout.State{Run: &rollout.Run{
		Active: "blue", Canary: "green", From: rollout.Revision{Hash: "a"}, To: rollout.Revision{Hash: "b"}, EndReason: rollout.EndFailed, EndMessage: "stage 1 failed",
	}})
	want := gates.Subject{
		Names: gates.Names{Namespace: "shop", Service: "web", Release: "checkout", Canary: "green", Stable: "blue"},
		UID:   "u", From: "a", To: "b", Reason: "StageFailed", Message: "stage 1 failed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the subject (-want +got):\n%s", diff)
	}
}

func TestWebhooksAreToldOfARollbackForAnHour(t *testing.T) {
	s := rollout.State{Run: &rollout.Run{Number: 1, State: rollout.RolledBack, EndTime: noon}}
	webhooks := []gates.Webhook{{Name: "chat", Event: gates.AfterRollback}}
	for after, want := range map[time.Duration]int{0: 1, 59 * time.Minute: 1, time.Hour: 0} {
		if got := s.Questions(webhooks, noon.Add(after)); len(got) != want {
			t.Errorf("after %s the questions are %v", after, got)
		}
	}
}
