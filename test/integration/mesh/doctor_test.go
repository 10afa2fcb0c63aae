// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// findings of the checks of a mesh, by their names.
func (r *replica) findings() map[string][]doctor.Finding {
	r.t.Helper()
	_, out, errs := r.plumbline(system, "doctor", "--probe=false", "-o", "json")
	var report doctor.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		r.t.Fatalf("%v: %s\n%s", err, out, errs)
	}
	found := map[string][]doctor.Finding{}
	for _, f := range report.Findings {
		if strings.HasPrefix(f.ID, "mesh.") {
			found[f.ID] = append(found[f.ID], f)
		}
	}
	return found
}

// installed makes the Deployment by which the discovery server is known to be there.
func installed(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "xds"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: doctor.DiscoveryName, Labels: labels}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "xds", Image: "xds"}}}},
	}}
	if err := admin.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), d); err != nil {
			t.Error(err)
		}
	})
}

// Each check finds what is broken for it, and nothing before.
func TestTheDoctorExaminesTheMesh(t *testing.T) {
	s := newShop(t)
	r, show := shown(t, "xds-0")
	d := discover(t, show)
	if found := r.findings(); found["mesh.proxies"][0].Severity != doctor.OK || !strings.Contains(found["mesh.proxies"][0].Message, "not enabled") {
		t.Errorf("before there is a mesh: %+v", found)
	}
	mine := func(id string) string { // others share the cluster
		for _, f := range r.findings()[id] {
			if strings.Contains(f.Object+" "+f.Message, s.namespace) {
				return string(f.Severity) + " " + f.Object + " " + f.Message
			}
		}
		return ""
	}
	r.findsOrphans(s)
	installed(t)
	for _, id := range []string{"mesh.services", "mesh.authority", "mesh.pod-security", "mesh.proxies", "mesh.upstreams"} {
		if got := mine(id); got != "" {
			t.Errorf("%s finds, before anything is broken: %s", id, got)
		}
	}

	meta := s.named("direct")
	meta.Labels = map[string]string{ir.Managed: "true"}
	s.create(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
	meta = s.named("outside")
	meta.Labels = map[string]string{ir.Managed: "true"}
	s.create(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}})
	meta = s.named("set")
	meta.Labels, meta.Annotations = map[string]string{ir.Managed: "true"}, map[string]string{ir.IdleTimeoutAnnotation: "5"}
	s.create(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
	pod := s.pod("lost-0", nil)
	pod.Labels = map[string]string{inject.LabelProxy: string(inject.Explicit)}
	s.must(admin.Update(t.Context(), pod))
	s.runs(pod)
	var namespace corev1.Namespace
	s.must(admin.Get(t.Context(), client.ObjectKey{Name: s.namespace}, &namespace))
	namespace.Labels[inject.LabelInject], namespace.Labels[inject.LabelMode] = inject.Enabled, string(inject.Redirect)
	namespace.Labels["pod-security.kubernetes.io/enforce"] = "baseline"
	s.must(admin.Update(t.Context(), &namespace))
	for id, want := range map[string]string{
		"mesh.services":     "Warning Service/" + s.namespace + "/direct Headless",
		"mesh.authority":    "Warning ConfigMap/",
		"mesh.pod-security": "Warning Namespace/" + s.namespace + " it enforces Pod Security baseline",
		"mesh.proxies":      "Warning Pod/",
	} {
		if got := mine(id); !strings.HasPrefix(got, want) {
			t.Errorf("%s finds %q, want %q", id, got, want)
		}
	}
	for name, reason := range map[string]ir.Reason{"outside": ir.ExternalName, "set": ir.InvalidSetting} {
		object := "Service/" + s.namespace + "/" + name
		if !slices.ContainsFunc(r.findings()["mesh.services"], func(f doctor.Finding) bool {
			return f.Severity == doctor.Warning && f.Object == object && strings.HasPrefix(f.Message, string(reason))
		}) {
			t.Errorf("of %s it finds no %s", object, reason)
		}
	}
	if got := r.findings()["mesh.orphans"][0]; got.Severity != doctor.OK || !strings.HasPrefix(got.Message, "pods with proxies run: ") {
		t.Errorf("with a discovery server: %+v", got)
	}
	s.create(&corev1.ConfigMap{ObjectMeta: s.named(inject.CAConfigMap), Data: map[string]string{inject.CAKey: "x"}})
	if got := mine("mesh.authority"); got != "" {
		t.Errorf("with a copy of the authority: %s", got)
	}

	theirs := newShop(t)
	theirs.service("pay", backend.Start(t, "paid"))
	s.proxy(d, s.pod("asks-0", map[string]string{discovery.UpstreamsAnnotation: theirs.namespace + "/pay"}))
	finds := func(want string) {
		t.Helper()
		poll.Until(t, patience, "mesh.upstreams finds "+want, func() error {
			if got := mine("mesh.upstreams"); got != want && (want == "" || !strings.HasPrefix(got, want)) {
				return fmt.Errorf("it finds %q", got)
			}
			return nil
		})
	}
	finds("Warning Pod/" + s.namespace + "/asks-0 its proxy does not get all that the pod asks for: Service " + theirs.namespace + "/pay: NotExported")
	theirs.exports("pay", s.namespace)
	finds("")
}

// findsOrphans fails unless a pod with a proxy is found while there is no discovery server.
func (r *replica) findsOrphans(s *shop) {
	r.t.Helper()
	pod := s.pod("orphan-0", nil)
	s.runs(pod)
	got := r.findings()["mesh.orphans"][0]
	if got.Severity != doctor.Warning || !strings.HasPrefix(got.Message, "there is no discovery server, so proxies keep the endpoints of the moment at which it went; pods with one: ") {
		r.t.Errorf("without a discovery server: %+v", got)
	}
	s.must(admin.Delete(r.t.Context(), pod, client.GracePeriodSeconds(0)))
}
