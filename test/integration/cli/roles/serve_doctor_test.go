// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli"
	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// examine runs the doctor, and returns the findings of the checks of the REST API by their ids.
func examine(t *testing.T) map[string]doctor.Finding {
	t.Helper()
	var out, errs bytes.Buffer
	cli.Run(t.Context(), []string{"--kubeconfig", kubeconfig, "doctor", "--namespace", rendered.Namespace, "-o", "json"}, cli.Environment{In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now, Version: "test"})
	var report doctor.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v\n%s\n%s", err, &out, &errs)
	}
	found := map[string]doctor.Finding{}
	for _, f := range report.Findings {
		if strings.HasPrefix(f.ID, "api.") {
			found[f.ID] = f
		}
	}
	return found
}

// installAPI makes the Deployment and the Service of the chart, without a controller that would run pods.
func installAPI(t *testing.T) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "api"}
	meta := metav1.ObjectMeta{Namespace: rendered.Namespace, Name: doctor.APIName, Labels: labels}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "api", Image: "plumbline.invalid/api", Args: []string{"--role=serve"},
		}}}},
	}}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}}
	for _, o := range []client.Object{deployment, service} {
		must(t, admin.Create(t.Context(), o))
		t.Cleanup(func() { must(t, admin.Delete(context.WithoutCancel(t.Context()), o)) })
	}
	return deployment
}

// The process publishes its authority and stores its certificate, and the API server knows the audience of its tokens. No pod runs
// behind its Service, so no clock can be asked for.
func TestTheDoctorExaminesTheAPI(t *testing.T) {
	p := startServingProcess(t)
	p.trust(t)
	deployment := installAPI(t)
	want := map[string]doctor.Severity{"api.endpoints": doctor.Warning, "api.authority": doctor.OK, "api.hosts": doctor.OK, "api.audience": doctor.OK, "api.issuer": doctor.OK, "api.clock": doctor.Unknown}
	for id, found := range examine(t) {
		if found.Severity != want[id] {
			t.Errorf("%s: %+v, want %s", id, found, want[id])
		}
		delete(want, id)
	}
	if len(want) > 0 {
		t.Errorf("the doctor does not tell of %v", want)
	}

	before := deployment.DeepCopy()
	deployment.Spec.Template.Spec.Containers[0].Args = []string{"--role=serve", "--api-hosts=plumbline.example.com:8443"}
	must(t, admin.Patch(t.Context(), deployment, client.MergeFrom(before)))
	if found := examine(t)["api.hosts"]; found.Severity != doctor.Warning || !strings.Contains(found.Message, "no certificate covers the host plumbline.example.com:") {
		t.Errorf("a host without a certificate: %+v", found)
	}
	if doctor.APIAuthority != serve.CAConfigMap {
		t.Errorf("the doctor reads %s, and the authority is in %s", doctor.APIAuthority, serve.CAConfigMap)
	}
}
