// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// failOpen is how many calls the API server gave up on.
func failOpen(t *testing.T) float64 {
	t.Helper()
	return sumSamples(t, apiServerMetrics(t), "apiserver_admission_webhook_fail_open_count")
}

func bundleCount(t *testing.T) int {
	t.Helper()
	m, err := w.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "plumbline", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := w.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "plumbline", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := m.Webhooks[0].ClientConfig.CABundle, v.Webhooks[0].ClientConfig.CABundle
	if !bytes.Equal(a, b) {
		return -1
	}
	return strings.Count(string(a), "BEGIN CERTIFICATE")
}

func secret(t *testing.T) map[string][]byte {
	t.Helper()
	s, err := w.kube.CoreV1().Secrets(ownNamespace).Get(t.Context(), "plumbline-webhook-tls", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return s.Data
}

// probe writes all the time as a dry run, and counts answers without a stamp.
type probe struct {
	mu      sync.Mutex
	sent    int
	missing int
	lastErr error
}

func startProbe(ctx context.Context, t *testing.T, p *place) (*probe, func()) {
	ctx, cancel := context.WithCancel(ctx)
	pr := &probe{}
	client := as(t, ci)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			var made *appsv1.Deployment
			made, err := client.AppsV1().Deployments(p.namespace).Create(ctx, webDeployment(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if ctx.Err() != nil {
				return
			}
			pr.mu.Lock()
			pr.sent++
			if err != nil || made.Annotations[v1alpha1.AnnotationSpecHash] == "" {
				pr.missing++
				pr.lastErr = err
			}
			pr.mu.Unlock()
		}
	})
	return pr, func() { cancel(); wg.Wait() }
}

func (pr *probe) count() (sent, missing int, err error) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	return pr.sent, pr.missing, pr.lastErr
}

