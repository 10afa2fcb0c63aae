// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// The users of the tests.
const (
	ci    = "system:serviceaccount:ci:deployer"
	alice = "alice"
	bob   = "bob"
)

const (
	imagePath = "/spec/template/spec/containers/[name=app]/image"
	goodImage = "registry.example/shop:1"
	evilImage = "registry.example/evil:1"
	inSync    = "InSync"
	// evil is how a Baseline reads after alice changed the image.
	evil = "Drifted: Changed " + imagePath + " by alice (Foreign, WriterStamp)"
)

// long skips a test that takes long unless it is asked for.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("PLUMBLINE_FAULTS") != "long" {
		t.Skip("it takes long; PLUMBLINE_FAULTS=long runs it (make faults)")
	}
}

// world is a namespace of a cluster and those who act in it.
type world struct {
	t         *testing.T
	c         *cluster
	namespace string
	clients   map[string]client.Client
}

// newWorld makes a namespace; its guards go away with the test, so that the next
// test's assessor has nothing to do with it.
func (c *cluster) newWorld(t *testing.T) *world {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	if err := c.admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, c: c, namespace: ns.Name, clients: map[string]client.Client{}}
	t.Cleanup(func() {
		err := c.admin.DeleteAllOf(context.Background(), &v1alpha1.SpecGuard{}, client.InNamespace(ns.Name))
		if err != nil {
			t.Errorf("removing the guards: %v", err)
		}
	})
	return w
}

// as acts as a user who may do everything that a role can give.
func (w *world) as(user string) client.Client {
	w.t.Helper()
	if w.clients[user] == nil {
		c, err := apiserver.As(w.c.config, user, people)
		w.must(err)
		w.clients[user] = c
	}
	return w.clients[user]
}

func (w *world) ctx() context.Context { return w.t.Context() }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// eventually polls until a check passes; the deadline is generous because the
// machine is shared.
func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	w.within(patience, what, check)
}

func (w *world) within(limit time.Duration, what string, check func() error) {
	w.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(w.ctx(), 20*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		w.t.Fatalf("waited %s until %s: %v", limit, what, last)
	}
}

// assessor starts the assessor's binary without leader election, at the API
// server's own address or another one, and waits until it is ready.
func (w *world) assessor(address string, flags ...string) *server.Process {
	w.t.Helper()
	flags = append([]string{"--leader-elect=false", "--api-server-metrics=0", "--digest-key-file=" + digestKey(w.t)}, flags...)
	p := w.c.startProcessAt(w.t, address, "assessor", assessorUser, flags...)
	w.ready(p)
	return p
}

func (w *world) ready(p *server.Process) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx(), patience)
	defer cancel()
	w.must(p.Ready(ctx))
}

// digestKey is one key for all assessors, as the chart has it.
func digestKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "digest-key")
	if err := os.WriteFile(path, []byte("a digest key of the tests"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// guard makes a guard of Deployments that trusts CI.
func (w *world) guard() *v1alpha1.SpecGuard {
	w.t.Helper()
	g := &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "workloads"},
		Spec: v1alpha1.GuardSpec{
			Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
			TrustedWriters: v1alpha1.Writers{
				ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}},
			},
		},
	}
	w.must(w.c.admin.Create(w.ctx(), g))
	return g
}

// inForce waits until a guard is ready.
func (w *world) inForce(g *v1alpha1.SpecGuard) {
	w.t.Helper()
	w.eventually("the guard is ready", func() error {
		if err := w.c.admin.Get(w.ctx(), client.ObjectKeyFromObject(g), g); err != nil {
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
func (w *world) underGuard() *v1alpha1.SpecGuard {
	w.t.Helper()
	g := w.guard()
	w.inForce(g)
	w.secondOver(g.CreationTimestamp.Time)
	return g
}

// secondOver waits until the second of a time is over.
func (w *world) secondOver(of time.Time) {
	w.t.Helper()
	w.eventually("the second is over", func() error {
		if left := time.Until(of.Add(time.Second)); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	})
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
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: goodImage}}},
			},
		},
	}
}

