// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
)

// startAssessor runs an assessor that is told, as --stamp-writer does, that the
// webhook sets the writer stamp.
func startAssessor(t *testing.T) {
	t.Helper()
	config := rest.CopyConfig(w.config)
	config.QPS = -1
	records := details.NewClient(details.Config{Address: w.redis.Socket, CallBudget: redisTime})
	t.Cleanup(func() { _ = records.Close() })
	ready, ended := make(chan struct{}), make(chan error, 1)
	registry := prometheus.NewRegistry()
	setup := assessor.Setup{
		Config: config, Namespace: ownNamespace, Retention: time.Hour,
		Rules:    specguard.Config{Key: []byte("a key of the tests"), Stamp: specguard.StampWebhook, Grace: 500 * time.Millisecond},
		Records:  details.NewReader(records, "plumbline"),
		Registry: registry, Log: logr.Discard(), Clock: clock.RealClock{},
		Ready: func() { close(ready) },
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- assessor.Run(ctx, setup) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the assessor ended with %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("the assessor ended at once: %v", err)
	}
	// What is written before the first record could be read is not waited for.
	eventually(t, "the assessor reads records", func() bool {
		families, err := registry.Gather()
		return err == nil && slices.ContainsFunc(families, func(f *dto.MetricFamily) bool {
			return f.GetName() == "plumbline_assessor_admission_records_up" && f.GetMetric()[0].GetGauge().GetValue() == 1
		})
	})
}

// untilBaseline waits until the Baseline of the Deployment reads like this:
// authorized number and author, state, findings with their actors.
func (p *place) untilBaseline(want string) {
	p.t.Helper()
	p.untilBaselineOf("deployments", "apps", want)
}

// untilBaselineOf is untilBaseline for an object of another kind.
func (p *place) untilBaselineOf(resource, group, want string) {
	p.t.Helper()
	b, last := &v1alpha1.Baseline{}, ""
	key := types.NamespacedName{Namespace: p.namespace, Name: specguard.BaselineName(resource, group, "web")}
	defer func() {
		if p.t.Failed() {
			p.t.Logf("the baseline is %q", last)
		}
	}()
	eventually(p.t, "the baseline is "+want, func() bool {
		if err := w.client.Get(p.t.Context(), key, b); err != nil {
			last = err.Error()
			return false
		}
		last = "nothing authorized, "
		if a := b.Spec.Authorized; a != nil {
			last = fmt.Sprintf("%d by %s, ", a.Number, a.By)
		}
		last += string(b.Status.State)
		for _, f := range b.Status.Findings {
			last += fmt.Sprintf("; %s by %s (%s)", f.Path, f.Actor.User, f.Actor.Class)
		}
		return last == want
	})
}

// TestTheStampOfTheWebhookAuthorizesOnlyWithItsRecord is the fallback for API
// servers without MutatingAdmissionPolicies: what the webhook stamped and
// recorded is proven; while it is away anybody can write the annotation, so
// nothing is.
func TestTheStampOfTheWebhookAuthorizesOnlyWithItsRecord(t *testing.T) {
	const image = "/spec/template/spec/containers/[name=app]/image"
	p := newPlace(t, unchanged)
	startAssessor(t)
	// Objects as old as their guard count as imported.
	eventually(t, "the second of the guard is over", func() bool { return time.Now().Truncate(time.Second).After(p.made) })
	p.deploy(ci)
	p.untilBaseline("1 by " + ci + ", InSync")
	setImage := func(user, image string) {
		p.t.Helper()
		p.mustKubectl(user, "", "set", "image", "deployment/web", "app="+image)
	}
	setImage(ci, "shop/web:2")
	p.untilBaseline("2 by " + ci + ", InSync")
	setImage(alice, "shop/web:evil")
	p.untilBaseline("2 by " + ci + ", Drifted; " + image + " by alice (Untrusted)")
	setImage(ci, "shop/web:3")
	p.untilBaseline("3 by " + ci + ", InSync")

	calls := w.hook.metric("plumbline_admission_reviews_total")
	w.hook.stop(t)
	// Whatever becomes of this test, the next ones need the webhook.
	restart := sync.OnceValue(func() error {
		next, err := startWebhook(w.hook.port, "replica-d")
		if err != nil {
			return err
		}
		w.hook = next
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return next.Ready(ctx)
	})
	t.Cleanup(func() {
		if err := restart(); err != nil {
			t.Error(err)
		}
	})
	if calls <= 0 {
		t.Error("the webhook was never asked")
	}
	// With the webhook away a stamp that says CI is worth nothing, whoever wrote it.
	forged := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop/web:evil"}]}}}}`,
		v1alpha1.AnnotationWriter, ci)
	p.mustKubectl(alice, "", "patch", "deployment", "web", "-p", forged)
	if _, annotations := p.live(); annotations[v1alpha1.AnnotationWriter] != ci {
		t.Fatalf("the forged stamp is %q: this test shows nothing", annotations[v1alpha1.AnnotationWriter])
	}
	p.untilBaseline("3 by " + ci + ", Drifted; " + image + " by " + ci + " (Unknown)")
	// Not even CI's own write is proven.
	p.mustKubectl(ci, "", "scale", "deployment", "web", "--replicas=4")
	setImage(ci, "shop/web:4")
	p.untilBaseline("3 by " + ci + ", Drifted; " + image + " by " + ci + " (Unknown); /spec/replicas by  (Unknown)")

	if err := restart(); err != nil {
		t.Fatal(err)
	}
	// A write that changes something is proven again, and no more than it changed.
	eventually(t, "the webhook is asked again", func() bool {
		p.mustKubectl(ci, "", "set", "image", "deployment/web", "app=shop/web:5", "--dry-run=server")
		return w.hook.metric("plumbline_admission_reviews_total") > 0
	})
	setImage(ci, "shop/web:5")
	p.untilBaseline("4 by " + ci + ", Drifted; /spec/replicas by  (Unknown)")
}
