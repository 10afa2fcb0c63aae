// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`

const proxies = `proxyImage: docker.io/example/envoy:1
xdsHost: plumbline-xds.plumbline-system.svc
xdsPort: 15010
`

func TestRunRefuses(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	working := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(working, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":                   {[]string{"--nope"}, "-nope"},
		"an unknown command":                {[]string{"serve"}, `unexpected argument "serve"`},
		"options that cannot work":          {[]string{"--port=0", "--log-format=xml"}, "--port"},
		"less than no handshake":            {[]string{"--max-handshakes=-1"}, "--max-handshakes"},
		"more handshakes than begin":        {[]string{"--max-handshakes=1025"}, "--max-handshakes"},
		"a kubeconfig that is none":         {[]string{"--kubeconfig=" + broken}, "reading the client configuration"},
		"a client CA that is none":          {[]string{"--kubeconfig=" + working, "--client-ca-file=" + working}, "no certificate in the client CA file"},
		"a file of proxies that is none":    {[]string{"--kubeconfig=" + working, "--inject-config=" + working}, `unknown field "contexts"`},
		"no file of proxies":                {[]string{"--inject-config=/none"}, "--inject-config"},
		"injection of nothing":              {[]string{"--injection-configuration=plumbline-inject"}, "needs --inject-config"},
		"an install test's unknown flag":    {[]string{"install-test", "--nope"}, "-nope"},
		"an install test without a cluster": {[]string{"install-test", "--kubeconfig=" + working, "--timeout=1ms"}, "the installation does not work"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			err := run(t.Context(), tc.args, &out, &errs)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err %v, want %q", err, tc.want)
			}
		})
	}
	if err := run(context.Background(), []string{"--help"}, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help gave %v", err)
	}
}

func TestCheckHash(t *testing.T) {
	body := []byte(`{"kind":"Deployment","spec":{"replicas":0}}`)
	right, err := canon.HashBody(body, canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		got  string
		body []byte
		want string // within the failure; empty: none
	}{
		"the right stamp":  {got: string(right), body: body},
		"no stamp":         {body: body, want: v1alpha1.AnnotationSpecHash + " is absent"},
		"another stamp":    {got: "pl1:sha256:00", body: body, want: "the object's hash is"},
		"an unread answer": {got: string(right), body: []byte("{"), want: "offset"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			failure := checkHash(tc.got, tc.body)
			if (failure == "") != (tc.want == "") || !strings.Contains(failure, tc.want) {
				t.Errorf("failure %q, want %q", failure, tc.want)
			}
		})
	}
	if d := installTestDeployment(); *d.Spec.Replicas != 0 || d.Kind != "Deployment" || d.APIVersion != appsv1.SchemeGroupVersion.String() {
		t.Errorf("the self test's object %+v", d)
	}
}
