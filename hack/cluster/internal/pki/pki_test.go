// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func parse(t *testing.T, certificate []byte) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode(certificate)
	if block == nil || len(rest) > 0 {
		t.Fatalf("not one PEM block: %q", certificate)
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestIssue(t *testing.T) {
	authority, err := NewAuthority("test-ca", now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(Subject{
		CommonName: "system:node:n", Organizations: []string{"system:nodes"},
		DNSNames: []string{"n"}, Addresses: []netip.Addr{netip.MustParseAddr("10.192.255.2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(pair.Certificate, pair.Key); err != nil {
		t.Errorf("certificate and key do not belong together: %v", err)
	}
	certificate := parse(t, pair.Certificate)
	if diff := cmp.Diff([]string{"system:nodes"}, certificate.Subject.Organization); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate)
	cases := map[string]struct {
		at     time.Time
		host   string
		usage  x509.ExtKeyUsage
		accept bool
	}{
		"a server by name":                 {now, "n", x509.ExtKeyUsageServerAuth, true},
		"a server by address":              {now, "10.192.255.2", x509.ExtKeyUsageServerAuth, true},
		"a client":                         {now, "", x509.ExtKeyUsageClientAuth, true},
		"a clock a little behind":          {now.Add(-backdate / 2), "n", x509.ExtKeyUsageServerAuth, true},
		"another name":                     {now, "other", x509.ExtKeyUsageServerAuth, false},
		"a year and a day later":           {now.Add(lifetime + 24*time.Hour), "n", x509.ExtKeyUsageServerAuth, false},
		"a use that was not asked for":     {now, "n", x509.ExtKeyUsageCodeSigning, false},
		"a day before the cluster existed": {now.Add(-24 * time.Hour), "n", x509.ExtKeyUsageServerAuth, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := certificate.Verify(x509.VerifyOptions{
				Roots: roots, DNSName: tc.host, CurrentTime: tc.at, KeyUsages: []x509.ExtKeyUsage{tc.usage},
			})
			if (err == nil) != tc.accept {
				t.Errorf("Verify: %v, want accepted: %v", err, tc.accept)
			}
		})
	}
}

func TestAnotherAuthoritysCertificateIsNotTrusted(t *testing.T) {
	ours, err := NewAuthority("a", now)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := NewAuthority("a", now) // the same name on purpose
	if err != nil {
		t.Fatal(err)
	}
	pair, err := theirs.Issue(Subject{CommonName: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ours.Certificate)
	_, err = parse(t, pair.Certificate).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err == nil {
		t.Error("the front proxy's authority would be able to name any user")
	}
}

func TestSigningKeyIsAPair(t *testing.T) {
	pair, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := pem.Decode(pair.Certificate)
	private, _ := pem.Decode(pair.Key)
	if public == nil || private == nil || public.Type != "PUBLIC KEY" || private.Type != "EC PRIVATE KEY" {
		t.Fatalf("not PEM of the right kinds:\n%s%s", pair.Certificate, pair.Key)
	}
	key, err := x509.ParseECPrivateKey(private.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParsePKIXPublicKey(public.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if other, isECDSA := parsed.(*ecdsa.PublicKey); !isECDSA || !key.PublicKey.Equal(other) {
		t.Error("public and private key differ")
	}
}

func TestKubeconfig(t *testing.T) {
	data, err := Kubeconfig("c", "admin", "https://10.192.255.2:6443", []byte("CA"), Pair{Certificate: []byte("CERT"), Key: []byte("KEY")})
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	const expected = `{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": "https://10.192.255.2:6443", "certificate-authority-data": "Q0E="}}],
		"users": [{"name": "admin", "user": {"client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "admin"}}]}`
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(expected), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kubeconfig (-want +got):\n%s", diff)
	}
}
