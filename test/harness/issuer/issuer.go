// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/utils/clock"
)

// The client that the issuer knows.
const (
	ClientID     = "plumbline"
	ClientSecret = "secret of the client"
)

// Lasts is how long ID tokens last.
const Lasts = 5 * time.Minute

// Issuer serves until the test ends.
type Issuer struct {
	URL   string
	Roots *x509.CertPool
	// CA is the certificate of the issuer in PEM.
	CA []byte

	t     testing.TB
	clock clock.PassiveClock
	key   *ecdsa.PrivateKey

	mu sync.Mutex
	// user logs in at the next authorization; empty if the user refuses.
	user string
	// spoil changes the claims of an ID token before it is signed. signer signs in the place of the published key.
	spoil  func(claims map[string]any)
	signer *ecdsa.PrivateKey
	away   bool
	// endless says that the issuer has no logout.
	endless bool
	// codes and refreshes count once.
	codes     map[string]grant
	refreshes map[string]string
	asked     map[string]int
}

// grant is an authorization that has no tokens yet.
type grant struct{ user, nonce, challenge, redirect string }

// Start starts an issuer.
func Start(t testing.TB, passive clock.PassiveClock) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{t: t, clock: passive, key: key, signer: key, codes: map[string]grant{}, refreshes: map[string]string{}, asked: map[string]int{}, Roots: x509.NewCertPool()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.describe)
	mux.HandleFunc("GET /keys", i.publish)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.give)
	mux.HandleFunc("GET /logout", i.logOut)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.asked[r.URL.Path]++
		if i.away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	i.URL = server.URL
	i.Roots.AddCert(server.Certificate())
	i.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return i
}

// LogIn has a user log in at each authorization from now on. An empty name refuses.
func (i *Issuer) LogIn(user string) { i.set(func() { i.user = user }) }

// Spoil has ID tokens changed before they are signed; nil for none.
func (i *Issuer) Spoil(spoil func(claims map[string]any)) { i.set(func() { i.spoil = spoil }) }

// SignWith has ID tokens signed with another key than the published one; nil for the published one.
func (i *Issuer) SignWith(key *ecdsa.PrivateKey) {
	i.set(func() {
		if i.signer = key; key == nil {
			i.signer = i.key
		}
	})
}

// GoAway has the issuer answer no request from now on, or answer again.
func (i *Issuer) GoAway(away bool) { i.set(func() { i.away = away }) }

// HideLogout has the issuer describe no end_session_endpoint from now on.
func (i *Issuer) HideLogout() { i.set(func() { i.endless = true }) }

// Asked returns how often a path was asked for.
func (i *Issuer) Asked(path string) (times int) {
	i.set(func() { times = i.asked[path] })
	return times
}

func (i *Issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *Issuer) describe(w http.ResponseWriter, _ *http.Request) {
	document := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
		"code_challenge_methods_supported": []string{"S256"},
	}
	if !i.endless {
		document["end_session_endpoint"] = i.URL + "/logout?realm=test"
	}
	i.write(w, http.StatusOK, document)
}

func (i *Issuer) publish(w http.ResponseWriter, _ *http.Request) {
	i.write(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
}

// authorize leads the browser back at once: the user has no page to fill in.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	asksAll := q.Get("client_id") == ClientID && q.Get("response_type") == "code" && strings.Contains(q.Get("scope"), "openid") &&
		q.Get("state") != "" && q.Get("nonce") != "" && q.Get("code_challenge") != "" && q.Get("code_challenge_method") == "S256"
	redirect, err := url.Parse(q.Get("redirect_uri"))
	if !asksAll || err != nil || redirect.Path != "/login/callback" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}, "iss": {i.URL}}
	if i.user == "" {
		back.Set("error", "access_denied")
	} else {
		code := rand.Text()
		i.codes[code] = grant{i.user, q.Get("nonce"), q.Get("code_challenge"), q.Get("redirect_uri")}
		back.Set("code", code)
	}
	redirect.RawQuery = back.Encode()
	http.Redirect(w, r, redirect.String(), http.StatusFound)
}

// give gives tokens for a code or for a refresh token, each once.
func (i *Issuer) give(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	if secret, err := url.QueryUnescape(secret); err != nil || id != ClientID || secret != ClientSecret {
		i.write(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	var granted grant
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		code := r.PostFormValue("code")
		challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if g := i.codes[code]; g.challenge == base64.RawURLEncoding.EncodeToString(challenge[:]) && g.redirect == r.PostFormValue("redirect_uri") {
			granted = g
		}
		delete(i.codes, code)
	case "refresh_token":
		token := r.PostFormValue("refresh_token")
		granted.user = i.refreshes[token]
		delete(i.refreshes, token)
	}
	if granted.user == "" {
		i.write(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "refused: " + r.PostForm.Encode()})
		return
	}
	refresh := rand.Text()
	i.refreshes[refresh] = granted.user
	i.write(w, http.StatusOK, map[string]any{
		"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(Lasts.Seconds()), "refresh_token": refresh, "id_token": i.sign(granted.user, granted.nonce),
	})
}

// logOut ends the session of the user whose ID token is the hint, also after the end of the token (OpenID Connect RP-Initiated
// Logout 1.0), and leads back. The refresh tokens of the user count no more.
func (i *Issuer) logOut(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	redirect, err := url.Parse(q.Get("post_logout_redirect_uri"))
	if err != nil || redirect.Path != "/logout/callback" || q.Get("client_id") != ClientID || q.Get("realm") != "test" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var claims struct {
		Sub string `json:"sub"`
		Iss string `json:"iss"`
	}
	token, err := jwt.ParseSigned(q.Get("id_token_hint"), []jose.SignatureAlgorithm{jose.ES256})
	if err == nil {
		err = token.Claims(i.key.Public(), &claims)
	}
	if err != nil || claims.Iss != i.URL {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	maps.DeleteFunc(i.refreshes, func(_, user string) bool { return user == claims.Sub })
	redirect.RawQuery = url.Values{"state": {q.Get("state")}}.Encode()
	http.Redirect(w, r, redirect.String(), http.StatusFound)
}

func (i *Issuer) sign(user, nonce string) string {
	now := i.clock.Now()
	claims := map[string]any{
		"iss": i.URL, "sub": user, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(Lasts).Unix(), "jti": rand.Text(),
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if i.spoil != nil {
		i.spoil(claims)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.signer, KeyID: "1"}}, nil)
	if err != nil {
		i.t.Error(err)
		return ""
	}
	token, err := jwt.Signed(signer).Claims(maps.Clone(claims)).Serialize()
	if err != nil {
		i.t.Error(err)
	}
	return token
}

func (i *Issuer) write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that went away needs no answer
}
