// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/envoy"
)

func TestRunRefusesWhatCannotWork(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":              {[]string{"--nonsense"}, "nonsense"},
		"an argument":                  {[]string{"now"}, "now"},
		"no certificate":               {[]string{"--certificate-directory=" + t.TempDir()}, "--certificate-directory"},
		"an address without a port":    {[]string{"--address=here"}, "--address"},
		"a kubeconfig that is not":     {[]string{"--kubeconfig=" + filepath.Join(t.TempDir(), "none")}, "--kubeconfig"},
		"a certificate that is broken": {[]string{"--certificate-directory=" + broken(t), "--kubeconfig=" + unreachable(t)}, "reading the certificate"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, log strings.Builder
			if err := run(t.Context(), tc.args, &out, &log); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	var out, log strings.Builder
	if err := run(t.Context(), []string{"--help"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-address", "-certificate-directory", "-metrics-address"} {
		if !strings.Contains(out.String(), flag) {
			t.Errorf("the help does not name %s", flag)
		}
	}
}

func TestRunWaitsForTheAPIServerUntilToldToStop(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out, log strings.Builder
	err := run(ctx, []string{
		"--kubeconfig=" + unreachable(t), "--certificate-directory=" + certificates(t), "--address=127.0.0.1:0", "--metrics-address=", "--health-address=",
	}, &out, &log)
	if err != nil {
		t.Errorf("being told to stop is an error: %v", err)
	}
	if ctx.Err() == nil {
		t.Error("it ended by itself")
	}
}

// unreachable is the kubeconfig of a cluster that does not answer.
func unreachable(t *testing.T) string {
	t.Helper()
	return file(t, t.TempDir(), "kubeconfig", []byte(`{"apiVersion":"v1","kind":"Config","current-context":"x",
		"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],
		"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}`))
}

// certificates is a directory with those of a server.
func certificates(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	serving, authority := envoy.NewServing(t)
	key, err := x509.MarshalPKCS8PrivateKey(serving.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	file(t, directory, "tls.crt", authority)
	file(t, directory, "tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	return directory
}

// broken is one whose key is none.
func broken(t *testing.T) string {
	t.Helper()
	directory := certificates(t)
	file(t, directory, "tls.key", []byte("none"))
	return directory
}

func file(t *testing.T, directory, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
