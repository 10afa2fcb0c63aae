// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// theirManager writes the Secret, and nobody else does.
const theirManager = "cert-manager"

// Somebody else makes the Secret and renews it, first by the same issuer and then by
// another one. Without a restart the certificate is served and its authority is brought
// to the namespaces; no caller that has read what is published is refused.
func TestTheCertificateOfSomebodyElse(t *testing.T) {
	rotation.Share(t, 3)
	t.Parallel() // it has a cluster of its own
	objects, err := render(t.Context(), "xds.certificate.mode=CertManager", "xds.certificate.issuerRef.name=internal")
	if err != nil {
		t.Fatal(err)
	}
	c := ownCluster(t, objects)
	args := []string{"--certificate-mode=CertManager", "--certificate-settle=6s"}
	r := c.launch(t, freeport.Address(t), "one", args...)
	s := c.shop(t, enabled)
	slice := s.service("web", backend.Start(t, "one"))
	r.says(t, "no serving certificate yet")

	issuer, other := newIssuer(t, "first"), newIssuer(t, "second")
	nameless, _ := issuer.issue(t)
	delete(nameless, "ca.crt")
	s.written(nameless)
	r.says(t, "the issuer must be one that writes it")
	data, first := issuer.issue(t)
	s.written(data)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s.must(r.Ready(ctx))
	s.bundled(string(issuer.pem))
	proxy := s.sidecar(r, "front-0", s.copied().Data[inject.CAKey], []string{"web"})
	backend.Answers(t, patience, proxy.front["web"], "200 one")
	if now, err := r.shake(t.Context(), string(issuer.pem)); err != nil || !now.Equal(first) {
		t.Fatalf("it is not the issued certificate that is served: %v", err)
	}

	renewed, second := issuer.issue(t)
	s.written(renewed)
	r.serves(t, second, string(issuer.pem))

	moved, third := other.issue(t)
	s.written(moved)
	both := s.bundled(string(other.pem), string(issuer.pem))
	proxy.project(both)
	r.serves(t, third, both)
	if !strings.Contains(r.Said(), "certs.load.postponed") {
		t.Error("the certificate of the other issuer was served before its authority was published")
	}
	proxy.project(s.bundled(string(other.pem)))
	s.move(slice, backend.Start(t, "two"))
	backend.Answers(t, patience, proxy.front["web"], "200 two")
	if strings.Contains(proxy.Said(), "config stream to plumbline-xds closed") {
		t.Error("the proxy has lost its stream meanwhile")
	}

	s.must(r.Stop())
	proxy.connected(false)
	c.startAt(t, r.address, "one", args...)
	s.move(slice, backend.Start(t, "three"))
	backend.Answers(t, patience, proxy.front["web"], "200 three")
	if proxy.refuses() {
		t.Error("the proxy has refused a certificate")
	}
	for _, f := range s.theirs().ManagedFields {
		if f.Manager != theirManager {
			t.Errorf("%s has written the Secret", f.Manager)
		}
	}
	if strings.Contains(r.Said(), "forbidden") {
		t.Errorf("a right is missing:\n%s", r.Said())
	}
}

// says waits until readiness says something.
func (r *replica) says(t *testing.T, text string) {
	t.Helper()
	poll.Until(t, patience, "readiness says "+text, func() error {
		_, body, err := r.Get(t.Context(), r.Health, "/readyz")
		if err == nil && !strings.Contains(body, text) {
			err = fmt.Errorf("it says %s", body)
		}
		return err
	})
}

// serves waits until a replica serves a certificate; until then, and with it, everybody
// who has a bundle trusts it.
func (r *replica) serves(t *testing.T, want *x509.Certificate, bundle string) {
	t.Helper()
	poll.Until(t, patience, "the new certificate is served", func() error {
		now, err := r.shake(t.Context(), bundle)
		if err != nil {
			t.Fatalf("who has the bundle does not trust what is served: %v", err)
		}
		if !now.Equal(want) {
			return errors.New("another one is")
		}
		return nil
	})
}

// bundled waits until a namespace has exactly these authorities.
func (s *shop) bundled(want ...string) (bundle string) {
	s.Helper()
	poll.Until(s.T, patience, fmt.Sprintf("%d authorities are in the namespace", len(want)), func() error {
		m := s.copied()
		if m == nil {
			return errors.New("there is no copy")
		}
		bundle = m.Data[inject.CAKey]
		if n := strings.Count(bundle, "BEGIN CERTIFICATE"); n != len(want) {
			return fmt.Errorf("there are %d", n)
		}
		for _, one := range want {
			if !strings.Contains(bundle, strings.TrimSpace(one)) {
				return errors.New("there are others")
			}
		}
		return nil
	})
	return bundle
}

func (s *shop) theirs() *corev1.Secret {
	s.Helper()
	var secret corev1.Secret
	err := s.c.admin.Get(s.Context(), client.ObjectKey{Namespace: rendered.Namespace, Name: "plumbline-xds"}, &secret)
	s.must(client.IgnoreNotFound(err))
	return &secret
}

// written has the Secret as cert-manager would write it.
func (s *shop) written(data map[string][]byte) {
	s.Helper()
	secret := s.theirs()
	secret.Data = data
	if secret.UID != "" {
		s.must(s.c.admin.Update(s.Context(), secret, client.FieldOwner(theirManager)))
		return
	}
	secret.ObjectMeta, secret.Type = system("plumbline-xds"), corev1.SecretTypeOpaque
	s.must(s.c.admin.Create(s.Context(), secret, client.FieldOwner(theirManager)))
}

// issuer stands in for one of cert-manager.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newIssuer(t *testing.T, name string) issuer {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	i := issuer{certificate: template}
	i.certificate, i.key = i.sign(t, template)
	i.pem = pemOf("CERTIFICATE", i.certificate.Raw)
	return i
}

// sign a certificate for a new key; an issuer without a key has it sign itself.
func (i issuer) sign(t *testing.T, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := i.key
	if signer == nil {
		signer = key
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, i.certificate, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}

// issue is the data of a Secret as cert-manager writes it: its keys are of the older
// SEC 1 kind by default, hence not ours.
func (i issuer) issue(t *testing.T) (data map[string][]byte, leaf *x509.Certificate) {
	t.Helper()
	leaf, key := i.sign(t, &x509.Certificate{
		DNSNames: []string{"plumbline-xds." + rendered.Namespace + ".svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"ca.crt": bytes.Clone(i.pem), "tls.crt": pemOf("CERTIFICATE", leaf.Raw), "tls.key": pemOf("EC PRIVATE KEY", raw)}, leaf
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
