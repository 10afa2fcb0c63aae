// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/controller/canary"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/chart/rendered"
)

const (
	canaryUser      = "system:serviceaccount:plumbline-system:plumbline-canary"
	canaryNamespace = "plumbline-system-canary"
	canaryObject    = "plumbline-canary-object"
)

// installCanary creates what the chart installs of the canary, but for its pod.
func installCanary(w *world) {
	w.t.Helper()
	helm, err := rendered.Find(w.Ctx())
	w.Must(err)
	out, err := helm.Template(w.Ctx(), "--set", "canary.enabled=true", "--set", "crds.enabled=false")
	w.Must(err)
	objects, err := rendered.Objects(out)
	w.Must(err)
	created := 0
	for _, object := range objects {
		runner := object.GetKind() == "Deployment" && object.GetName() != canaryObject
		leaving := object.GetAnnotations()["helm.sh/hook"] == "pre-delete"
		if !strings.Contains(object.GetName(), "canary") || runner || leaving || object.GetKind() == "NetworkPolicy" {
			continue
		}
		w.Must(admin.Create(w.Ctx(), object))
		created++
	}
	if created != 6 {
		w.t.Fatalf("%d objects of the canary, want 6", created)
	}
	w.t.Cleanup(func() {
		// Without them the next test's assessor has nothing to do with the canary.
		// The test's own context has ended here.
		for _, object := range []client.Object{
			&v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: canaryNamespace, Name: "plumbline-canary"}},
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: canaryNamespace, Name: canaryObject}},
		} {
			if err := admin.Delete(context.Background(), object); err != nil {
				w.t.Error(err)
			}
		}
	})
}

// The canary as the chart installs it, with its own rights, on a real API server
// with the in-process policies and an assessor, and without any webhook: each of
// its knobs is found under its name and put back, and none of it is a fight.
func TestTheCanaryIsFoundUnderItsOwnName(t *testing.T) {
	w := newWorld(t)
	w.namespace = canaryNamespace
	start(t)
	installCanary(w)
	guard := &v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: canaryNamespace, Name: "plumbline-canary"}}
	w.InForce(guard)
	w.Eventually("the object is in sync", func() error { return canaryState(w, v1alpha1.StateInSync) })

	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: canaryUser, Groups: []string{"system:authenticated", "system:serviceaccounts"}}
	cluster, err := canary.NewAPIServer(own, canaryNamespace, canaryObject)
	w.Must(err)
	user, err := cluster.User(w.Ctx())
	w.Must(err)
	if user != canaryUser {
		t.Fatalf("the canary is %q", user)
	}
	registry := prometheus.NewRegistry()
	metrics, err := canary.NewMetrics(registry, time.Now(), canary.MinPeriod)
	w.Must(err)
	runner := &canary.Runner{
		Cluster: cluster, Period: canary.MinPeriod, Deadline: patience, Metrics: metrics, Clock: clock.RealClock{}, Log: logr.Discard(),
	}
	for i := range 3 {
		slot := canary.SlotAt(time.Unix(0, 0).Add(time.Duration(i)*canary.MinPeriod), canary.MinPeriod)
		outcome := runner.Round(w.Ctx(), slot, user)
		if outcome.Result != canary.ResultFound {
			t.Fatalf("round %d: %+v", i, outcome)
		}
		w.Eventually("the object is in sync again", func() error { return canaryState(w, v1alpha1.StateInSync) })
	}
	var b v1alpha1.Baseline
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Namespace: canaryNamespace, Name: "deployments.apps." + canaryObject}, &b))
	if b.Status.Contention != nil {
		t.Errorf("three rounds look like a fight: %+v", b.Status.Contention)
	}
	var d appsv1.Deployment
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Namespace: canaryNamespace, Name: canaryObject}, &d))
	if got, want := []int32{d.Spec.MinReadySeconds, *d.Spec.ProgressDeadlineSeconds, *d.Spec.RevisionHistoryLimit}, []int32{0, 600, 10}; !cmp.Equal(got, want) {
		t.Errorf("the knobs are at %v, want %v", got, want)
	}
	// No webhook runs here, so no write has its stamp; the policy stamps all.
	w.shows(&process{registry: registry}, "plumbline_canary_unstamped_total", map[string]float64{
		"plumbline_canary_unstamped_total{stamp=hash}": 3, "plumbline_canary_unstamped_total{stamp=writer}": 0,
	})
}

func canaryState(w *world, want v1alpha1.DriftState) error {
	var b v1alpha1.Baseline
	err := admin.Get(w.Ctx(), client.ObjectKey{Namespace: canaryNamespace, Name: "deployments.apps." + canaryObject}, &b)
	if err == nil && b.Status.State != want {
		err = fmt.Errorf("the state is %s: %+v", b.Status.State, b.Status.Findings)
	}
	return err
}

// What the canary's service account must not be able to do, as it would try.
func TestTheCanaryMayDoNothingElse(t *testing.T) {
	w := newWorld(t)
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: canaryUser, Groups: []string{"system:authenticated"}}
	c, err := client.New(own, client.Options{Scheme: admin.Scheme()})
	w.Must(err)
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}
	for name, try := range map[string]func() error{
		"read a Deployment elsewhere": func() error {
			return c.Get(w.Ctx(), client.ObjectKeyFromObject(&appsv1.Deployment{ObjectMeta: meta}), &appsv1.Deployment{})
		},
		"list Baselines":   func() error { return c.List(w.Ctx(), &v1alpha1.BaselineList{}) },
		"write a Baseline": func() error { return c.Delete(w.Ctx(), &v1alpha1.Baseline{ObjectMeta: meta}) },
		"write a guard":    func() error { return c.Delete(w.Ctx(), &v1alpha1.SpecGuard{ObjectMeta: meta}) },
		"read a Secret": func() error {
			return c.Get(w.Ctx(), client.ObjectKey{Namespace: rendered.Namespace, Name: "plumbline-redis"}, &corev1.Secret{})
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("the canary may %s: %v", name, err)
		}
	}
}
