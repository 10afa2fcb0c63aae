// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/internal/serve/oidc"
	"github.com/plumbline-dev/plumbline/internal/serve/session"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	chromium "github.com/plumbline-dev/plumbline/test/harness/browser"
	"github.com/plumbline-dev/plumbline/test/harness/console"
	"github.com/plumbline-dev/plumbline/test/harness/issuer"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// trustIssuers writes the issuers that the API server trusts, as JSON. The API server reads the file anew when it changes.
func trustIssuers(path, issuers string) error {
	return os.WriteFile(path, []byte(`{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": `+issuers+`}`), 0o600)
}

// sessionKeys are keys of the test.
func sessionKeys(t *testing.T) *session.Keys {
	t.Helper()
	keys, err := session.ParseKeys([]byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))))
	must(t, err)
	return keys
}

// A person with a real browser logs in with a token, sees what the token may read and is refused in words, and logs out.
func TestAPersonLogsInWithATokenAndLogsOut(t *testing.T) {
	s := startServeFor(t, func(clock.PassiveClock) *serve.Sessions { return &serve.Sessions{Keys: sessionKeys(t)} })
	p := planIn(t, tenant, "behind-login")
	s.awaitPlan(t, p)
	path, base := "/plans/"+tenant+"/"+p.Name, strings.Replace(s.base, "localhost", "127.0.0.1", 1)
	b := chromium.Start(t, "--ignore-certificate-errors") // the certificate is that of the test
	b.Open(base + "/")
	b.Await("<h1>Log in</h1>")
	b.Focus("#login input[name=token]")
	b.Type(tokenOf(viewer))
	b.Press(chromium.Enter)
	b.Await("<h1>Fleet</h1>", "Served in the cluster with your own rights.")
	if got := b.Eval("document.cookie"); got != "" {
		t.Errorf("a script reads the cookies %q", got)
	}
	b.Open(base + path)
	b.Await("You may not patch remediationplans in namespace shop: the ClusterRole plumbline-plan-operator has this right.", "The page is read anew every 5 seconds.")
	complainsAboutNothing(t, b)
	// The form is sent past the barred button.
	b.Eval(`document.querySelector("#cancel button").disabled = false`)
	b.Focus("#cancel input[name=reason]")
	b.Type("INC-9")
	b.Press(chromium.Enter)
	b.Await(`role="alert"`, "you may not patch RemediationPlan in namespace shop", `value="INC-9"`)
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	if p.Spec.Control != (v1alpha1.PlanControl{}) {
		t.Errorf("stored %+v", p.Spec.Control)
	}
	b.Focus("#logout button")
	b.Press(chromium.Enter)
	b.Await("<h1>Log in</h1>")
	b.Open(base + path)
	b.Await("<h1>Log in</h1>", `value="`+path+`"`)
	if strings.Contains(s.log.String(), tokenOf(viewer)) {
		t.Errorf("the log has the token: %s", s.log)
	}
}

// trust has the API server take ID tokens of an issuer: each user of it is an operator.
func trust(t *testing.T, of *issuer.Issuer) {
	t.Helper()
	raw, err := json.Marshal([]any{map[string]any{
		"issuer": map[string]any{"url": of.URL, "audiences": []string{issuer.ClientID}, "certificateAuthority": string(of.CA)},
		"claimMappings": map[string]any{
			"username": map[string]any{"claim": "sub", "prefix": "oidc:"}, "groups": map[string]any{"expression": `["operators"]`},
		},
	}})
	must(t, err)
	path := filepath.Join(filepath.Dir(auditLog), "authentication.yaml")
	must(t, trustIssuers(path, string(raw)))
	t.Cleanup(func() { must(t, trustIssuers(path, "[]")) })
}

// startServeAtIssuer starts the role for browsers whose users log in at an issuer.
func startServeAtIssuer(t *testing.T) (s *served, of *issuer.Issuer) {
	t.Helper()
	s = startServeFor(t, func(passive clock.PassiveClock) *serve.Sessions {
		of = issuer.Start(t, passive)
		provider := oidc.New(oidc.Config{Issuer: of.URL, ClientID: issuer.ClientID, ClientSecret: issuer.ClientSecret, Roots: of.Roots, Clock: passive})
		t.Cleanup(provider.Close)
		return &serve.Sessions{Keys: sessionKeys(t), Issuer: provider}
	})
	return s, of
}

