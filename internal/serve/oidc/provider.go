// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
)

// patience bounds each request to the issuer.
const patience = 5 * time.Second

// Config describes the issuer and this client of it.
type Config struct {
	// Issuer is its URL, as ID tokens have it.
	Issuer   string
	ClientID string
	// ClientSecret is empty for a public client.
	ClientSecret string
	// Scopes are asked for beside "openid". With "offline_access" most issuers give a refresh token.
	Scopes []string
	// Roots are the authorities of the issuer's certificate; nil for those of the system.
	Roots *x509.CertPool
	Clock clock.PassiveClock
}

// Provider asks an issuer. [New] makes one.
type Provider struct {
	config Config
	client *http.Client
	found  atomic.Pointer[endpoints]
	asking singleflight.Group
}

// endpoints are those of the issuer.
type endpoints struct {
	oauth2.Endpoint
	verifier *oidc.IDTokenVerifier
	// endSession is where users log out; nil if the issuer has none.
	endSession *url.URL
}

// New makes a Provider, and sends no request.
func New(c Config) *Provider {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots}, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	return &Provider{config: c, client: &http.Client{
		Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // an endpoint is where the issuer says
	}}
}

// Issuer returns the URL of the issuer.
func (p *Provider) Issuer() string { return p.config.Issuer }

// Close ends idle connections.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Flow has the secrets of one login, which its browser keeps.
type Flow struct {
	// State is in the address by which the issuer leads back, Nonce in the ID token. Verifier proves that a code is asked for by this login (RFC 7636).
	State, Nonce, Verifier string
}

// NewFlow makes the secrets of a login.
func NewFlow() Flow {
	return Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
}

// Tokens are those that the issuer gives to a user.
type Tokens struct {
	// ID is for the API server.
	ID string
	// Refresh gets the next ID token; empty if the issuer gives none.
	Refresh string
	Subject string
	// End is that of the ID token.
	End time.Time
}

// AuthorizationURL returns the address at which the user logs in. The issuer leads back to redirect.
func (p *Provider) AuthorizationURL(ctx context.Context, redirect string, f *Flow) (string, error) {
	e, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth(e, redirect).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), nil
}

// Exchange gets the tokens of a login for its code. The ID token has the nonce of the login.
func (p *Provider) Exchange(ctx context.Context, redirect, code string, f *Flow) (*Tokens, error) {
	e, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	given, err := p.oauth(e, redirect).Exchange(p.with(ctx), code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return nil, fmt.Errorf("exchanging the code: %w", wordsOf(err))
	}
	tokens, nonce, err := p.verify(ctx, e, given)
	if err != nil {
		return nil, err
	}
	if nonce != f.Nonce {
		return nil, errors.New("verifying the ID token: its nonce is of another login")
	}
	return tokens, nil
}

// Refresh gets the next tokens of a user. The ID token is of the same subject.
func (p *Provider) Refresh(ctx context.Context, refresh, subject string) (*Tokens, error) {
	e, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	given, err := p.oauth(e, "").TokenSource(p.with(ctx), &oauth2.Token{RefreshToken: refresh}).Token()
	if err != nil {
		return nil, fmt.Errorf("refreshing the tokens: %w", wordsOf(err))
	}
	tokens, _, err := p.verify(ctx, e, given)
	if err != nil {
		return nil, err
	}
	if tokens.Subject != subject {
		return nil, errors.New("verifying the ID token: its subject is another user")
	}
	return tokens, nil
}

// EndSessionURL returns the address at which the user of an ID token logs out (OpenID Connect RP-Initiated Logout 1.0); empty if the
// issuer has none. The issuer leads back to redirect, with the state. The token may have ended.
func (p *Provider) EndSessionURL(ctx context.Context, idToken, redirect, state string) (string, error) {
	e, err := p.discover(ctx)
	if err != nil || e.endSession == nil {
		return "", err
	}
	address, query := *e.endSession, e.endSession.Query()
	for name, value := range map[string]string{
		"id_token_hint": idToken, "client_id": p.config.ClientID, "post_logout_redirect_uri": redirect, "state": state,
	} {
		query.Set(name, value)
	}
	address.RawQuery = query.Encode()
	return address.String(), nil
}

// verify checks the ID token of an answer: issuer, audience, signature and end.
func (p *Provider) verify(ctx context.Context, e *endpoints, given *oauth2.Token) (tokens *Tokens, nonce string, err error) {
	raw, _ := given.Extra("id_token").(string)
	if raw == "" {
		return nil, "", errors.New("the issuer gave no ID token")
	}
	verified, err := e.verifier.Verify(p.with(ctx), raw)
	if err != nil {
		return nil, "", fmt.Errorf("verifying the ID token: %w", err)
	}
	return &Tokens{ID: raw, Refresh: given.RefreshToken, Subject: verified.Subject, End: verified.Expiry}, verified.Nonce, nil
}

// oauth describes this client in the words of OAuth 2.0.
func (p *Provider) oauth(e *endpoints, redirect string) *oauth2.Config {
	scopes := append([]string{oidc.ScopeOpenID}, slices.DeleteFunc(slices.Clone(p.config.Scopes), func(s string) bool { return s == oidc.ScopeOpenID })...)
	return &oauth2.Config{ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, Endpoint: e.Endpoint, RedirectURL: redirect, Scopes: scopes}
}

// with has the libraries use the client of the issuer.
func (p *Provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// discover returns the endpoints of the issuer. Errors are not remembered.
func (p *Provider) discover(ctx context.Context) (*endpoints, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	result := p.asking.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return p.ask(ctx)
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the issuer: %w", context.Cause(ctx))
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*endpoints), nil //nolint:forcetypeassert // the flight has no other value
	}
}

// ask asks the issuer for its endpoints (OpenID Connect Discovery 1.0).
func (p *Provider) ask(ctx context.Context) (*endpoints, error) {
	provider, err := oidc.NewProvider(p.with(ctx), p.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("asking the issuer for its endpoints: %w", shortened(err))
	}
	var also struct {
		Methods    []string `json:"token_endpoint_auth_methods_supported"`
		EndSession string   `json:"end_session_endpoint"`
	}
	if err := provider.Claims(&also); err != nil {
		return nil, fmt.Errorf("reading the endpoints of the issuer: %w", err)
	}
	e := &endpoints{Endpoint: provider.Endpoint(), verifier: provider.Verifier(&oidc.Config{ClientID: p.config.ClientID, Now: p.config.Clock.Now})}
	// A library that finds out by itself would send a code that was refused once more.
	e.AuthStyle = oauth2.AuthStyleInHeader
	isPost := slices.Contains(also.Methods, "client_secret_post") && !slices.Contains(also.Methods, "client_secret_basic")
	if p.config.ClientSecret == "" || isPost {
		e.AuthStyle = oauth2.AuthStyleInParams
	}
	if end, err := url.Parse(also.EndSession); err == nil && end.Scheme == "https" && end.Host != "" {
		e.endSession = end
	}
	p.found.Store(e)
	return e, nil
}
