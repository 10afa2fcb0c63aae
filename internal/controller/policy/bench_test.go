// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/internal/planning/planningtest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

var epoch = planningtest.Epoch

// bench is a Reconciler over a small cluster.
type bench struct {
	*testing.T
	*planningtest.Cluster
	client   client.Client
	r        *Reconciler
	clock    *testingclock.FakePassiveClock
	registry *prometheus.Registry
	recorder *events.FakeRecorder
	told     []notify.Event
	log      strings.Builder
}

// Notify implements Notifier.
func (b *bench) Notify(e notify.Event) { b.told = append(b.told, e) }

func newBench(t *testing.T, changes ...func(*planningtest.Cluster)) *bench {
	t.Helper()
	b := &bench{
		T: t, Cluster: planningtest.New(t), clock: testingclock.NewFakePassiveClock(epoch),
		registry: prometheus.NewRegistry(), recorder: events.NewFakeRecorder(64),
	}
	for _, change := range changes {
		change(b.Cluster)
	}
	metrics, err := NewMetrics(b.registry)
	if err != nil {
		t.Fatal(err)
	}
	b.client = b.Reader()
	b.r = &Reconciler{
		Client: b.client, Live: b.client, Namespace: "plumbline-system", Recorder: b.recorder, Metrics: metrics, Notifier: b, Clock: b.clock,
		Source: &fresh{Live: &planning.Live{Reader: b.client}},
		Log:    funcr.New(func(_, args string) { b.log.WriteString(args + "\n") }, funcr.Options{}),
	}
	return b
}

// fresh is a Source that keeps nothing from one World to the next; stale makes it
// a cache that never learns of plans.
type fresh struct {
	*planning.Live
	stale bool
}

func (f *fresh) World(ctx context.Context, now time.Time) (*planning.World, error) {
	f.Live = &planning.Live{Reader: f.Reader, Mapper: planningtest.Mapper(), Excluded: specguard.ExcludedNamespaces("plumbline-system")}
	w, err := f.Live.World(ctx, now)
	if err == nil && f.stale {
		w.Plans = nil
	}
	return w, err
}

// look looks at the policy once.
func (b *bench) look() reconcile.Result {
	b.Helper()
	result, err := b.tryLook()
	if err != nil {
		b.Fatal(err)
	}
	return result
}

func (b *bench) tryLook() (reconcile.Result, error) {
	return b.r.Reconcile(b.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: b.Policy.Name}})
}

func (b *bench) plans() []v1alpha1.RemediationPlan {
	b.Helper()
	var list v1alpha1.RemediationPlanList
	if err := b.client.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	return list.Items
}

func (b *bench) status() *v1alpha1.RemediationPolicyStatus {
	b.Helper()
	p := &v1alpha1.RemediationPolicy{}
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(b.Policy), p); err != nil {
		b.Fatal(err)
	}
	return &p.Status
}

// events that were made since the last call.
func (b *bench) events() []string {
	var out []string
	for {
		select {
		case e := <-b.recorder.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func evil(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" }

type notReady struct{ planning.Source }

func (notReady) World(context.Context, time.Time) (*planning.World, error) {
	return nil, planning.ErrNotReady
}
