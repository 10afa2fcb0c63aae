// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// The users of the tests.
const (
	ci    = "system:serviceaccount:ci:deployer"
	alice = "alice"
	bob   = "bob"
	hpa   = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
)

// world is a namespace and those who act in it.
type world struct {
	t         *testing.T
	namespace string
	// resource is what baseline reads the Baselines of; deployments if empty.
	resource schema.GroupResource
}

// newWorld makes a namespace; its guards go away with the test, so that the
// next test's assessor has nothing to do with it.
func newWorld(t *testing.T) *world {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, namespace: ns.Name}
	t.Cleanup(func() {
		err := admin.DeleteAllOf(context.Background(), &v1alpha1.SpecGuard{}, client.InNamespace(ns.Name))
		if err != nil {
			t.Errorf("removing the guards: %v", err)
		}
	})
	return w
}

// as acts as a user who may do everything.
func (w *world) as(user string) client.Client {
	w.t.Helper()
	c, err := clientAs(user)
	w.must(err)
	return c
}

func clientAs(user string) (client.Client, error) {
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated", people}}
	return client.New(own, client.Options{Scheme: scheme.Scheme})
}

func (w *world) ctx() context.Context { return w.t.Context() }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// guard makes a guard that trusts CI and expects the autoscaler at replicas.
func (w *world) guard(change ...func(*v1alpha1.SpecGuard)) *v1alpha1.SpecGuard {
	w.t.Helper()
	g := &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "workloads"},
		Spec: v1alpha1.GuardSpec{
			Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
			TrustedWriters: v1alpha1.Writers{
				ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}},
			},
			ExpectedWriters: []v1alpha1.ExpectedWriter{{
				Name:    "autoscaler",
				Writers: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "kube-system", Name: "horizontal-pod-autoscaler"}}},
				Paths:   []string{"/spec/replicas"},
			}},
		},
	}
	for _, c := range change {
		c(g)
	}
	w.must(admin.Create(w.ctx(), g))
	return g
}

// inForce waits until a guard is ready.
func (w *world) inForce(g *v1alpha1.SpecGuard) {
	w.t.Helper()
	w.eventually("the guard is ready", func() error {
		if err := admin.Get(w.ctx(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != g.Generation {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
}

// underGuard waits until a guard is in force and the second it was made in is
// over: times of objects are whole seconds, and what is made in the same second
// counts as older.
func (w *world) underGuard(change ...func(*v1alpha1.SpecGuard)) *v1alpha1.SpecGuard {
	w.t.Helper()
	g := w.guard(change...)
	w.inForce(g)
	w.eventually("the second of the guard is over", func() error {
		if left := time.Until(g.CreationTimestamp.Add(time.Second)); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	})
	return g
}

// deployment is a small workload.
func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example/shop:1"}}},
			},
		},
	}
}

// deploy creates a deployment as a user.
func (w *world) deploy(user, name string) *appsv1.Deployment {
	w.t.Helper()
	d := deployment(w.namespace, name)
	w.must(w.as(user).Create(w.ctx(), d))
	return d
}

// patch changes a deployment as a user, by a strategic merge patch.
func (w *world) patch(user, name, body string) {
	w.t.Helper()
	w.must(w.as(user).Patch(w.ctx(), w.named(name), client.RawPatch(types.StrategicMergePatchType, []byte(body))))
}

func (w *world) setImage(user, name, image string) {
	w.t.Helper()
	w.patch(user, name, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, image))
}

func (w *world) setEnv(user, name, key, value string) {
	w.t.Helper()
	w.patch(user, name, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":%q,"value":%q}]}]}}}}`, key, value))
}

// scale writes /scale, as kubectl scale and autoscalers do.
func (w *world) scale(user, name string, replicas int) {
	w.t.Helper()
	w.must(w.as(user).SubResource("scale").Patch(w.ctx(), w.named(name),
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
}

// writeStatus does what the deployment controller does all the time.
func (w *world) writeStatus(name string, observed int) {
	w.t.Helper()
	w.must(admin.Status().Patch(w.ctx(), w.named(name),
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, observed))))
}

// look makes the assessor look at an object that did not change, as every write
// to its Baseline does.
func (w *world) look(name string) {
	w.t.Helper()
	b, err := w.baseline(name)
	w.must(err)
	w.must(admin.Patch(w.ctx(), b, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"looked-at":"%d"}}}`, time.Now().UnixNano()))))
}

func (w *world) named(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

func (w *world) delete(user, name string) {
	w.t.Helper()
	w.must(w.as(user).Delete(w.ctx(), w.named(name)))
}

// baseline reads the Baseline of an object.
func (w *world) baseline(name string) (*v1alpha1.Baseline, error) {
	b := &v1alpha1.Baseline{}
	of := cmp.Or(w.resource, schema.GroupResource{Group: "apps", Resource: "deployments"})
	err := admin.Get(w.ctx(), types.NamespacedName{
		Namespace: w.namespace, Name: specguard.BaselineName(of.Resource, of.Group, name),
	}, b)
	return b, err
}

// until waits until a Baseline is as the check wants it.
func (w *world) until(name, what string, check func(*v1alpha1.Baseline) error) *v1alpha1.Baseline {
	w.t.Helper()
	var b *v1alpha1.Baseline
	w.eventually(what, func() (err error) {
		if b, err = w.baseline(name); err != nil {
			return err
		}
		if err := check(b); err != nil {
			return fmt.Errorf("%w; the baseline is %s", err, describe(b))
		}
		return nil
	})
	return b
}

// untilIs waits until a Baseline reads like this, see describe.
func (w *world) untilIs(name, want string) *v1alpha1.Baseline {
	w.t.Helper()
	return w.until(name, fmt.Sprintf("the baseline of %s is %q", name, want), func(b *v1alpha1.Baseline) error {
		if got := describe(b); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// stays checks that a Baseline reads like this now, after the assessor has dealt
// with a change made later to another object, which proves that it had the time.
func (w *world) stays(name, want string) {
	w.t.Helper()
	witness := fmt.Sprintf("witness-%d", time.Now().UnixNano())
	w.deploy(ci, witness)
	w.untilIs(witness, "InSync")
	w.untilIs(name, want)
}

// describe writes what matters of a Baseline in one line, findings sorted as told:
// "Drifted: Changed /spec/replicas by bob (Foreign, Admission)".
func describe(b *v1alpha1.Baseline) string {
	var parts []string
	for _, f := range b.Status.Findings {
		path := f.Path
		if path == "" {
			path = "object"
		}
		user := f.Actor.User
		if user == "" {
			user = "?"
		}
		parts = append(parts, fmt.Sprintf("%s %s by %s (%s, %s)", f.Operation, path, user, f.Actor.Class, f.Actor.Source))
	}
	text := string(b.Status.State)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, "; ")
	}
	for _, m := range b.Status.Masks {
		text += fmt.Sprintf(" [%s %s]", m.Rule, m.Path)
	}
	if b.Status.RetiredAt != nil {
		text += " retired"
	}
	return text
}

// eventually polls until a check passes; the deadline is generous because the
// machine is shared.
func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(w.ctx(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		w.t.Fatalf("waited %s until %s: %v", patience, what, last)
	}
}

func isGone(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("it is still there")
	default:
		return err
	}
}

func authorisedNumber(b *v1alpha1.Baseline) int64 {
	if b.Spec.Authorised == nil {
		return 0
	}
	return b.Spec.Authorised.Number
}