func (w *world) deploy(user, name string) *appsv1.Deployment {
	w.t.Helper()
	d := deployment(w.namespace, name)
	w.must(w.as(user).Create(w.ctx(), d))
	return d
}

func (w *world) named(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

func imagePatch(image string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, image))
}

func (w *world) setImage(user, name, image string) {
	w.t.Helper()
	w.must(w.as(user).Patch(w.ctx(), w.named(name), imagePatch(image)))
}

func (w *world) setEnv(user, name, key, value string) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":%q,"value":%q}]}]}}}}`, key, value)
	w.must(w.as(user).Patch(w.ctx(), w.named(name), client.RawPatch(types.StrategicMergePatchType, patch)))
}

// baselineName is the Baseline of a Deployment.
func baselineName(name string) string { return specguard.BaselineName("deployments", "apps", name) }

func (w *world) baseline(name string) (*v1alpha1.Baseline, error) {
	b := &v1alpha1.Baseline{}
	err := w.c.admin.Get(w.ctx(), types.NamespacedName{Namespace: w.namespace, Name: baselineName(name)}, b)
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
	return w.until(name, fmt.Sprintf("the baseline of %s is %q", name, want), reads(want))
}

func reads(want string) func(*v1alpha1.Baseline) error {
	return func(b *v1alpha1.Baseline) error {
		if got := describe(b); got != want {
			return fmt.Errorf("it is not")
		}
		return nil
	}
}

// untilAuthorised waits until a Baseline is in sync with so many revisions.
func (w *world) untilAuthorised(name string, number int64) *v1alpha1.Baseline {
	w.t.Helper()
	return w.until(name, fmt.Sprintf("revision %d of %s is authorised and runs", number, name), func(b *v1alpha1.Baseline) error {
		if n := authorisedNumber(b); n != number || describe(b) != inSync {
			return fmt.Errorf("authorised is number %d", n)
		}
		return current(b)
	})
}

// accept asks for what a Baseline shows to be authorised.
func (w *world) accept(user string, b *v1alpha1.Baseline) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"accept":{"hash":%q,"requestedBy":%q}}}`, b.Status.Observed.Hash, user)
	w.must(w.as(user).Patch(w.ctx(), b.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}

// current says that the status is about what is authorised now: both are written
// one after the other.
func current(b *v1alpha1.Baseline) error {
	switch {
	case b.Status.ObservedGeneration != b.Generation:
		return fmt.Errorf("the status is of generation %d, the spec of %d", b.Status.ObservedGeneration, b.Generation)
	case describe(b) == inSync && b.Status.Observed.Hash != b.Spec.Authorised.Hash:
		return fmt.Errorf("observed is %s, authorised %s", b.Status.Observed.Hash, b.Spec.Authorised.Hash)
	}
	return nil
}

func authorisedNumber(b *v1alpha1.Baseline) int64 {
	if b.Spec.Authorised == nil {
		return 0
	}
	return b.Spec.Authorised.Number
}

// describe writes what matters of a Baseline in one line:
// "Drifted: Changed /spec/replicas by bob (Foreign, Admission)".
func describe(b *v1alpha1.Baseline) string {
	var parts []string
	for i := range b.Status.Findings {
		f := &b.Status.Findings[i]
		path, user := f.Path, f.Actor.User
		if path == "" {
			path = "object"
		}
		if user == "" {
			user = "?"
		}
		parts = append(parts, fmt.Sprintf("%s %s by %s (%s, %s)", f.Operation, path, user, f.Actor.Class, f.Actor.Source))
	}
	text := string(b.Status.State)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, "; ")
	}
	if b.Status.RetiredAt != nil {
		text += " retired"
	}
	return text
}

// events are those about an object of the world, for one reason.
func (w *world) events(kind, name, reason string) []eventsv1.Event {
	w.t.Helper()
	var list eventsv1.EventList
	w.must(w.c.admin.List(w.ctx(), &list, client.InNamespace(w.namespace)))
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Kind != kind || name != "" && e.Regarding.Name != name || e.Reason != reason
	})
}
