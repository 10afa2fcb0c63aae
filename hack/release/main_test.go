// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/plumbline-dev/plumbline/hack/release/internal/chart"
)

// TestWhatIsWrongIsToldBeforeAnythingIsCompiled: each message says how to mend it.
func TestWhatIsWrongIsToldBeforeAnythingIsCompiled(t *testing.T) {
	noKey := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(noKey, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	helm := "helm"
	if found := os.Getenv("HELM"); found != "" {
		helm = found
	}
	cases := map[string]struct {
		args []string
		want string
	}{
		"no version":               {nil, "say VERSION=v0.1.0"},
		"a version without a v":    {[]string{"-version", "1.0.0"}, "with a v"},
		"no repository":            {[]string{"-version", "v0.1.0", "-root", t.TempDir()}, "made in a clone of the repository"},
		"an argument":              {[]string{"-version", "v0.1.0", "now"}, "take it out"},
		"a registry of a bad name": {[]string{"-version", "v0.1.0", "-dirty", "-registry", "https://ghcr.io/me"}, "want a host with a path"},
		"no Helm":                  {[]string{"-version", "v0.1.0", "-dirty", "-helm", "/nonexistent/helm"}, "calling helm version"},
		"a file that is no key":    {[]string{"-version", "v0.1.0", "-dirty", "-helm", helm, "-key", noKey}, "openssl genpkey"},
		"a key that does not exist": {
			[]string{"-version", "v0.1.0", "-dirty", "-helm", helm, "-key", filepath.Join(t.TempDir(), "absent")}, "reading the key",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dist := filepath.Join(t.TempDir(), "dist")
			args := append([]string{"-root", "../..", "-dist", dist}, tc.args...)
			if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if _, err := os.Stat(dist); !os.IsNotExist(err) {
				t.Errorf("something was written (%v)", err)
			}
		})
	}
}

func TestPin(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/library/redis"
	reference, err := name.NewTag(repository + ":8.2")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, empty.Image); err != nil {
		t.Fatal(err)
	}
	want, err := empty.Image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	got, err := pin(t.Context(), []chart.Upstream{{Name: "redis", Repository: repository, Tag: "8.2"}})
	if err != nil || got[0].Reference() != repository+"@"+want.String() {
		t.Errorf("pinned %+v (%v), want %s", got, err, want)
	}
	if _, err := pin(t.Context(), []chart.Upstream{{Name: "redis", Repository: repository, Tag: "9"}}); err == nil || !strings.Contains(err.Error(), repository+":9") {
		t.Errorf("an absent tag gives %v", err)
	}
}
