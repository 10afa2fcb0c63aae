// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// servingProcess is the binary in the role serve, with the account and the authority that the chart gives it.
type servingProcess struct {
	*server.Process
	start func() *server.Process
	base  string
	http  *http.Client
}

func startServingProcess(t testing.TB) *servingProcess {
	t.Helper()
	directory := t.TempDir()
	must(t, server.Build(t.Context(), directory, "assessor"))
	own := serveConfig(t)
	kubeconfig := filepath.Join(directory, "kubeconfig")
	must(t, apiserver.WriteKubeconfig(kubeconfig, own, &clientcmdapi.AuthInfo{Token: own.BearerToken}))
	port, err := freeport.Claim()
	must(t, err)
	host := "localhost:" + strconv.Itoa(port)
	p := &servingProcess{base: "https://" + host + "/api/v1/", start: func() *server.Process {
		t.Helper()
		started, err := server.Start(filepath.Join(directory, "assessor"), "--role="+serve.Role, "--kubeconfig="+kubeconfig, "--namespace="+rendered.Namespace,
			"--api-address=127.0.0.1:"+strconv.Itoa(port), "--api-hosts="+host, "--api-certificate-settle=1s", "--api-drain-delay=0s")
		must(t, err)
		t.Cleanup(func() { must(t, started.Kill()) })
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		must(t, started.Ready(ctx))
		return started
	}}
	p.Process = p.start()
	return p
}

// trust reads the authority that the process publishes for its callers.
func (p *servingProcess) trust(t testing.TB) {
	t.Helper()
	roots := x509.NewCertPool()
	poll.Until(t, patience, "the authority of the API is published", func() error {
		published := &corev1.ConfigMap{}
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: rendered.Namespace, Name: serve.CAConfigMap}, published); err != nil {
			return err
		}
		if !roots.AppendCertsFromPEM([]byte(published.Data["ca.crt"])) {
			return fmt.Errorf("it has no certificate: %v", published.Data)
		}
		return nil
	})
	connections := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	t.Cleanup(connections.CloseIdleConnections)
	p.http = &http.Client{Transport: connections}
}

// ask sends a request, and reads the answer into an object.
func (p *servingProcess) ask(t *testing.T, method, path, token, body string, into any) (code int, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.base+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "once")
	}
	response, err := p.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, json.NewDecoder(response.Body).Decode(into)
}

// A process that is killed right after a write forgets the answer, and the next one finds the object by the key.
func TestTheProcessServesAndARepeatAfterAKillStoresNoSecondObject(t *testing.T) {
	p := startServingProcess(t)
	p.trust(t)
	var me struct{ User string }
	if code, err := p.ask(t, http.MethodGet, "whoami", tokenOf(author), "", &me); err != nil || code != http.StatusOK || me.User != userOf(author) {
		t.Fatalf("whoami: %d %v %+v\n%s", code, err, me, p.Said())
	}
	const policy = `{"name":"of-process","environmentName":"production","trigger":"immediate","action":"reconcile","strategy":"rolling"}`
	var first, second struct{ ID string }
	if code, err := p.ask(t, http.MethodPost, "remediation/policies", tokenOf(author), policy, &first); err != nil || code != http.StatusCreated {
		t.Fatalf("the first request: %d %v\n%s", code, err, p.Said())
	}
	must(t, p.Kill())
	p.http.CloseIdleConnections()
	p.Process = p.start()
	if code, err := p.ask(t, http.MethodPost, "remediation/policies", tokenOf(author), policy, &second); err != nil || code != http.StatusCreated || second.ID != first.ID {
		t.Errorf("the repeat: %d %v, object %s, want %s\n%s", code, err, second.ID, first.ID, p.Said())
	}
	if code, err := p.ask(t, http.MethodPost, "remediation/policies", tokenOf(viewer), policy, &map[string]any{}); err != nil || code != http.StatusForbidden {
		t.Errorf("a viewer: %d %v", code, err)
	}
	stored := &v1alpha1.RemediationPolicyList{}
	must(t, admin.List(t.Context(), stored))
	named := 0
	for i := range stored.Items {
		if string(stored.Items[i].UID) == first.ID {
			named++
		}
	}
	if named != 1 {
		t.Errorf("%d policies have the id %s", named, first.ID)
	}
	if said := p.Said(); strings.Contains(said, tokenOf(author)) {
		t.Errorf("the log has a token: %s", said)
	}
}