func TestCertificates(t *testing.T) {
	p := newPlace(t, unchanged)
	port := freeport.For(t)
	second, err := startWebhook(port, "replica-b")
	if err != nil {
		t.Fatal(err)
	}
	defer second.stop(t)
	if err := second.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := bundleCount(t); n != 1 {
		t.Fatalf("%d authorities with two replicas, want 1", n)
	}
	if a, b := w.hook.metric("plumbline_certificate_leader"), second.metric("plumbline_certificate_leader"); a+b != 1 {
		t.Errorf("leaders: %v and %v", a, b)
	}
	if a, b := w.hook.metric("plumbline_certificate_expiry_timestamp_seconds"), second.metric("plumbline_certificate_expiry_timestamp_seconds"); a != b || a < float64(time.Now().Unix()) {
		t.Errorf("two replicas serve certificates that expire at %v and %v", a, b)
	}

	before, opened := secret(t), failOpen(t)
	pr, stop := startProbe(t.Context(), t, p)
	defer stop()
	eventually(t, "the probe runs", func() bool { sent, _, _ := pr.count(); return sent > 5 })

	if err := w.kube.CoreV1().Secrets(ownNamespace).Delete(t.Context(), "plumbline-webhook-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Secret is made again", func() bool { return secret(t) != nil })
	eventually(t, "both authorities are published", func() bool { return bundleCount(t) == 2 })
	if bytes.Equal(before["ca.key"], secret(t)["ca.key"]) {
		t.Error("the authority is still the old one")
	}
	if !bytes.Equal(before["tls.crt"], secret(t)["tls.crt"]) {
		t.Error("the serving certificate was switched before the bundle had settled")
	}

	// A GitOps tool takes the bundle away.
	patch := []byte(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`)
	stop()
	if sent, missing, err := pr.count(); missing != 0 {
		t.Errorf("%d of %d writes had no stamp; last error %v", missing, sent, err)
	}
	if n := failOpen(t) - opened; n != 0 {
		t.Errorf("the API server gave up on %v calls", n)
	}
	if _, err := w.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(t.Context(), "plumbline", "application/json-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bundle is back", func() bool { return bundleCount(t) == 2 })
}

func TestStoppingLosesNoCall(t *testing.T) {
	p := newPlace(t, unchanged)
	pr, stop := startProbe(t.Context(), t, p)
	defer stop()
	eventually(t, "the probe runs", func() bool { sent, _, _ := pr.count(); return sent > 5 })
	opened := failOpen(t)
	old := w.hook
	if err := old.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "readiness fails", func() bool { code, _, _ := old.get(old.Health, "/readyz"); return code == 503 })
	sent, _, _ := pr.count()
	eventually(t, "reviews are still answered", func() bool { n, _, _ := pr.count(); return n > sent+3 })
	stop()
	if sent, missing, err := pr.count(); missing != 0 {
		t.Errorf("%d of %d writes had no stamp while draining; last error %v", missing, sent, err)
	}
	if n := failOpen(t) - opened; n != 0 {
		t.Errorf("the API server gave up on %v calls", n)
	}
	if how, err := old.Exited(t.Context()); how != nil || err != nil {
		t.Errorf("the webhook ended with %v (%v)\n%s", how, err, old.Said())
	}
	next, err := startWebhook(old.port, "replica-c")
	if err != nil {
		t.Fatal(err)
	}
	w.hook = next
	if err := next.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// servedLeaf is the certificate that a new connection gets, checked against
// what the API server trusts.
func servedLeaf(t *testing.T, hook *process) (*x509.Certificate, error) {
	t.Helper()
	m, err := w.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "plumbline", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(m.Webhooks[0].ClientConfig.CABundle)
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", hook.port), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// reissue makes a pair like old, a day long, signed by the Secret's own
// authority, as somebody with a tool of his own would.
func reissue(t *testing.T, data map[string][]byte, old *x509.Certificate) (leaf *x509.Certificate, crt, key []byte) {
	t.Helper()
	authority, err := tls.X509KeyPair(data["ca.crt"], data["ca.key"])
	if err != nil {
		t.Fatal(err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: new(big.Int).Add(old.SerialNumber, big.NewInt(1)), Subject: old.Subject,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: old.KeyUsage, ExtKeyUsage: old.ExtKeyUsage, DNSNames: old.DNSNames, IPAddresses: old.IPAddresses,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, private.Public(), authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return leaf, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: rawKey})
}

func TestANewCertificateIsServedWithoutARestart(t *testing.T) {
	p := newPlace(t, unchanged)
	hook, opened := w.hook, failOpen(t)
	started := hook.metric("process_start_time_seconds")
	pr, stop := startProbe(t.Context(), t, p)
	defer stop()
	eventually(t, "the probe runs", func() bool { sent, _, _ := pr.count(); return sent > 5 })
	old, err := servedLeaf(t, hook)
	if err != nil {
		t.Fatal(err)
	}
	var want *x509.Certificate
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		s, err := w.kube.CoreV1().Secrets(ownNamespace).Get(t.Context(), "plumbline-webhook-tls", metav1.GetOptions{})
		if err != nil {
			return err
		}
		want, s.Data["tls.crt"], s.Data["tls.key"] = reissue(t, s.Data, old)
		_, err = w.kube.CoreV1().Secrets(ownNamespace).Update(t.Context(), s, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "new connections get the new certificate", func() bool {
		got, err := servedLeaf(t, hook)
		if err != nil {
			t.Fatalf("a handshake failed meanwhile: %v", err)
		}
		return got.SerialNumber.Cmp(want.SerialNumber) == 0
	})
	// More writers at once than before: the API server needs connections that
	// began with the new certificate.
	probes := []*probe{pr}
	for range 4 {
		more, stopMore := startProbe(t.Context(), t, p)
		defer stopMore()
		probes = append(probes, more)
	}
	for _, pr := range probes {
		sent, _, _ := pr.count()
		eventually(t, "writes go on", func() bool { n, _, _ := pr.count(); return n > sent+10 })
		if sent, missing, err := pr.count(); missing != 0 {
			t.Errorf("%d of %d writes had no stamp; last error %v", missing, sent, err)
		}
	}
	if n := failOpen(t) - opened; n != 0 {
		t.Errorf("the API server gave up on %v calls", n)
	}
	if got := hook.metric("process_start_time_seconds"); got != started || started <= 0 {
		t.Errorf("the process that serves began at %v, the one before at %v", got, started)
	}
	if got := hook.metric("plumbline_certificate_expiry_timestamp_seconds"); got != float64(want.NotAfter.Unix()) {
		t.Errorf("the metric says that the certificate expires at %v, want %v", got, want.NotAfter.Unix())
	}
}
