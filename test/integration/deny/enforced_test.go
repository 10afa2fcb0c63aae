// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// running is an assessor of this process.
type running struct {
	registry *prometheus.Registry
	cancel   context.CancelFunc
	done     chan error
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		t.Errorf("the assessor ended with %v", err)
	}
}

// startAssessor runs the assessor as its service account.
func startAssessor(t *testing.T, server *rest.Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{registry: prometheus.NewRegistry(), cancel: cancel, done: make(chan error, 1)}
	setup := assessor.Setup{
		Config: apiserver.Impersonate(server, assessorUser), Namespace: rendered.Namespace,
		Registry: r.registry, Log: testr.NewWithOptions(t, testr.Options{Verbosity: -1}), Clock: clock.RealClock{},
	}
	go func() { r.done <- assessor.Run(ctx, setup) }()
	return r
}

// enforced is the condition as "status reason".
func enforced(t *testing.T, name string) string {
	t.Helper()
	var g v1alpha1.ClusterSpecGuard
	if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, &g); err != nil {
		return err.Error()
	}
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEnforced)
	if c == nil || c.ObservedGeneration != g.Generation {
		return "not told yet"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

func awaitCondition(t *testing.T, name, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("guard %s to be %s", name, want), func() error {
		if got := enforced(t, name); got != want {
			return errors.New(got)
		}
		return nil
	})
}

// figure is plumbline_guard_enforced of a guard, -1 without a series.
func (r *running) figure(t *testing.T, name string) float64 {
	t.Helper()
	families, err := r.registry.Gather()
	mustDo(t, err)
	for _, family := range families {
		if family.GetName() != "plumbline_guard_enforced" {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == name {
				return m.GetGauge().GetValue()
			}
		}
	}
	return -1
}

func (r *running) awaitFigure(t *testing.T, name string, want float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("plumbline_guard_enforced of %s to be %v", name, want), func() error {
		if got := r.figure(t, name); got != want {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

func awaitEvent(t *testing.T, kind, reason string) {
	t.Helper()
	eventually(t, fmt.Sprintf("an event %s about a %s", reason, kind), func() error {
		var events eventsv1.EventList
		if err := admin.List(t.Context(), &events); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Kind == kind && e.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("%d others", len(events.Items))
	})
}

// suspend suspends a guard from now on.
func suspend(t *testing.T, g *v1alpha1.ClusterSpecGuard, duration time.Duration) {
	t.Helper()
	// The assessor writes the status of the same object.
	mustDo(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		g.Spec.Suspend = &v1alpha1.Suspension{Reason: "migration", EndTime: metav1.NewTime(time.Now().Add(duration))}
		return admin.Update(t.Context(), g)
	}))
}

// TestEnforced follows the condition of a guard as it comes into force, goes out
// with its policy, and with its kind. It has an API server of its own: to take
// the policy away would disturb every other test.
func TestEnforced(t *testing.T) {
	sharedConfig, sharedAdmin, sharedKubeconfig := config, admin, kubeconfig
	defer func() { config, admin, kubeconfig = sharedConfig, sharedAdmin, sharedKubeconfig }()
	server, err := apiserver.Start()
	mustDo(t, err)
	defer func() { mustDo(t, server.Stop()) }()
	config = server.Config
	helm, err := rendered.Find(t.Context())
	mustDo(t, err)
	mustDo(t, setUp(t.Context(), helm))
	mustDo(t, admin.Delete(t.Context(), guard("first-of-all", "")))
	s := newShop(t, nil)
	d := deployment(s.namespace, "web")
	mustDo(t, admin.Create(t.Context(), d))

	assessing := startAssessor(t, server.Config)
	g := guard("deny", s.namespace)
	g.Spec.Resources = workloads[:1]
	start := time.Now()
	mustDo(t, admin.Create(t.Context(), g))
	awaitCondition(t, g.Name, "True Enforced")
	t.Logf("in force and told after %s", time.Since(start).Round(10*time.Millisecond))
	assessing.awaitFigure(t, g.Name, 1)
	wantRefused(t, setImage(t.Context(), as(t, "root", "roots"), d))

	t.Run("a kind that is not registered", func(t *testing.T) {
		secretless := guard("unregistered", s.namespace)
		secretless.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "Service"}}
		mustDo(t, admin.Create(t.Context(), secretless))
		awaitCondition(t, secretless.Name, "False KindsNotRegistered")
		mustDo(t, admin.Delete(t.Context(), secretless))
		assessing.awaitFigure(t, secretless.Name, -1)
	})

	t.Run("suspended, and over", func(t *testing.T) {
		suspend(t, g, time.Hour)
		awaitCondition(t, g.Name, "False Suspended")
		wantAllowed(t, dryRun(t.Context(), as(t, "root", "roots"), d))
		suspend(t, g, 2*time.Second) // time alone ends it
		awaitCondition(t, g.Name, "True Enforced")
		wantRefused(t, dryRun(t.Context(), as(t, "root", "roots"), d))
	})

	t.Run("its binding is deleted while the assessor is away", func(t *testing.T) {
		assessing.stop(t)
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
		mustDo(t, admin.Get(t.Context(), client.ObjectKey{Name: "plumbline-deny"}, binding))
		mustDo(t, admin.Delete(t.Context(), binding))
		eventually(t, "writes to pass", func() error { return dryRun(t.Context(), as(t, "root", "roots"), d) })
		assessing = startAssessor(t, server.Config)
		awaitCondition(t, g.Name, "False PolicyNotEnforced")
		assessing.awaitFigure(t, g.Name, 0)
		awaitEvent(t, "ClusterSpecGuard", "NotEnforced")
		binding.ResourceVersion, binding.UID = "", ""
		mustDo(t, admin.Create(t.Context(), binding))
		awaitCondition(t, g.Name, "True Enforced")
		assessing.awaitFigure(t, g.Name, 1)
	})

	t.Run("its kind is deleted", func(t *testing.T) {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		mustDo(t, admin.Get(t.Context(), client.ObjectKey{Name: "clusterspecguards.plumbline.dev"}, crd))
		mustDo(t, admin.Delete(t.Context(), crd))
		start := time.Now()
		assessing.awaitFigure(t, g.Name, 0)
		awaitEvent(t, "CustomResourceDefinition", "NotEnforced")
		t.Logf("told after %s", time.Since(start).Round(10*time.Millisecond))
		// Silent for those who write: nothing is refused, and nothing blocked.
		wantAllowed(t, dryRun(t.Context(), as(t, "root", "roots"), d))
		wantAllowed(t, admin.Create(t.Context(), deployment(s.namespace, "another")))

		crd.SetResourceVersion("")
		crd.SetUID("")
		unstructured.RemoveNestedField(crd.Object, "status")
		eventually(t, "the kind to be taken again", func() error { return admin.Create(t.Context(), crd.DeepCopy()) })
		again := guard("deny", s.namespace)
		again.Spec.Resources = workloads[:1]
		eventually(t, "the guard to be taken again", func() error { return admin.Create(t.Context(), again.DeepCopy()) })
		start = time.Now()
		awaitCondition(t, g.Name, "True Enforced")
		t.Logf("in force again after %s", time.Since(start).Round(10*time.Millisecond))
	})
	assessing.stop(t)
}
