// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const day = 24 * time.Hour

var secretKey = client.ObjectKey{Namespace: rendered.Namespace, Name: "plumbline-webhook-tls"}

// pair is a certificate and its key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue makes a serving certificate of the webhook, or an authority; without a
// parent it signs itself.
func (w *world) issue(parent *pair, authority bool, from, to time.Time) *pair {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.Must(err)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	w.Must(err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "a test's " + serial.String()},
		NotBefore: from, NotAfter: to, BasicConstraintsValid: true, IsCA: authority,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"plumbline-webhook." + rendered.Namespace + ".svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signer := &pair{template, key}
	if parent != nil {
		signer = parent
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, key.Public(), signer.key)
	w.Must(err)
	certificate, err := x509.ParseCertificate(der)
	w.Must(err)
	return &pair{certificate, key}
}

func (p *pair) certificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.certificate.Raw})
}

func (w *world) keyPEM(p *pair) []byte {
	w.t.Helper()
	raw, err := x509.MarshalPKCS8PrivateKey(p.key)
	w.Must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// authority is the one of the Secret.
func (w *world) authority(data map[string][]byte) *pair {
	w.t.Helper()
	both, err := tls.X509KeyPair(data["ca.crt"], data["ca.key"])
	w.Must(err)
	return &pair{both.Leaf, both.PrivateKey.(*ecdsa.PrivateKey)}
}

func (w *world) secret() *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	w.Must(w.c.Admin.Get(w.Ctx(), secretKey, s))
	return s
}

// changeSecret writes what a function makes of the Secret's data.
func (w *world) changeSecret(change func(data map[string][]byte)) {
	w.t.Helper()
	w.Must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		s := w.secret()
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		change(s.Data)
		return w.c.Admin.Update(w.Ctx(), s)
	}))
}

func (w *world) setLeaf(data map[string][]byte, leaf *pair) {
	data["tls.crt"], data["tls.key"] = leaf.certificatePEM(), w.keyPEM(leaf)
}

// healed says that the Secret holds a certificate that is valid now, with its
// key, and that both configurations trust it.
func (w *world) healed() error {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.c.Admin.Get(w.Ctx(), secretKey, s); err != nil {
		return err
	}
	leaf, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
	if err != nil {
		return err
	}
	mutating, validating := w.bundles()
	for _, bundle := range [][]byte{mutating, validating} {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1"}); err != nil {
			return err
		}
	}
	return nil
}

// breakages are what may be wrong with certificates, clocks that were off when
// they were made included.
func breakages() map[string]func(*world) {
	now := time.Now()
	leaf := func(from, to time.Time) func(*world) {
		return func(w *world) {
			w.changeSecret(func(data map[string][]byte) { w.setLeaf(data, w.issue(w.authority(data), false, from, to)) })
		}
	}
	authority := func(from, to time.Time) func(*world) {
		return func(w *world) {
			w.changeSecret(func(data map[string][]byte) {
				ca := w.issue(nil, true, from, to)
				data["ca.crt"], data["ca.key"] = ca.certificatePEM(), w.keyPEM(ca)
				w.setLeaf(data, w.issue(ca, false, from, to))
			})
		}
	}
	return map[string]func(*world){
		"the Secret is deleted": func(w *world) {
			w.Must(w.c.Admin.Delete(w.Ctx(), w.secret()))
		},
		"the Secret is emptied": func(w *world) { w.changeSecret(func(data map[string][]byte) { clear(data) }) },
		"the Secret holds garbage": func(w *world) {
			w.changeSecret(func(data map[string][]byte) {
				for key := range data {
					data[key] = []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
				}
			})
		},
		"the key is that of another certificate": func(w *world) {
			w.changeSecret(func(data map[string][]byte) {
				data["tls.key"] = w.keyPEM(w.issue(nil, false, now, now.Add(day)))
			})
		},
		"the certificate has expired":                             leaf(now.Add(-2*day), now.Add(-day)),
		"the certificate begins tomorrow":                         leaf(now.Add(day), now.Add(2*day)),
		"the authority has expired":                               authority(now.Add(-2*day), now.Add(-day)),
		"the authority begins tomorrow":                           authority(now.Add(day), now.Add(100*day)),
		"the bundle is emptied":                                   func(w *world) { w.setBundle(nil) },
		"the bundle is somebody else's, and the Secret untouched": func(w *world) { w.setBundle(w.issue(nil, true, now, now.Add(day)).certificatePEM()) },
	}
}

