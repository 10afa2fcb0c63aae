// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// Cluster is an API server with the chart's kinds, roles and policies.
type Cluster struct {
	Config *rest.Config
	Admin  client.Client
	// People is a group that may do anything a role can give.
	People string
	// Patience bounds every wait.
	Patience time.Duration

	mu      sync.Mutex
	clients map[string]client.Client
}

// As is a client of a user who belongs to the people.
func (c *Cluster) As(user string) (client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.clients[user]; made != nil {
		return made, nil
	}
	made, err := apiserver.As(c.Config, user, c.People)
	if err != nil {
		return nil, fmt.Errorf("building a client for %s: %w", user, err)
	}
	if c.clients == nil {
		c.clients = map[string]client.Client{}
	}
	c.clients[user] = made
	return made, nil
}

// Namespace is a namespace of a test; what cannot be done ends the test.
type Namespace struct {
	// Name is that of the namespace.
	Name string
	// Resource is what Baseline reads the Baselines of; Deployments if empty.
	Resource schema.GroupResource

	cluster *Cluster
	t       testing.TB
}

// NewNamespace makes a namespace; its guards go away with the test, so that the
// next test's assessor has nothing to do with it.
func (c *Cluster) NewNamespace(tb testing.TB) *Namespace {
	tb.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	if err := c.Admin.Create(tb.Context(), ns); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		err := c.Admin.DeleteAllOf(context.WithoutCancel(tb.Context()), &v1alpha1.SpecGuard{}, client.InNamespace(ns.Name))
		if err != nil {
			tb.Errorf("removing the guards: %v", err)
		}
	})
	return &Namespace{Name: ns.Name, cluster: c, t: tb}
}

// In is the namespace in a test within the test.
func (n *Namespace) In(tb testing.TB) *Namespace {
	inner := *n
	inner.t = tb
	return &inner
}

// Ctx is the test's context.
func (n *Namespace) Ctx() context.Context { return n.t.Context() }

// Must ends the test with an error.
func (n *Namespace) Must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// As acts as a user who may do everything that a role can give.
func (n *Namespace) As(user string) client.Client {
	n.t.Helper()
	c, err := n.cluster.As(user)
	n.Must(err)
	return c
}

// Eventually waits until a check passes.
func (n *Namespace) Eventually(what string, check func() error) {
	n.t.Helper()
	poll.Until(n.t, n.cluster.Patience, what, check)
}

// Guard makes a guard that trusts [CI], with changes.
func (n *Namespace) Guard(changes ...func(*v1alpha1.SpecGuard)) *v1alpha1.SpecGuard {
	n.t.Helper()
	g := Guard(n.Name, changes...)
	n.Must(n.cluster.Admin.Create(n.Ctx(), g))
	return g
}

// Active waits until a guard is ready.
func (n *Namespace) Active(g *v1alpha1.SpecGuard) {
	n.t.Helper()
	n.Eventually("the guard is ready", func() error {
		if err := n.cluster.Admin.Get(n.Ctx(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		return Ready(g)
	})
}

// UnderGuard waits until a guard is in force and the second it was made in is
// over: times of objects are whole seconds, and what is made in the same second
// counts as older.
func (n *Namespace) UnderGuard(changes ...func(*v1alpha1.SpecGuard)) *v1alpha1.SpecGuard {
	n.t.Helper()
	g := n.Guard(changes...)
	n.Active(g)
	n.SecondOver(g.CreationTimestamp.Time)
	return g
}

// SecondOver waits until the second of a time is over.
func (n *Namespace) SecondOver(of time.Time) {
	n.t.Helper()
	n.Eventually("the second is over", func() error {
		if left := time.Until(of.Add(time.Second)); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	})
}

// Named is the Deployment of a name, as far as its key.
func (n *Namespace) Named(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: name}}
}

// Live reads a Deployment.
func (n *Namespace) Live(name string) *appsv1.Deployment {
	n.t.Helper()
	d := n.Named(name)
	n.Must(n.cluster.Admin.Get(n.Ctx(), client.ObjectKeyFromObject(d), d))
	return d
}

// Deploy creates a Deployment as a user.
func (n *Namespace) Deploy(user, name string) *appsv1.Deployment {
	n.t.Helper()
	d := Deployment(n.Name, name)
	n.Must(n.As(user).Create(n.Ctx(), d))
	return d
}

// Delete deletes a Deployment as a user.
func (n *Namespace) Delete(user, name string) {
	n.t.Helper()
	n.Must(n.As(user).Delete(n.Ctx(), n.Named(name)))
}

// Patch changes a Deployment as a user, by a strategic merge patch.
func (n *Namespace) Patch(user, name, body string) {
	n.t.Helper()
	n.Must(n.As(user).Patch(n.Ctx(), n.Named(name), client.RawPatch(types.StrategicMergePatchType, []byte(body))))
}

// SetImage changes the image of a Deployment as a user.
func (n *Namespace) SetImage(user, name, image string) {
	n.t.Helper()
	n.Must(n.As(user).Patch(n.Ctx(), n.Named(name), ImagePatch(image)))
}

// SetEnv sets an environment variable of a Deployment as a user.
func (n *Namespace) SetEnv(user, name, key, value string) {
	n.t.Helper()
	n.Must(n.As(user).Patch(n.Ctx(), n.Named(name), EnvPatch(key, value)))
}

// Scale writes /scale, as kubectl scale and autoscalers do; only a record tells
// who did it.
func (n *Namespace) Scale(user, name string, replicas int) {
	n.t.Helper()
	n.Must(n.As(user).SubResource("scale").Patch(n.Ctx(), n.Named(name), ScalePatch(replicas)))
}

// Baseline reads the Baseline of an object.
func (n *Namespace) Baseline(name string) (*v1alpha1.Baseline, error) {
	b := &v1alpha1.Baseline{}
	of := cmp.Or(n.Resource, schema.GroupResource{Group: "apps", Resource: "deployments"})
	err := n.cluster.Admin.Get(n.Ctx(), types.NamespacedName{Namespace: n.Name, Name: specguard.BaselineName(of.Resource, of.Group, name)}, b)
	return b, err
}

// Until waits until a Baseline is as the check wants it.
func (n *Namespace) Until(name, what string, check func(*v1alpha1.Baseline) error) *v1alpha1.Baseline {
	n.t.Helper()
	var b *v1alpha1.Baseline
	n.Eventually(what, n.look(name, &b, check))
	return b
}

// UntilOn is Until on a hot path, see [poll.Path].
func (n *Namespace) UntilOn(path poll.Path, name, what string, check func(*v1alpha1.Baseline) error) *v1alpha1.Baseline {
	n.t.Helper()
	var b *v1alpha1.Baseline
	path.Until(n.t, n.cluster.Patience, what, n.look(name, &b, check))
	return b
}

// look reads a Baseline and checks it.
func (n *Namespace) look(name string, b **v1alpha1.Baseline, check func(*v1alpha1.Baseline) error) func() error {
	return func() (err error) {
		if *b, err = n.Baseline(name); err != nil {
			return err
		}
		if err := check(*b); err != nil {
			return fmt.Errorf("%w; the baseline is %s", err, Describe(*b))
		}
		return nil
	}
}

// UntilIs waits until a Baseline reads like this, see [Describe].
func (n *Namespace) UntilIs(name, want string) *v1alpha1.Baseline {
	n.t.Helper()
	return n.Until(name, fmt.Sprintf("the baseline of %s is %q", name, want), Reads(want))
}
