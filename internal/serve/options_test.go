// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/base64"
	"encoding/pem"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/test/harness/selfsigned"
)

func parse(t *testing.T, args ...string) *Options {
	t.Helper()
	var o Options
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &o
}

func TestOptionsThatCannotWorkAreNamed(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"the defaults":                   {nil, ""},
		"hosts":                          {[]string{"--api-hosts=plumbline.example,plumbline.example:8443,10.0.0.1,[::1]:8443"}, ""},
		"an address without a port":      {[]string{"--api-address=here"}, "--api-address"},
		"a host that is an address":      {[]string{"--api-hosts=https://plumbline.example"}, "--api-hosts"},
		"a host with a star":             {[]string{"--api-hosts=*.example"}, "--api-hosts"},
		"a Secret that is none":          {[]string{"--api-tls-secret=A B"}, "--api-tls-secret"},
		"a mode that is none":            {[]string{"--api-certificate-mode=Files"}, "--api-certificate-mode"},
		"a settle without end":           {[]string{"--api-certificate-settle=2h"}, "--api-certificate-settle"},
		"a drain that outlasts the pod":  {[]string{"--api-drain-delay=30s"}, "--api-drain-delay"},
		"keys of sessions":               {[]string{"--api-session-keys-file=keys"}, ""},
		"an issuer":                      {[]string{"--api-session-keys-file=keys", "--api-oidc-issuer=https://id.example/realm", "--api-oidc-client-id=a"}, ""},
		"an issuer without keys":         {[]string{"--api-oidc-issuer=https://id.example", "--api-oidc-client-id=a"}, "--api-session-keys-file"},
		"an issuer without a client":     {[]string{"--api-session-keys-file=keys", "--api-oidc-issuer=https://id.example"}, "--api-oidc-client-id"},
		"an issuer without TLS":          {[]string{"--api-session-keys-file=keys", "--api-oidc-issuer=http://id.example", "--api-oidc-client-id=a"}, "--api-oidc-issuer"},
		"an issuer with a query":         {[]string{"--api-session-keys-file=keys", "--api-oidc-issuer=https://id.example?a=b", "--api-oidc-client-id=a"}, "--api-oidc-issuer"},
		"a client without an issuer":     {[]string{"--api-oidc-client-id=a"}, "--api-oidc-client-id"},
		"a drain that ends before it is": {[]string{"--api-drain-delay=-1s"}, "--api-drain-delay"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			errs := parse(t, tc.args...).Validate()
			if (len(errs) > 0) != (tc.want != "") || len(errs) > 0 && !strings.HasPrefix(errs[0].Field, tc.want) {
				t.Errorf("got %v, want %q", errs, tc.want)
			}
		})
	}
}

func TestTheNamesOfTheServiceAndTheHostsAreServed(t *testing.T) {
	o := parse(t, "--api-hosts=plumbline.example:8443,10.0.0.1")
	service := []string{"plumbline-api.plumbline-system.svc", "plumbline-api.plumbline-system.svc.cluster.local", "plumbline-api.plumbline-system"}
	if diff := cmp.Diff(append(service, "plumbline.example:8443", "10.0.0.1"), o.ServedHosts("plumbline-system")); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	// A certificate is of names, whatever the port.
	if diff := cmp.Diff(append(service, "10.0.0.1", "plumbline.example"), o.Certificates("plumbline-system", "pod").Names); diff != "" {
		t.Errorf("certified (-want +got):\n%s", diff)
	}
}

func TestFilesOfSessionsAreRead(t *testing.T) {
	directory := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate := selfsigned.New(t, "issuer")
	keys, secret := write("keys", base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), write("secret", "of-the-client\n")
	roots := write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})))
	empty := write("empty", "")
	issuer := []string{"--api-oidc-issuer=https://id.example", "--api-oidc-client-id=a"}
	for name, tc := range map[string]struct {
		args      []string
		words     string // of the error
		hasIssuer bool
	}{
		"keys alone":                 {[]string{"--api-session-keys-file=" + keys}, "", false},
		"keys and an issuer":         {append(issuer, "--api-session-keys-file="+keys, "--api-oidc-client-secret-file="+secret, "--api-oidc-ca-file="+roots), "", true},
		"no file of keys":            {[]string{"--api-session-keys-file=none"}, "the keys of sessions", false},
		"an empty file of keys":      {[]string{"--api-session-keys-file=" + empty}, "there are 0 keys", false},
		"no file of the secret":      {append(issuer, "--api-session-keys-file="+keys, "--api-oidc-client-secret-file=none"), "the secret of the client", false},
		"no file of the authorities": {append(issuer, "--api-session-keys-file="+keys, "--api-oidc-ca-file=none"), "the authorities of the issuer", false},
		"authorities without any":    {append(issuer, "--api-session-keys-file="+keys, "--api-oidc-ca-file="+empty), "has no certificate", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := parse(t, tc.args...)
			if errs := o.Validate(); len(errs) > 0 {
				t.Fatal(errs)
			}
			got, err := o.Browsers.Sessions(clock.RealClock{})
			if (err != nil) != (tc.words != "") || err != nil && !strings.Contains(err.Error(), tc.words) {
				t.Fatalf("got %v, want %q", err, tc.words)
			}
			if err == nil && (got.Keys == nil || (got.Issuer != nil) != tc.hasIssuer) {
				t.Errorf("got %+v", got)
			}
		})
	}
	if got, err := parse(t).Browsers.Sessions(clock.RealClock{}); got != nil || err != nil {
		t.Errorf("without keys browsers are served: %v, %v", got, err)
	}
}