func TestABrokenCertificateThatNobodySawHealsAtTheStartAndIsCountedUntilThen(t *testing.T) {
	w := shared.newWorld(t)
	h := w.webhook()
	h.guarded()
	w.Deploy(ci, "web")
	n := 0
	for name, breakIt := range breakages() {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			h.world = w
			w.Must(h.Kill())
			breakIt(w)
			opened := w.failOpen()
			n++
			w.SetImage(ci, "web", fmt.Sprintf("registry.example/next:%d", n))
			if missed := w.failOpen() - opened; missed < 1 {
				t.Errorf("%v calls were counted as without an answer", missed)
			}
			h.start()
			h.awaitServing()
			w.Eventually("the certificates are as they should be", w.healed)
			n++
			w.SetImage(ci, "web", fmt.Sprintf("registry.example/next:%d", n))
			if got, want := w.stampOf("web"), w.hashOf("web"); got != want {
				t.Errorf("stamp %q, the stored object's hash is %q", got, want)
			}
		})
	}
}

// A leaf and an authority that are fine stay in service while the Secret is put
// right. The bundles are another matter: while they do not vouch for what is
// served, calls are lost, and the loss is counted.
func TestACertificateThatIsBrokenUnderARunningWebhookHealsAndLosesNoCall(t *testing.T) {
	w := shared.newWorld(t)
	h := w.webhook()
	h.guarded()
	w.Deploy(ci, "web")
	n := 0
	for name, breakIt := range breakages() {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			h.world = w
			opened := w.failOpen()
			breakIt(w)
			w.Eventually("the certificates are as they should be, under writes", func() error {
				n++
				w.SetImage(ci, "web", fmt.Sprintf("registry.example/next:%d", n))
				return w.healed()
			})
			h.awaitServing()
			missed := w.failOpen() - opened
			if missed != 0 && !strings.HasPrefix(name, "the bundle") {
				t.Errorf("%v calls were lost", missed)
			}
			n++
			w.SetImage(ci, "web", fmt.Sprintf("registry.example/next:%d", n))
			if got, want := w.stampOf("web"), w.hashOf("web"); got != want {
				t.Errorf("stamp %q, the stored object's hash is %q", got, want)
			}
		})
	}
}

// With cert-manager the webhook writes nothing, so it cannot help itself.
func TestAnExpiredCertificateThatNobodyRenewsIsSaidAndCountedAndTheNextOneNeedsNoRestart(t *testing.T) {
	w := shared.newWorld(t)
	now := time.Now()
	ca := w.issue(nil, true, now.Add(-time.Hour), now.Add(day))
	store := func(life time.Duration) {
		leaf := w.issue(ca, false, now.Add(-time.Hour), time.Now().Add(life))
		w.changeSecret(func(data map[string][]byte) { w.setLeaf(data, leaf) })
	}
	w.prepareSecret()
	store(time.Hour)
	// Connections end soon, so that the API server meets the certificate anew.
	h := w.webhookTrusting(ca.certificatePEM(), "--certificate-mode=CertManager", "--connection-age=1s")
	w.assessor("")
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.untilAuthorized("web", 1)
	started := w.metric(h.Process, "process_start_time_seconds")
	store(6 * time.Second) // valid still when it is loaded, or it is not taken
	w.Eventually("readiness says that the certificate has expired", func() error {
		code, body, err := h.Get(w.Ctx(), h.Health, "/readyz")
		if err == nil && (code != http.StatusServiceUnavailable || !strings.Contains(body, "expired")) {
			err = errors.New("which is something else")
		}
		if err != nil {
			return fmt.Errorf("it says %d %q, %w", code, body, err)
		}
		return nil
	})
	if at := w.metric(h.Process, "plumbline_certificate_expiry_timestamp_seconds"); at > float64(time.Now().Unix()) || at == 0 {
		t.Errorf("the metric says that it expires at %v", at)
	}
	opened, n := w.failOpen(), 0
	w.Eventually("the API server refuses the certificate", func() error {
		n++
		w.SetImage(alice, "web", fmt.Sprintf("%s%d", evilImage, n))
		if missed := w.failOpen() - opened; missed < 1 {
			return fmt.Errorf("%v calls were counted as without an answer", missed)
		}
		return nil
	})
	w.comes(h.Process, moreThan(0), "plumbline_admission_handshake_errors_total", `reason="certificate_rejected"`)
	w.UntilIs("web", evil)

	store(time.Hour)
	w.ready(h.Process)
	h.awaitServing()
	w.SetImage(alice, "web", evilImage+"-again")
	if got, want := w.stampOf("web"), w.hashOf("web"); got != want {
		t.Errorf("stamp %q, the stored object's hash is %q", got, want)
	}
	if at := w.metric(h.Process, "process_start_time_seconds"); at != started {
		t.Error("the process was restarted")
	}
}

// prepareSecret makes the Secret empty, and leaves an empty one for the next test.
func (w *world) prepareSecret() {
	w.t.Helper()
	empty := func() error {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name}}
		if err := client.IgnoreNotFound(w.c.Admin.Delete(w.background(), s.DeepCopy())); err != nil {
			return err
		}
		return w.c.Admin.Create(w.background(), s)
	}
	w.Must(empty())
	w.t.Cleanup(func() {
		if err := empty(); err != nil {
			w.t.Error(err)
		}
	})
}
