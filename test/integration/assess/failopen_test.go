// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// withAPIServerMetrics has the API server's own count read at every look.
func withAPIServerMetrics() option {
	return func(s *assessor.Setup) { s.APIServerMetrics = time.Second }
}

// endpoints makes the webhook's Service have ready endpoints, or none.
func endpoints(w *world, ready bool) {
	w.t.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rendered.Namespace, Name: "plumbline-webhook-t", Labels: map[string]string{discoveryv1.LabelServiceName: "plumbline-webhook"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(ready)}}},
	}
	w.Must(client.IgnoreNotFound(admin.Delete(w.Ctx(), slice.DeepCopy())))
	w.Must(admin.Create(w.Ctx(), slice))
}

func removeEndpoints(t *testing.T) {
	t.Cleanup(func() {
		err := admin.DeleteAllOf(context.Background(), &discoveryv1.EndpointSlice{}, client.InNamespace(rendered.Namespace))
		if err != nil {
			t.Error(err)
		}
	})
}

// comes waits until a sample is as the check wants it. A sweep lets the watches
// settle for ten seconds, and a Lease counts as late after twenty.
func (w *world) comes(p *process, sample string, enough func(float64) bool) {
	w.t.Helper()
	poll.Until(w.t, 4*patience, sample+" is as it should be", func() error {
		all, err := p.figures()
		if got := all[sample]; err == nil && !enough(got) {
			err = fmt.Errorf("it is %v", got)
		}
		return err
	})
}

func moreThan(n float64) func(float64) bool { return func(v float64) bool { return v > n } }
func exactly(n float64) func(float64) bool  { return func(v float64) bool { return v == n } }

// The assessor runs with the chart's rights: endpoints, Lease and /metrics are
// read with them.
func TestAfterAFailOpenWindowWhatWasWrittenIsLookedAtAgain(t *testing.T) {
	w := newWorld(t)
	removeEndpoints(t)
	endpoints(w, true)
	p := start(t, withAPIServerMetrics())
	w.UnderGuard()
	w.comes(p, "plumbline_webhook_ready_endpoints{}", exactly(1))
	endpoints(w, false)
	w.comes(p, "plumbline_fail_open{evidence=endpoints}", exactly(1))
	w.Deploy(alice, "web")
	endpoints(w, true)
	w.comes(p, "plumbline_fail_open{evidence=endpoints}", exactly(0))
	w.comes(p, "plumbline_fail_open_seconds_total{evidence=endpoints}", moreThan(0))
	w.comes(p, "plumbline_sweeps_total{result=complete}", moreThan(0))
	w.comes(p, "plumbline_sweep_objects_total{}", moreThan(0))
	// Nothing was lost, and every source was readable.
	w.shows(p, "plumbline_sweep_behind_total", map[string]float64{
		"plumbline_sweep_behind_total{where=watch}": 0, "plumbline_sweep_behind_total{where=status}": 0,
	})
	w.shows(p, "plumbline_fail_open_read_failures_total", map[string]float64{
		"plumbline_fail_open_read_failures_total{source=apiserver}": 0,
		"plumbline_fail_open_read_failures_total{source=endpoints}": 0,
		"plumbline_fail_open_read_failures_total{source=lease}":     0,
	})
}

func TestTheAPIServersOwnCountOpensAWindow(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	removeEndpoints(t)
	endpoints(w, true)
	p := start(t, withAPIServerMetrics())
	w.UnderGuard()
	w.comes(p, "plumbline_webhook_ready_endpoints{}", exactly(1))
	// A webhook of our name that nobody serves.
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "plumbline-nobody"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "verdict.plumbline.dev",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/validate")},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
			NamespaceSelector: selector("kubernetes.io/metadata.name", w.namespace),
			FailurePolicy:     new(admissionregistrationv1.Ignore), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(1)),
		}},
	}
	w.Must(admin.Create(w.Ctx(), hook))
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), hook); err != nil {
			t.Error(err)
		}
	})
	made := 0
	w.comes(p, "plumbline_fail_open_calls_total{}", func(calls float64) bool {
		w.Deploy(alice, fmt.Sprintf("web-%d", made))
		made++
		return calls > 0
	})
	w.comes(p, "plumbline_fail_open_seconds_total{evidence=apiserver}", moreThan(0))
	w.comes(p, "plumbline_sweeps_total{result=complete}", moreThan(0))
}

func TestALeaseThatNobodyRenewsOpensAWindow(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	removeEndpoints(t)
	endpoints(w, true)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "plumbline-webhook"}}
	hold := func(holder string) {
		t.Helper()
		w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(lease), lease))
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = new(holder), new(metav1.NowMicro())
		w.Must(admin.Update(w.Ctx(), lease))
	}
	hold("a")
	t.Cleanup(func() {
		lease.Spec.HolderIdentity = nil
		if err := admin.Update(context.Background(), lease); err != nil {
			t.Error(err)
		}
	})
	p := start(t)
	w.comes(p, "plumbline_fail_open{evidence=lease}", exactly(1))
	hold("b")
	w.comes(p, "plumbline_fail_open{evidence=lease}", exactly(0))
	w.comes(p, "plumbline_fail_open_seconds_total{evidence=lease}", moreThan(0))
}

// Figures of the whole, from a drift and a fight.
func TestFiguresOfTheFleet(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.comes(p, "plumbline_assessor_leader{}", exactly(1))
	w.comes(p, "plumbline_drift_contended_objects{}", exactly(0))
	w.within(p, "plumbline_assessor_staleness_seconds{}", 0, 2*time.Minute)
	w.within(p, "plumbline_watch_contact_age_seconds{kind=Deployment.apps}", 0, 2*time.Minute)
	for i := range 3 {
		user, count := alice, 5
		if i%2 == 1 {
			user, count = ci, 0
		}
		w.Patch(user, "web", fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, count))
		w.Until("web", "the write is seen", func(b *v1alpha1.Baseline) error {
			if drifted := b.Status.State == v1alpha1.StateDrifted; drifted != (user == alice) {
				return fmt.Errorf("the state is %s", b.Status.State)
			}
			return nil
		})
	}
	w.comes(p, "plumbline_drift_contended_objects{}", exactly(1))
	b, err := w.Baseline("web")
	w.Must(err)
	w.comes(p, "plumbline_drift_open_age_seconds{severity="+string(b.Status.Severity.Level)+"}", moreThan(0))
	w.comes(p, "plumbline_guarded_generations_per_minute{}", moreThan(0.5)) // three within five minutes
}
