// SPDX-License-Identifier: Apache-2.0

package door

import (
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/serve/oidc"
	"github.com/plumbline-dev/plumbline/test/harness/issuer"
)

// replicate opens a second replica of the door: of the same keys and the same issuer, with a memory of its own. The browser there
// has no cookies.
func (a *at) replicate() *visitor {
	a.t.Helper()
	provider := oidc.New(oidc.Config{Issuer: a.issuer.URL, ClientID: issuer.ClientID, ClientSecret: issuer.ClientSecret, Roots: a.issuer.Roots, Clock: a.Clock})
	a.t.Cleanup(provider.Close)
	other := openConsole(a.t, keys(a.t, 1), provider)
	other.Issued = a.review
	return other.visit()
}

func TestTwoTabsRefreshOnce(t *testing.T) {
	a := openAtIssuer(t)
	a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
	a.Pass(issuer.Lasts + time.Second) // the token has ended: without a refresh there is no session
	asked := a.issuer.Asked("/token")
	var tabs sync.WaitGroup
	for range 8 {
		tab := &visitor{a.opened, maps.Clone(a.jar)}
		tabs.Go(func() {
			tab.wantPage(tab.get("/whoami"), http.StatusOK, "alice")
			tab.wantPage(tab.get("/plans"), http.StatusOK)
		})
	}
	tabs.Wait()
	if got := a.issuer.Asked("/token") - asked; got != 1 {
		t.Errorf("the issuer was asked for tokens %d times", got)
	}
}

func TestARefreshThatAnotherReplicaWonKeepsTheSession(t *testing.T) {
	a := openAtIssuer(t)
	a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
	other := a.replicate()
	other.jar = maps.Clone(a.jar)
	for _, world := range []*visitor{a.visitor, other} {
		world.Pass(issuer.Lasts - 30*time.Second)
	}
	a.wantPage(a.get("/plans"), http.StatusOK)
	// The issuer takes a refresh token once. The token of the session has not ended.
	other.wantPage(other.get("/whoami"), http.StatusOK, "alice")
	if other.jar["__Host-plumbline-session"] == nil {
		t.Error("the replica that lost has removed the session")
	}
	other.jar = a.jar // the browser has one set of cookies
	other.Pass(time.Minute)
	other.wantPage(other.get("/whoami"), http.StatusOK, "alice")
}

func TestARefreshThatAnotherReplicaWonAfterTheEndOfTheTokenLeadsBack(t *testing.T) {
	a := openAtIssuer(t)
	a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
	other := a.replicate()
	other.jar = maps.Clone(a.jar)
	for _, world := range []*visitor{a.visitor, other} {
		world.Pass(issuer.Lasts + time.Second)
	}
	a.wantPage(a.get("/plans"), http.StatusOK)
	const asks = "/login?return=%2Fplans"
	other.wantLed(other.get("/plans"), asks)
	// Without the cookies of the replica that won, the page asks for a login.
	other.wantPage(other.get(asks), http.StatusOK, loginPage, "Log in at "+a.issuer.URL)
	other.jar = a.jar
	other.wantLed(other.get(asks), "/plans")
	other.wantPage(other.get("/plans"), http.StatusOK)
}
