// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// certificate has the fields of a cert-manager.io/v1 Certificate that are used.
type certificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SecretName           string   `json:"secretName"`
		DNSNames             []string `json:"dnsNames"`
		Duration             string   `json:"duration"`
		RenewBefore          string   `json:"renewBefore"`
		Usages               []string `json:"usages"`
		RevisionHistoryLimit int      `json:"revisionHistoryLimit"`
		PrivateKey           struct {
			Algorithm      string `json:"algorithm"`
			Size           int    `json:"size"`
			RotationPolicy string `json:"rotationPolicy"`
		} `json:"privateKey"`
		IssuerRef struct {
			Name  string `json:"name"`
			Kind  string `json:"kind"`
			Group string `json:"group"`
		} `json:"issuerRef"`
	} `json:"spec"`
}

func withCertManager(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return template(t, "--set", "webhook.certificate.mode=CertManager", "--set", "webhook.certificate.issuerRef.name=ca")
}

func TestWithCertManagerTheChartAsksForTheCertificate(t *testing.T) {
	objects := withCertManager(t)
	c := convert[certificate](t, find(t, objects, "Certificate", "plumbline-webhook"))
	if c.Spec.SecretName != "plumbline-webhook-tls" || c.Spec.IssuerRef.Name != "ca" || c.Spec.IssuerRef.Kind != "Issuer" || c.Spec.IssuerRef.Group != "cert-manager.io" {
		t.Errorf("certificate %+v", c.Spec)
	}
	// The API server calls a Service by this name.
	if !slices.Contains(c.Spec.DNSNames, "plumbline-webhook."+c.Namespace+".svc") {
		t.Errorf("names %v", c.Spec.DNSNames)
	}
	want := c.Namespace + "/" + c.Name
	m := convert[admissionv1.MutatingWebhookConfiguration](t, find(t, objects, "MutatingWebhookConfiguration", "plumbline"))
	v := convert[admissionv1.ValidatingWebhookConfiguration](t, find(t, objects, "ValidatingWebhookConfiguration", "plumbline"))
	for _, annotations := range []map[string]string{m.Annotations, v.Annotations} {
		if annotations["cert-manager.io/inject-ca-from"] != want || annotations["admissions.enforcer/disabled"] != "true" {
			t.Errorf("annotations %v, want the CA of %s injected", annotations, want)
		}
	}
	d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-webhook"))
	if args := d.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--certificate-mode=CertManager") {
		t.Errorf("arguments %v", args)
	}
}

func TestWithCertManagerTheWebhookMayWriteNothing(t *testing.T) {
	objects := withCertManager(t)
	for _, kind := range []string{"Secret", "Lease"} {
		for _, o := range rendered.OfKind(objects, kind) {
			if strings.HasPrefix(o.GetName(), "plumbline-webhook") {
				t.Errorf("the chart makes %s", rendered.ID(o))
			}
		}
	}
	var got []string
	for _, right := range rights(t, objects) {
		if strings.HasPrefix(right, "plumbline-webhook:") {
			got = append(got, right)
		}
	}
	want := []string{
		"plumbline-webhook: get,list,watch mutatingwebhookconfigurations.admissionregistration.k8s.io validatingwebhookconfigurations.admissionregistration.k8s.io named plumbline, everywhere",
		"plumbline-webhook: get,list,watch namespaces, everywhere",
		"plumbline-webhook: get,list,watch secrets named plumbline-webhook-tls, in plumbline-system",
		"plumbline-webhook: get,list,watch specguards.plumbline.dev specguardexceptions.plumbline.dev clusterspecguards.plumbline.dev guarddefaults.plumbline.dev environments.plumbline.dev, everywhere",
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-want +got)\n%s", diff)
	}
}

func TestWithoutCertManagerNothingOfItIsRendered(t *testing.T) {
	objects := template(t)
	if n := len(rendered.OfKind(objects, "Certificate")); n != 0 {
		t.Errorf("%d Certificates", n)
	}
	m := find(t, objects, "MutatingWebhookConfiguration", "plumbline")
	if _, ok := m.GetAnnotations()["cert-manager.io/inject-ca-from"]; ok {
		t.Error("cert-manager would overwrite the webhook's own bundle")
	}
}

func TestCertManagerNeedsAnIssuer(t *testing.T) {
	for set, path := range map[string]string{
		`webhook.certificate.mode="CertManager"`:  "/webhook/certificate/issuerRef/name",
		`webhook.certificate.mode="Helm"`:         "/webhook/certificate/mode",
		`webhook.certificate.issuerRef.kind=""`:   "/webhook/certificate/issuerRef/kind",
		`webhook.certificate.secretName="my-tls"`: "/webhook/certificate",
	} {
		_, err := helm.Template(t.Context(), "--set-json", set)
		var failed *rendered.Error
		if !errors.As(err, &failed) || !strings.Contains(failed.Error(), path) {
			t.Errorf("%s: %v, want %s", set, err, path)
		}
	}
}
