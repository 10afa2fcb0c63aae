// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRunRefusesWhatCannotWork(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":           {[]string{"--nonsense"}, "nonsense"},
		"an argument":               {[]string{"now"}, "now"},
		"a lease for two things":    {[]string{"--certificate-lease-name=plumbline-xds"}, "--certificate-lease-name"},
		"an address without a port": {[]string{"--address=here"}, "--address"},
		"a kubeconfig that is not":  {[]string{"--kubeconfig=" + filepath.Join(t.TempDir(), "none")}, "--kubeconfig"},
		"an address that is taken":  {[]string{"--address=" + taken(t), "--kubeconfig=" + unreachable(t)}, "listening for proxies"},
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
	for _, flag := range []string{"-address", "-tls-secret", "-certificate-settle", "-metrics-address"} {
		if !strings.Contains(out.String(), flag) {
			t.Errorf("the help does not name %s", flag)
		}
	}
}

func TestRunWaitsForTheAPIServerUntilToldToStop(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var out, log strings.Builder
	err := run(ctx, []string{
		"--kubeconfig=" + unreachable(t), "--address=127.0.0.1:0", "--metrics-address=", "--health-address=",
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

// taken is an address that somebody else listens on.
func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // nobody calls it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func file(t *testing.T, directory, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
