// SPDX-License-Identifier: Apache-2.0

package trafficrouter

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/connector/connect"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestTheStatusOfATrafficRouter(t *testing.T) {
	failed := connect.Report{Failed: "status 503: frozen", Refusal: "status 503: frozen", RefusedAt: noon, Version: "1.2"}
	again := failed
	again.Failed = ""
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		said     connect.Report
		secret   error
		reason   string
		is       metav1.ConditionStatus
		message  string
		refusal  string
	}{
		"nothing was asked":         {reason: reasonConfigured, is: metav1.ConditionTrue, message: "can name the router"},
		"the last request failed":   {said: failed, reason: reasonFailing, is: metav1.ConditionFalse, message: "status 503: frozen", refusal: "status 503: frozen"},
		"an earlier request failed": {said: again, reason: reasonConfigured, is: metav1.ConditionTrue, refusal: "status 503: frozen"},
		"the key cannot be read":    {secret: errors.New("reading Secret edge: not found"), reason: reasonSecret, is: metav1.ConditionFalse, message: "Secret edge"},
		"the selector is no selector": {
			selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
			reason:   reasonInvalidSelector, is: metav1.ConditionFalse, message: "spec.allowedNamespaces: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			router := &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: v1alpha1.TrafficRouterSpec{
				Type: v1alpha1.TrafficRouterWebhook, AllowedNamespaces: tc.selector, Webhook: &v1alpha1.WebhookRouter{Capabilities: []v1alpha1.ReceiverCapability{v1alpha1.ReceiverOverride, v1alpha1.ReceiverSticky}},
			}}
			writeStatus(router, tc.said, tc.secret, noon)
			s := router.Status
			c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
			if c == nil || c.Reason != tc.reason || c.Status != tc.is || !strings.Contains(c.Message, tc.message) {
				t.Errorf("Ready is %+v", c)
			}
			if d := cmp.Diff([]string{"Sticky", "Override"}, s.Capabilities); d != "" || s.ObservedGeneration != 3 || s.Version != tc.said.Version {
				t.Errorf("the status is %+v (-want +got):\n%s", s, d)
			}
			if (tc.refusal == "") != (s.LastRefusal == nil) || s.LastRefusal != nil && s.LastRefusal.Message != tc.refusal {
				t.Errorf("the last refusal is %+v, want %q", s.LastRefusal, tc.refusal)
			}
		})
	}
}
