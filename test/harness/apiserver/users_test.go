// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

func admin() *rest.Config {
	return &rest.Config{
		Host: "https://127.0.0.1:6443", QPS: 7,
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("authority"), CertData: []byte("certificate"), KeyData: []byte("key")},
	}
}

func TestImpersonate(t *testing.T) {
	tests := map[string]struct {
		user   string
		groups []string
		want   []string
	}{
		"a person is authenticated":       {"alice", nil, []string{"system:authenticated"}},
		"and may belong to groups":        {"alice", []string{"people"}, []string{"system:authenticated", "people"}},
		"a service account has its own":   {"system:serviceaccount:ci:deployer", nil, []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:ci"}},
		"one without a name is no danger": {"system:serviceaccount:ci", nil, []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:ci"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config := admin()
			got := apiserver.Impersonate(config, tc.user, tc.groups...)
			if diff := cmp.Diff(rest.ImpersonationConfig{UserName: tc.user, Groups: tc.want}, got.Impersonate); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if config.Impersonate.UserName != "" || got.Host != config.Host || got.QPS != config.QPS {
				t.Errorf("the configuration was changed, or not kept: %v, %v", config, got)
			}
		})
	}
}

func TestWriteKubeconfig(t *testing.T) {
	tests := map[string]struct {
		who  *clientcmdapi.AuthInfo
		want rest.Config
	}{
		"by impersonation": {
			apiserver.Impersonating(admin(), "alice", "people"),
			rest.Config{
				Impersonate:     rest.ImpersonationConfig{UserName: "alice", Groups: []string{"people"}},
				TLSClientConfig: rest.TLSClientConfig{CertData: []byte("certificate"), KeyData: []byte("key")},
			},
		},
		"by a token": {&clientcmdapi.AuthInfo{Token: "abc"}, rest.Config{BearerToken: "abc"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := apiserver.WriteKubeconfig(path, admin(), tc.who); err != nil {
				t.Fatal(err)
			}
			got, err := clientcmd.BuildConfigFromFlags("", path)
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want
			want.Host, want.CAData = "https://127.0.0.1:6443", []byte("authority")
			if diff := cmp.Diff(secrets(&want), secrets(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("where nothing can be written", func(t *testing.T) {
		err := apiserver.WriteKubeconfig("/proc/nothing/kubeconfig", admin(), &clientcmdapi.AuthInfo{})
		if err == nil || !strings.Contains(err.Error(), "writing a kubeconfig") {
			t.Errorf("got %v", err)
		}
	})
}

// secrets is what matters of a configuration; its own text hides some of it.
func secrets(c *rest.Config) map[string]any {
	return map[string]any{
		"host": c.Host, "authority": string(c.CAData), "certificate": string(c.CertData), "key": string(c.KeyData),
		"token": c.BearerToken, "user": c.Impersonate.UserName, "groups": c.Impersonate.Groups,
	}
}