// awaitTrust logs in at the issuer as soon as the API server trusts the issuer.
func (b *browser) awaitTrust(t *testing.T) {
	t.Helper()
	poll.True(t, patience, "the API server trusts the issuer", func() bool {
		code, _ := b.send(t, "/login/oidc?return=/whoami")
		return code == http.StatusOK
	})
}

// browse is a client that keeps cookies, and trusts the role and an issuer.
func (s *served) browse(t *testing.T, of *issuer.Issuer) *browser {
	t.Helper()
	roots := of.Roots.Clone()
	roots.AddCert(s.certificate)
	jar, err := cookiejar.New(nil)
	must(t, err)
	connections := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	t.Cleanup(connections.CloseIdleConnections)
	return &browser{&console.Console{Client: &http.Client{Transport: connections, Jar: jar}, Base: s.base}}
}

// A real API server trusts the issuer, so what a user of it does by the console has the name of the user.
func TestAUserOfAnIssuerActsInTheOwnName(t *testing.T) {
	s, of := startServeAtIssuer(t)
	p := planIn(t, tenant, "of-issuer")
	s.awaitPlan(t, p)
	of.LogIn("ozma")
	b := s.browse(t, of)
	// The issuer has signed the ID token, and the API server does not trust the issuer yet.
	b.Shows(t, "/login/oidc?return=/whoami", http.StatusUnauthorized, "The API server does not take the ID token of the issuer")
	trust(t, of)
	b.awaitTrust(t)
	b.Shows(t, "/whoami", http.StatusOK, "oidc:ozma", "operators")
	path := "/plans/" + tenant + "/" + p.Name
	response, err := b.PostForm(b.Base+path+"/cancel", url.Values{"reason": {"INC-9"}})
	must(t, err)
	must(t, response.Body.Close())
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	if got := p.Spec.Control; response.StatusCode != http.StatusOK || got.Verb != v1alpha1.PlanCancel || got.RequestedBy != "oidc:ozma" {
		t.Errorf("%s: stored %+v", response.Status, got)
	}
	for _, user := range audited(t, "remediationplans", p.Name) {
		if user != "oidc:ozma" {
			t.Errorf("the audit log names %s", user)
		}
	}
	asked := of.Asked("/token")
	s.pass(issuer.Lasts - 30*time.Second)
	b.Shows(t, "/whoami", http.StatusOK, "oidc:ozma")
	if got := of.Asked("/token"); got != asked+1 {
		t.Errorf("the issuer was asked for tokens %d times near the end", got-asked)
	}
	of.GoAway(true)
	s.pass(issuer.Lasts - 30*time.Second)
	b.Shows(t, "/whoami", http.StatusOK, "oidc:ozma")
	s.pass(time.Minute)
	b.Shows(t, "/whoami", http.StatusOK, "<h1>Log in</h1>")
	if strings.Contains(s.log.String(), "eyJ") {
		t.Errorf("the log has a token: %s", s.log)
	}
}

// A real browser follows the page of a logout to the issuer and back: the Content-Security-Policy lets no form lead there.
func TestAPersonLogsOutAtTheIssuer(t *testing.T) {
	s, of := startServeAtIssuer(t)
	of.LogIn("dorothy")
	trust(t, of)
	s.browse(t, of).awaitTrust(t)
	base := strings.Replace(s.base, "localhost", "127.0.0.1", 1)
	b := chromium.Start(t, "--ignore-certificate-errors") // the certificates are those of the test
	b.Open(base + "/login/oidc?return=/whoami")
	b.Await("oidc:dorothy")
	b.Focus("#logout button")
	b.Press(chromium.Enter)
	b.Await("<h1>Log in</h1>", "You are logged out here and at the issuer.")
	complainsAboutNothing(t, b)
	if got := of.Asked("/logout"); got != 1 {
		t.Errorf("the issuer was asked for a logout %d times", got)
	}
	b.Open(base + "/whoami")
	b.Await("<h1>Log in</h1>", `value="/whoami"`)
}
