// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/child"
)

var deploymentGVK = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

// place is one test's namespace and its place in the stream of records.
type place struct {
	t         *testing.T
	namespace string
	since     details.Position
	made      time.Time // the guard, a whole second
}

// newPlace makes a namespace, with a guard on its Deployments that warns when
// guard is not nil.
func newPlace(t *testing.T, change func(*v1alpha1.GuardSpec)) *place {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	if err := w.client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, namespace: ns.Name, since: details.PositionAt(time.Now().Add(-time.Second))}
	if change != nil {
		p.guard(change)
	}
	return p
}

func unchanged(*v1alpha1.GuardSpec) {}

// guard makes a guard and waits until the webhook knows it.
func (p *place) guard(change func(*v1alpha1.GuardSpec)) {
	p.t.Helper()
	g := &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Name: "guard", Namespace: p.namespace},
		Spec: v1alpha1.GuardSpec{
			Resources:      []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Mode:           v1alpha1.GuardModeWarn,
			TrustedWriters: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "cicd", Name: "deployer"}}},
		},
	}
	change(&g.Spec)
	before := w.hook.metric("plumbline_guards")
	if err := w.client.Create(p.t.Context(), g); err != nil {
		p.t.Fatal(err)
	}
	p.made = g.CreationTimestamp.Time
	eventually(p.t, "the webhook knows the guard", func() bool { return w.hook.metric("plumbline_guards") == before+1 })
	p.t.Cleanup(func() {
		before := w.hook.metric("plumbline_guards")
		if err := w.client.Delete(context.Background(), g); err != nil {
			p.t.Error(err)
		}
		eventually(p.t, "the webhook forgets the guard", func() bool { return w.hook.metric("plumbline_guards") == before-1 })
	})
}

// as is a client that acts as somebody.
func as(t *testing.T, user string, groups ...string) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(apiserver.Impersonate(w.config, user, groups...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kubectl runs the real kubectl as somebody; it gives what was printed to stderr.
func (p *place) kubectl(user, stdin string, args ...string) (stdout, stderr string, err error) {
	p.t.Helper()
	args = append([]string{"--kubeconfig", w.kubeconfig, "--as", user, "-n", p.namespace}, args...)
	cmd := child.Bind(exec.Command(w.kubectl, args...))
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func (p *place) mustKubectl(user, stdin string, args ...string) (stdout, stderr string) {
	p.t.Helper()
	stdout, stderr, err := p.kubectl(user, stdin, args...)
	if err != nil {
		p.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout, stderr
}

func webDeployment() *appsv1.Deployment {
	replicas := int32(1)
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: "shop/web:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
				}}},
			},
		},
	}
}

func manifest(t *testing.T, o any) string {
	t.Helper()
	raw, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// deploy creates the Deployment as somebody, with changes.
func (p *place) deploy(user string, changes ...func(*appsv1.Deployment)) {
	p.t.Helper()
	d := webDeployment()
	for _, change := range changes {
		change(d)
	}
	if _, err := as(p.t, user).AppsV1().Deployments(p.namespace).Create(p.t.Context(), d, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// live is the stored object as the server writes it.
func (p *place) live() (body []byte, annotations map[string]string) {
	p.t.Helper()
	body, err := w.kube.AppsV1().RESTClient().Get().Namespace(p.namespace).Resource("deployments").Name("web").
		SetHeader("Accept", "application/json").Do(p.t.Context()).Raw()
	if err != nil {
		p.t.Fatal(err)
	}
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &m); err != nil {
		p.t.Fatal(err)
	}
	return body, m.Annotations
}

func hashOf(t *testing.T, body []byte) string {
	t.Helper()
	h, err := canon.HashBody(body, deploymentGVK)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

// mustBeStamped checks both stamps of the stored Deployment.
func (p *place) mustBeStamped(writer string) {
	p.t.Helper()
	body, annotations := p.live()
	if got, want := annotations[v1alpha1.AnnotationSpecHash], hashOf(p.t, body); got != want {
		p.t.Errorf("stamp %q, the stored object's hash is %q", got, want)
	}
	if got := annotations[v1alpha1.AnnotationWriter]; got != writer {
		p.t.Errorf("writer %q, want %q", got, writer)
	}
}

// records are those of this namespace so far, read from the stream itself: the
// product's reader gives up after 50 ms, which a busy test machine may need.
func (p *place) records() []specguard.WriteRecord {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	messages, err := w.stream.XRange(ctx, "plumbline:details", "("+string(p.since), "+").Result()
	if err != nil {
		p.t.Fatalf("reading the stream of records: %v", err)
	}
	var out []specguard.WriteRecord
	for _, m := range messages {
		var r specguard.WriteRecord
		if err := json.Unmarshal([]byte(m.Values["r"].(string)), &r); err != nil {
			p.t.Fatalf("entry %s of the stream: %v", m.ID, err)
		}
		if r.Namespace == p.namespace {
			out = append(out, r)
		}
	}
	return out
}

// waitRecord waits for a record of which match is true.
func (p *place) waitRecord(what string, match func(specguard.WriteRecord) bool) specguard.WriteRecord {
	p.t.Helper()
	var found specguard.WriteRecord
	eventually(p.t, "a record of "+what, func() bool {
		records := p.records()
		i := slices.IndexFunc(records, match)
		if i >= 0 {
			found = records[i]
		}
		return i >= 0
	})
	return found
}

// marker writes something that is recorded and waits for its record: whatever
// came before through the same queue is then in the stream too.
func (p *place) marker() {
	p.t.Helper()
	d := webDeployment()
	d.Name, d.GenerateName = "", "marker-"
	made, err := as(p.t, ci).AppsV1().Deployments(p.namespace).Create(p.t.Context(), d, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.waitRecord("the marker", func(r specguard.WriteRecord) bool { return r.Name == made.Name })
}

func (p *place) patch(user, patch string, subresources ...string) error {
	_, err := as(p.t, user).AppsV1().Deployments(p.namespace).Patch(p.t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}
