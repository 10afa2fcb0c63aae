// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// serve answers each path with a text, a path without one with 503, and counts requests.
func serve(t *testing.T, answers map[string]string) (identity.API, *int) {
	t.Helper()
	requests := new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests++
		text, is := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if !is {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	api, err := identity.NewAPI(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return api, requests
}

func TestTheKeysOfAnAPIServer(t *testing.T) {
	known, err := json.Marshal(jose.JSONWebKey{Key: newKey().Public(), KeyID: "k1", Use: "sig"})
	if err != nil {
		t.Fatal(err)
	}
	const configuration, jwks = "/.well-known/openid-configuration", "/openid/v1/jwks"
	issued, keys := `{"issuer":"`+issuer+`"}`, `{"keys":[{"kty":"new"},`+string(known)+`]}`
	for name, test := range map[string]struct {
		answers map[string]string
		want    string // of the error
	}{
		"a key of a kind that is not known beside another": {map[string]string{configuration: issued, jwks: keys}, ""},
		"no issuer":                {map[string]string{jwks: keys}, configuration},
		"no keys":                  {map[string]string{configuration: issued}, jwks},
		"keys that cannot be read": {map[string]string{configuration: issued, jwks: "{"}, jwks},
	} {
		t.Run(name, func(t *testing.T) {
			api, _ := serve(t, test.answers)
			from, got, err := api.Keys(t.Context())
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want an error about %s", err, test.want)
				}
				return
			}
			if err != nil || from != issuer || len(got) != 1 || got[0].KeyID != "k1" {
				t.Errorf("got %q, %v, %v", from, got, err)
			}
		})
	}
}

func TestAReviewIsAskedForOnce(t *testing.T) {
	const path = "/apis/authentication.k8s.io/v1/tokenreviews"
	good := `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true}}`
	for name, test := range map[string]struct {
		answers map[string]string
		want    bool
	}{
		"it is answered":                      {map[string]string{path: good}, true},
		"it is to be asked for a while later": {nil, false},
		"its answer quotes the token":         {map[string]string{path: `{"kind":"secret-token"`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			api, requests := serve(t, test.answers)
			status, err := api.Review(t.Context(), "secret-token", identity.Audience)
			if status.Authenticated != test.want || (err == nil) != test.want || *requests != 1 {
				t.Errorf("authenticated %t, %v, after %d requests", status.Authenticated, err, *requests)
			}
			if err != nil && strings.Contains(err.Error(), "secret-token") {
				t.Errorf("the error quotes the token: %v", err)
			}
		})
	}
}

func TestAReviewNamesNoAudienceForThatOfTheAPIServer(t *testing.T) {
	for audience, want := range map[string][]string{"": nil, "a": {"a"}} {
		var asked authenticationv1.TokenReview
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1"}`))
		}))
		defer server.Close()
		api, err := identity.NewAPI(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := api.Review(t.Context(), "token", audience); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(asked.Spec.Audiences, want) || asked.Spec.Token != "token" {
			t.Errorf("%q: asked for %q of %q", audience, asked.Spec.Audiences, asked.Spec.Token)
		}
	}
}

func TestKeysAreReadAgainAfterFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		v := c.verifier(identity.Limits{})
		c.run(web, true)
		token := c.mint(web, "k1")
		for _, step := range []struct {
			after time.Duration
			reads int
		}{{0, 1}, {5*time.Minute - 1, 1}, {1, 2}} {
			c.wait(step.after)
			if _, err := v.Verify(t.Context(), token); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := len(c.reads); got != step.reads {
				t.Errorf("%s later the keys were read %d times, want %d", step.after, got, step.reads)
			}
		}
	})
}

func TestWhyTheKeysCannotBeReadIsSaid(t *testing.T) {
	c := newCluster()
	c.noKeys = true
	if err := c.verifier(identity.Limits{}).ReadKeys(t.Context()); !errors.Is(err, errAway) {
		t.Errorf("got %v, want %v", err, errAway)
	}
}

func TestTokensOfMoreThan8KiBAreNotReviewed(t *testing.T) {
	for bytes, want := range map[int]identity.Reason{8 << 10: identity.ReasonRefused, 8<<10 + 1: identity.ReasonMalformed} {
		c := newCluster()
		_, err := c.verifier(identity.Limits{}).Verify(t.Context(), strings.Repeat("a", bytes))
		if got := identity.ReasonOf(err); got != want {
			t.Errorf("%d bytes: %q, want %q", bytes, got, want)
		}
	}
}
