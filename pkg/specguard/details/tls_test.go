// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// authority is a certificate that vouches for itself as 127.0.0.1.
func authority(t *testing.T, dir, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// startTLS runs a redis-server that speaks TLS alone, and gives its address.
func startTLS(t *testing.T, certificate, key string, options ...string) string {
	t.Helper()
	port := strconv.Itoa(freeport.For(t))
	address := net.JoinHostPort("127.0.0.1", port)
	server := child.Bind(exec.Command("redis-server", append([]string{"--port", "0", "--tls-port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(),
		"--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no"}, options...)...))
	if err := server.Start(); err != nil {
		t.Fatalf("starting redis-server (install the package redis-server): %v", err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it has nothing to save
		_ = server.Wait()
	})
	eventually(t, "redis-server listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return address
}

func TestRecordsTravelByTLSToAServerThatIsKnown(t *testing.T) {
	dir := t.TempDir()
	certificate, key := authority(t, dir, "redis")
	stranger, _ := authority(t, dir, "stranger")
	address := startTLS(t, certificate, key)
	known := filepath.Join(dir, "ca.crt")
	adopt := func(path string) {
		t.Helper()
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(known, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	adopt(stranger)
	client := NewClient(Config{Address: address, TLS: &TLS{CAFile: known}, CallBudget: 5 * time.Second})
	t.Cleanup(func() { _ = client.Close() })

	err := client.Ping(context.Background()).Err()
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) || !neverSent(err) {
		t.Fatalf("a server that a stranger vouches for gave %v, want an unknown authority before anything was sent", err)
	}
	w := NewWriter(client, "t", 16, discard())
	run(t, w)
	w.Enqueue(record(1))
	eventually(t, "the failure shows", func() bool { return testutil.ToFloat64(w.metrics.up) == 0 })

	adopt(certificate)
	eventually(t, "the record that waited is written, without a restart", func() bool { return testutil.ToFloat64(w.metrics.written) == 1 })
	if got := uids(mustNext(t, NewReader(client, "t"), "")); len(got) != 1 || got[0] != "u1" {
		t.Errorf("read %v", got)
	}
}

func TestAnAuthorityThatCannotBeReadIsToldAndNothingIsSent(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(empty, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"a file that is missing": "/nope", "a file without a certificate": empty} {
		t.Run(name, func(t *testing.T) {
			client := NewClient(Config{Address: "127.0.0.1:1", TLS: &TLS{CAFile: file}})
			defer func() { _ = client.Close() }()
			if err := client.Ping(t.Context()).Err(); err == nil || !neverSent(err) {
				t.Errorf("gave %v", err)
			}
		})
	}
}

func TestAServerThatAsksForACertificateGetsIt(t *testing.T) {
	dir := t.TempDir()
	certificate, key := authority(t, dir, "redis")
	own, ownKey := authority(t, dir, "client")
	address := startTLS(t, certificate, key, "--tls-auth-clients", "yes", "--tls-ca-cert-file", own)
	for name, test := range map[string]struct {
		tls  TLS
		want bool
	}{
		"with the certificate":                {TLS{CAFile: certificate, CertificateFile: own, KeyFile: ownKey}, true},
		"without one":                         {TLS{CAFile: certificate}, false},
		"with a certificate of another":       {TLS{CAFile: certificate, CertificateFile: certificate, KeyFile: key}, false},
		"with a certificate that is not read": {TLS{CAFile: certificate, CertificateFile: own, KeyFile: "/nope"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := NewClient(Config{Address: address, TLS: &test.tls, CallBudget: 5 * time.Second})
			defer func() { _ = client.Close() }()
			if err := client.Ping(t.Context()).Err(); (err == nil) != test.want {
				t.Errorf("gave %v", err)
			}
		})
	}
}
