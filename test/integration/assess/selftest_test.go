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

	"github.com/plumbline-dev/plumbline/internal/selftest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const (
	selftestUser      = "system:serviceaccount:plumbline-system:plumbline-selftest"
	selftestNamespace = "plumbline-system-selftest"
	selftestObject    = "plumbline-selftest-object"
)

// installSelftest creates what the chart installs of the self-test, but for its pod.
func installSelftest(w *world) {
	w.t.Helper()
	helm, err := rendered.Find(w.Ctx())
	w.Must(err)
	out, err := helm.Template(w.Ctx(), "--set", "selftest.enabled=true", "--set", "crds.enabled=false")
	w.Must(err)
	objects, err := rendered.Objects(out)
	w.Must(err)
	created := 0
	for _, object := range objects {
		runner := object.GetKind() == "Deployment" && object.GetName() != selftestObject
		leaving := object.GetAnnotations()["helm.sh/hook"] == "pre-delete"
		if !strings.Contains(object.GetName(), "selftest") || runner || leaving || object.GetKind() == "NetworkPolicy" {
			continue
		}
		w.Must(admin.Create(w.Ctx(), object))
		created++
	}
	if created != 6 {
		w.t.Fatalf("%d objects of the self-test, want 6", created)
	}
	w.t.Cleanup(func() {
		// Without them the next test's assessor has nothing to do with the self-test.
		// The test's own context has ended here.
		for _, object := range []client.Object{
			&v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: selftestNamespace, Name: "plumbline-selftest"}},
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: selftestNamespace, Name: selftestObject}},
		} {
			if err := admin.Delete(context.Background(), object); err != nil {
				w.t.Error(err)
			}
		}
	})
}

// The self-test as the chart installs it, with its own rights, on a real API server
// with the in-process policies and an assessor, and without any webhook: each of
// its knobs is found under its name and put back, and none of it is a fight.
func TestTheSelftestIsFoundUnderItsOwnName(t *testing.T) {
	w := newWorld(t)
	w.namespace = selftestNamespace
	start(t)
	installSelftest(w)
	guard := &v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: selftestNamespace, Name: "plumbline-selftest"}}
	w.Active(guard)
	w.Eventually("the object is in sync", func() error { return selftestState(w, v1alpha1.StateInSync) })

	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: selftestUser, Groups: []string{"system:authenticated", "system:serviceaccounts"}}
	cluster, err := selftest.NewAPIServer(own, selftestNamespace, selftestObject)
	w.Must(err)
	user, err := cluster.User(w.Ctx())
	w.Must(err)
	if user != selftestUser {
		t.Fatalf("the self-test is %q", user)
	}
	registry := prometheus.NewRegistry()
	metrics, err := selftest.NewMetrics(registry, time.Now(), selftest.MinPeriod)
	w.Must(err)
	runner := &selftest.Runner{
		Cluster: cluster, Period: selftest.MinPeriod, Deadline: patience, Metrics: metrics, Clock: clock.RealClock{}, Log: logr.Discard(),
	}
	for i := range 3 {
		slot := selftest.SlotAt(time.Unix(0, 0).Add(time.Duration(i)*selftest.MinPeriod), selftest.MinPeriod)
		outcome := runner.Round(w.Ctx(), slot, user)
		if outcome.Result != selftest.ResultFound {
			t.Fatalf("round %d: %+v", i, outcome)
		}
		w.Eventually("the object is in sync again", func() error { return selftestState(w, v1alpha1.StateInSync) })
	}
	var b v1alpha1.Baseline
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Namespace: selftestNamespace, Name: "deployments.apps." + selftestObject}, &b))
	if b.Status.Contention != nil {
		t.Errorf("three rounds look like a fight: %+v", b.Status.Contention)
	}
	var d appsv1.Deployment
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Namespace: selftestNamespace, Name: selftestObject}, &d))
	if got, want := []int32{d.Spec.MinReadySeconds, *d.Spec.ProgressDeadlineSeconds, *d.Spec.RevisionHistoryLimit}, []int32{0, 600, 10}; !cmp.Equal(got, want) {
		t.Errorf("the knobs are at %v, want %v", got, want)
	}
	// No webhook runs here, so no write has its stamp; the policy stamps all.
	w.shows(&process{registry: registry}, "plumbline_selftest_unstamped_total", map[string]float64{
		"plumbline_selftest_unstamped_total{stamp=hash}": 3, "plumbline_selftest_unstamped_total{stamp=writer}": 0,
	})
}

func selftestState(w *world, want v1alpha1.DriftState) error {
	var b v1alpha1.Baseline
	err := admin.Get(w.Ctx(), client.ObjectKey{Namespace: selftestNamespace, Name: "deployments.apps." + selftestObject}, &b)
	if err == nil && b.Status.State != want {
		err = fmt.Errorf("the state is %s: %+v", b.Status.State, b.Status.Findings)
	}
	return err
}

// What the self-test's service account must not be able to do, as it would try.
func TestTheSelftestMayDoNothingElse(t *testing.T) {
	w := newWorld(t)
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: selftestUser, Groups: []string{"system:authenticated"}}
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
			t.Errorf("the self-test may %s: %v", name, err)
		}
	}
}
