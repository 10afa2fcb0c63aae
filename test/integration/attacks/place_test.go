// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

const (
	// ci is trusted by the guards of the tests.
	ci = "system:serviceaccount:ci:deployer"
	// mallory may do everything, so that no role gets in the attack's way.
	mallory = "mallory"
	// roots is the group of those who may do everything.
	roots     = "roots"
	imagePath = "/spec/template/spec/containers/[name=app]/image"
)

// place is a namespace of a test.
type place struct {
	t         testing.TB
	namespace string
}

func newPlace(t testing.TB) *place {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return &place{t: t, namespace: ns.Name}
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// eventually waits until a check passes.
func (p *place) eventually(what string, check func() error) {
	p.t.Helper()
	poll.Until(p.t, patience, what, check)
}

// as acts as somebody who may do everything.
func as(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	c, err := apiserver.As(config, user, append([]string{roots}, groups...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// person makes a user who has one of the ClusterRoles in this namespace, and
// nothing else.
func (p *place) person(role string) string {
	p.t.Helper()
	user := role + "-of-" + p.namespace
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
	p.must(admin.Create(p.t.Context(), binding))
	p.must(apiserver.AwaitBound(p.t.Context(), admin, binding.Subjects[0], p.namespace, binding.RoleRef))
	return user
}

// only acts as a user with that user's own rights.
func only(t testing.TB, user string) client.Client {
	t.Helper()
	c, err := apiserver.As(config, user)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// guard makes a guard that trusts CI, and waits until webhook and assessor know
// it and the second it was made in is over: what is made in the same second
// counts as older.
func (p *place) guard(change ...func(*v1alpha1.SpecGuard)) *v1alpha1.SpecGuard {
	p.t.Helper()
	warns := func(g *v1alpha1.SpecGuard) { g.Spec.Mode = v1alpha1.GuardModeWarn }
	g := guarded.Guard(p.namespace, append([]func(*v1alpha1.SpecGuard){warns, guarded.ExpectAutoscaler}, change...)...)
	p.must(admin.Create(p.t.Context(), g))
	p.inForce(g)
	return g
}

func (p *place) inForce(g *v1alpha1.SpecGuard) {
	p.t.Helper()
	p.eventually("the guard is in force", func() error {
		if err := admin.Get(p.t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		if err := guarded.Ready(g); err != nil {
			return err
		}
		if left := time.Until(g.CreationTimestamp.Add(time.Second)); left > 0 {
			return fmt.Errorf("%s are left of its second", left)
		}
		if guardsDeployments(g) {
			return p.stampedByWebhook()
		}
		return nil
	})
}

func guardsDeployments(g *v1alpha1.SpecGuard) bool {
	for _, r := range g.Spec.Resources {
		if r.APIVersion == "apps/v1" && r.Kind == "Deployment" {
			return true
		}
	}
	return false
}

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
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

// deploy creates a Deployment as CI and waits until it is authorized.
func (p *place) deploy(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	p.t.Helper()
	d := deployment(p.namespace, name)
	for _, c := range change {
		c(d)
	}
	p.must(as(p.t, ci).Create(p.t.Context(), d))
	p.untilIs(name, "InSync")
	return d
}

func (p *place) named(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}}
}

func (p *place) setImage(c client.Client, name, image string) {
	p.t.Helper()
	p.must(c.Patch(p.t.Context(), p.named(name), guarded.ImagePatch(image)))
}

// baseline reads the Baseline of a Deployment.
func (p *place) baseline(name string) (*v1alpha1.Baseline, error) {
	return p.baselineOf("deployments", "apps", name)
}

func (p *place) baselineOf(resource, group, name string) (*v1alpha1.Baseline, error) {
	b := &v1alpha1.Baseline{}
	err := admin.Get(p.t.Context(), types.NamespacedName{Namespace: p.namespace, Name: specguard.BaselineName(resource, group, name)}, b)
	return b, err
}

// untilIs waits until the Baseline of a Deployment reads like this, see guarded.Describe.
func (p *place) untilIs(name, want string) *v1alpha1.Baseline {
	p.t.Helper()
	return p.untilOf("deployments", "apps", name, want)
}

func (p *place) untilOf(resource, group, name, want string) *v1alpha1.Baseline {
	p.t.Helper()
	var b *v1alpha1.Baseline
	p.eventually(fmt.Sprintf("the baseline of %s is %q", name, want), func() (err error) {
		if b, err = p.baselineOf(resource, group, name); err != nil {
			return err
		}
		return guarded.Reads(want)(b)
	})
	return b
}

// witness proves that the assessor has dealt with everything that was written
// before: a later change of another object has been found.
func (p *place) witness() {
	p.t.Helper()
	name := fmt.Sprintf("witness-%d", time.Now().UnixNano())
	p.deploy(name)
	p.setImage(as(p.t, "wendy"), name, "registry.example/shop:witness")
	p.untilIs(name, "Drifted: Changed "+imagePath+" by wendy (Untrusted, WriterStamp)")
}

// plugin runs kubectl plumbline as somebody, who is impersonated by name.
func (p *place) plugin(user string, groups []string, args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "kubeconfig")
	who := apiserver.Impersonating(config, user, append([]string{"system:authenticated"}, groups...)...)
	p.must(apiserver.WriteKubeconfig(path, config, who))
	var out, errs bytes.Buffer
	args = append([]string{"--kubeconfig", path, "-n", p.namespace}, args...)
	code = cli.Run(p.t.Context(), args, cli.Environment{In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now})
	return out.String(), errs.String(), code
}

// clientOf is a client of a configuration.
func clientOf(t testing.TB, c *rest.Config) client.Client {
	t.Helper()
	made, err := client.New(c, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// metric reads one of the webhook's.
func (p *place) metric(name string, labels ...string) float64 {
	p.t.Helper()
	value, err := hook.Metric(p.t.Context(), name, labels...)
	p.must(err)
	return value
}
