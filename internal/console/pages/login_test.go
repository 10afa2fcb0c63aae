// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/console/view"
)

func TestThePageForLoggingInHasTheIssuerAndTheRefusal(t *testing.T) {
	body, err := view.RenderLogin(&view.Login{Return: "/plans?namespace=shop&phase=Running", Issuer: "https://id.example.com/realm", Error: "The API server does not know this token."})
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "login", string(body))
}

func TestThePageForLoggingInShowsHostileTextAsText(t *testing.T) {
	const hostile = "\"><script>alert(1)</script>\u202e"
	body, err := view.RenderLogin(&view.Login{Return: hostile, Issuer: hostile, Error: hostile})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(body); strings.Contains(text, "<script>") || strings.Contains(text, "\u202e") {
		t.Errorf("the page has markup: %s", text)
	}
}

func TestAPageOfAServerWithSessionsHasALogout(t *testing.T) {
	b := open(t, shop(t), alice())
	b.cluster.HasLogout = true
	checkGolden(t, "whoami-session", b.get(targets["whoami"]).Body.String())
}
