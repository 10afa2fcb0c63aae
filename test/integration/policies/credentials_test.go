// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

var listEverything = metav1.ListOptions{}

func mustGroupVersion(t *testing.T, text string) schema.GroupVersion {
	t.Helper()
	parsed, err := schema.ParseGroupVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// selfSigned is a certificate authority in PEM; the API server refuses a
// caBundle that does not parse.
func selfSigned(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// The webhook heals its Secret with a right that names that Secret only.
func TestTheWebhookMayMakeItsSecretAndNoOther(t *testing.T) {
	webhook := mustBe(t, "system:serviceaccount:plumbline-system:plumbline-webhook", "system:serviceaccounts")
	secret := func(name string) *corev1apply.SecretApplyConfiguration {
		return corev1apply.Secret(name, rendered.Namespace).WithData(map[string][]byte{"ca.crt": []byte("a")})
	}
	if err := webhook.Apply(t.Context(), secret("plumbline-webhook-tls"), client.FieldOwner("plumbline-webhook")); err != nil {
		t.Errorf("applying the Secret that is absent: %v", err)
	}
	if err := webhook.Apply(t.Context(), secret("plumbline-redis"), client.FieldOwner("plumbline-webhook")); !apierrors.IsForbidden(err) {
		t.Errorf("applying another Secret = %v, want forbidden", err)
	}
	posted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "plumbline-webhook-tls", Namespace: rendered.Namespace}}
	if err := webhook.Create(t.Context(), posted); !apierrors.IsForbidden(err) {
		t.Errorf("a plain create, which carries no name = %v, want forbidden", err)
	}
	if err := webhook.List(t.Context(), &corev1.SecretList{}, client.InNamespace(rendered.Namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("listing all Secrets = %v, want forbidden", err)
	}
	own := client.MatchingFields{"metadata.name": "plumbline-webhook-tls"}
	if err := webhook.List(t.Context(), &corev1.SecretList{}, client.InNamespace(rendered.Namespace), own); err != nil {
		t.Errorf("listing its own Secret by name: %v", err)
	}
}
