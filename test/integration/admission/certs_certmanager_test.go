// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// certificateAuthority stands in for a cert-manager issuer.
type certificateAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func newCertificateAuthority(t *testing.T, name string) certificateAuthority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificateAuthority{c, key, pemOf("CERTIFICATE", der)}
}

// issue is the data of a Secret as cert-manager writes it. Its keys are of the
// older PKCS #1 and SEC 1 kind by default, hence not ours.
func (a certificateAuthority) issue(t *testing.T, begin time.Time) (data map[string][]byte, leaf *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{"plumbline-webhook." + ownNamespace + ".svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: begin, NotAfter: begin.Add(12 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"ca.crt": a.pem, "tls.crt": pemOf("CERTIFICATE", der), "tls.key": pemOf("EC PRIVATE KEY", raw)}, leaf
}

// certManager stands in for cert-manager and its CA injector: it alone writes
// the Secret and the bundles of an installation of its own.
type certManager struct {
	t    *testing.T
	hook *process
}

const (
	theirSecret        = "certmanager-tls"
	theirConfiguration = "plumbline-certmanager"
	theirManager       = "cert-manager"
)

func (c certManager) write(data map[string][]byte) {
	c.t.Helper()
	s := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: theirSecret, Namespace: ownNamespace}, Type: corev1.SecretTypeTLS, Data: data,
	}
	body, err := json.Marshal(s)
	if err != nil {
		c.t.Fatal(err)
	}
	force := true
	if _, err := w.kube.CoreV1().Secrets(ownNamespace).Patch(c.t.Context(), theirSecret, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: theirManager, Force: &force}); err != nil {
		c.t.Fatal(err)
	}
}

func (c certManager) inject(bundle []byte) {
	c.t.Helper()
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}})
	if err != nil {
		c.t.Fatal(err)
	}
	opts := metav1.PatchOptions{FieldManager: theirManager}
	ar := w.kube.AdmissionregistrationV1()
	if _, err := ar.MutatingWebhookConfigurations().Patch(c.t.Context(), theirConfiguration, types.JSONPatchType, patch, opts); err != nil {
		c.t.Fatal(err)
	}
	if _, err := ar.ValidatingWebhookConfigurations().Patch(c.t.Context(), theirConfiguration, types.JSONPatchType, patch, opts); err != nil {
		c.t.Fatal(err)
	}
}

// register makes webhook configurations for one namespace, without bundle.
func (c certManager) register(namespace string, port int) {
	c.t.Helper()
	ar := w.kube.AdmissionregistrationV1()
	m, err := ar.MutatingWebhookConfigurations().Get(c.t.Context(), "plumbline", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	v, err := ar.ValidatingWebhookConfigurations().Get(c.t.Context(), "plumbline", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	only := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	at := func(path string) arv1.WebhookClientConfig {
		url := "https://127.0.0.1:" + strconv.Itoa(port) + path
		return arv1.WebhookClientConfig{URL: &url}
	}
	m.ObjectMeta = metav1.ObjectMeta{Name: theirConfiguration}
	m.Webhooks[0].Name, m.Webhooks[0].ClientConfig, m.Webhooks[0].NamespaceSelector = "theirs.plumbline.dev", at("/mutate"), only
	v.ObjectMeta = metav1.ObjectMeta{Name: theirConfiguration}
	v.Webhooks[0].Name, v.Webhooks[0].ClientConfig, v.Webhooks[0].NamespaceSelector = "theirs-verdict.plumbline.dev", at("/validate"), only
	opts := metav1.CreateOptions{FieldManager: theirManager}
	if _, err := ar.MutatingWebhookConfigurations().Create(c.t.Context(), m, opts); err != nil {
		c.t.Fatal(err)
	}
	if _, err := ar.ValidatingWebhookConfigurations().Create(c.t.Context(), v, opts); err != nil {
		c.t.Fatal(err)
	}
}

func (c certManager) remove() {
	ctx := c.t.Context()
	ar := w.kube.AdmissionregistrationV1()
	for _, err := range []error{
		ar.MutatingWebhookConfigurations().Delete(ctx, theirConfiguration, metav1.DeleteOptions{}),
		ar.ValidatingWebhookConfigurations().Delete(ctx, theirConfiguration, metav1.DeleteOptions{}),
		w.kube.CoreV1().Secrets(ownNamespace).Delete(ctx, theirSecret, metav1.DeleteOptions{}),
	} {
		if err != nil {
			c.t.Error(err)
		}
	}
}

func (c certManager) readiness() string {
	_, body, err := c.hook.get(c.hook.Health, "/readyz")
	if err != nil {
		return err.Error()
	}
	return body
}

// writers are the field managers of what cert-manager owns.
func (c certManager) writers() map[string]bool {
	c.t.Helper()
	ar := w.kube.AdmissionregistrationV1()
	m, err := ar.MutatingWebhookConfigurations().Get(c.t.Context(), theirConfiguration, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	v, err := ar.ValidatingWebhookConfigurations().Get(c.t.Context(), theirConfiguration, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := w.kube.CoreV1().Secrets(ownNamespace).Get(c.t.Context(), theirSecret, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	out := map[string]bool{}
	for _, fields := range [][]metav1.ManagedFieldsEntry{m.ManagedFields, v.ManagedFields, s.ManagedFields} {
		for _, f := range fields {
			out[f.Manager] = true
		}
	}
	return out
}

func (c certManager) serves(leaf *x509.Certificate) bool {
	conn, err := tls.Dial("tcp", "127.0.0.1:"+strconv.Itoa(c.hook.port), &tls.Config{InsecureSkipVerify: true}) // Which certificate is served is looked at, not trusted.
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].Equal(leaf)
}

func TestCertManagerWritesAndWeOnlyRead(t *testing.T) {
	p := newPlace(t, nil)
	port := freeport.For(t)
	hook, err := startWebhook(port, "replica-cm", "--certificate-mode=CertManager", "--tls-secret="+theirSecret,
		"--webhook-configuration="+theirConfiguration, "--lease-name=never-made")
	if err != nil {
		t.Fatal(err)
	}
	defer hook.stop(t)
	c := certManager{t, hook}
	says := func(text string) {
		t.Helper()
		eventually(t, "readiness says "+text, func() bool { return strings.Contains(c.readiness(), text) })
	}
	says("no serving certificate yet")

	issuer := newCertificateAuthority(t, "issuer")
	future, _ := issuer.issue(t, time.Now().Add(6*time.Hour))
	data, leaf := issuer.issue(t, time.Now().Add(-time.Minute))
	misfit, _ := issuer.issue(t, time.Now().Add(-time.Minute))
	misfit["tls.key"] = data["tls.key"]

	c.register(p.namespace, port)
	defer c.remove()
	c.write(misfit)
	says("private key does not match public key")
	c.write(future)
	c.inject(issuer.pem)
	says("not valid yet: it begins at")
	c.write(data)
	eventually(t, "the certificate is served", func() bool { return c.serves(leaf) })
	if err := hook.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}

	// It stamps, through the API server.
	p.guard(unchanged)
	eventually(t, "this webhook knows the guard", func() bool { return hook.metric("plumbline_guards") >= 1 })
	opened := failOpen(t)
	p.deploy(ci)
	if n := hook.metric("plumbline_admission_reviews_total", `handler="mutate"`, `operation="create"`); n != 1 {
		t.Errorf("%v creations were reviewed over cert-manager's certificate", n)
	}
	if _, annotations := p.live(); annotations[v1alpha1.AnnotationSpecHash] == "" {
		t.Error("no stamp")
	}

	renewed, second := issuer.issue(t, time.Now().Add(-time.Minute))
	c.write(renewed)
	eventually(t, "a renewed certificate is served without a restart", func() bool { return c.serves(second) })

	other := newCertificateAuthority(t, "other issuer")
	moved, third := other.issue(t, time.Now().Add(-time.Minute))
	c.write(moved)
	eventually(t, "the change waits for the bundle", func() bool { return strings.Contains(hook.Said(), "certs.load.postponed") })
	if !c.serves(second) {
		t.Error("a certificate is served that no caller trusts")
	}
	c.inject(other.pem)
	eventually(t, "the new issuer's certificate is served", func() bool { return c.serves(third) })
	if err := p.patch(alice, `{"spec":{"replicas":2}}`); err != nil {
		t.Fatal(err)
	}
	if n := failOpen(t) - opened; n != 0 {
		t.Errorf("the API server gave up on %v calls", n)
	}
	for manager := range c.writers() {
		if manager != theirManager {
			t.Errorf("%s wrote what is cert-manager's", manager)
		}
	}
	if _, err := w.kube.CoordinationV1().Leases(ownNamespace).Get(t.Context(), "never-made", metav1.GetOptions{}); err == nil {
		t.Error("a lease was made")
	}
}
