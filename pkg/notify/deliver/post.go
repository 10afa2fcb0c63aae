// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// Bounds of what a receiver may answer. Nothing is learned from the body; a
// little of it is read so that a receiver that writes is not cut off.
const (
	maxResponseHeader = 16 << 10
	maxResponseBody   = 4 << 10
)

// poster makes requests to addresses that Secrets hold and egress permits.
type poster struct {
	secrets Secrets
	egress  Egress
	client  *http.Client
}

// newClient makes connections that serve one request: notifications are rare, and
// a connection that idles is one more that breaks at the wrong time.
func newClient(egress Egress, trust *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // the check of addresses would see the proxy's alone
			DialContext:            egress.dial,
			TLSClientConfig:        trust,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxResponseHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// sendSlack posts to a Slack-compatible incoming webhook.
func (n *Notifier) sendSlack(ctx context.Context, c *notify.SlackChannel, e notify.Event) *Failure {
	body, err := notify.SlackMessage(e, *c)
	if err != nil {
		return &Failure{Step: "rendering", Cause: CauseMessage}
	}
	return n.post(ctx, c.URL, body, http.Header{"Content-Type": {"application/json"}})
}

// sendWebhook posts a Standard Webhook, signed with the time of this attempt.
func (n *Notifier) sendWebhook(ctx context.Context, c *notify.WebhookChannel, e notify.Event) *Failure {
	body, err := notify.WebhookPayload(e)
	if err != nil {
		return &Failure{Step: "rendering", Cause: CauseMessage}
	}
	header, failure := n.sign(ctx, c.SigningKey, e.ID(), body)
	if failure != nil {
		return failure
	}
	return n.post(ctx, c.URL, body, header)
}

// sign returns the headers of a request that is signed with the time of this attempt.
func (p *poster) sign(ctx context.Context, ref notify.SecretRef, id string, body []byte) (http.Header, *Failure) {
	secret, failure := p.secret(ctx, ref)
	if failure != nil {
		return nil, failure
	}
	keys, err := notify.ParseSigningKeys(secret)
	if err != nil {
		return nil, &Failure{Step: "reading the signing key", Cause: CauseSecretMalformed}
	}
	now := time.Now()
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set(notify.HeaderWebhookID, id)
	header.Set(notify.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	header.Set(notify.HeaderWebhookSignature, notify.Sign(keys, id, now, body))
	return header, nil
}

// sendCloudEvent posts in the structured mode of the HTTP protocol binding.
func (n *Notifier) sendCloudEvent(ctx context.Context, c *notify.CloudEventsChannel, e notify.Event) *Failure {
	body, err := notify.CloudEvent(e, *c)
	if err != nil {
		return &Failure{Step: "rendering", Cause: CauseMessage}
	}
	header := http.Header{"Content-Type": {notify.CloudEventContentType}}
	if c.Token != nil {
		token, failure := n.secret(ctx, *c.Token)
		if failure != nil {
			return failure
		}
		if !tokenOK(token) {
			return &Failure{Step: "reading the token", Cause: CauseSecretMalformed}
		}
		header.Set("Authorization", "Bearer "+token)
	}
	return n.post(ctx, c.URL, body, header)
}

// tokenOK holds a token to the characters of RFC 6750 2.1.
func tokenOK(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"\,;`, r)
	})
}

// post makes one request and judges the answer.
func (p *poster) post(ctx context.Context, ref notify.SecretRef, body []byte, header http.Header) *Failure {
	response, failure := p.exchange(ctx, ref, body, header)
	if failure != nil {
		return failure
	}
	defer func() { _ = response.Body.Close() }() // the answer is known by its status
	_, _ = io.CopyN(io.Discard, response.Body, maxResponseBody)
	return statusFailure(response, time.Now())
}

// exchange makes one request; the caller closes the body of the response.
func (p *poster) exchange(ctx context.Context, ref notify.SecretRef, body []byte, header http.Header) (*http.Response, *Failure) {
	raw, failure := p.secret(ctx, ref)
	if failure != nil {
		return nil, failure
	}
	return p.do(ctx, http.MethodPost, raw, body, header)
}

// do makes one request to an address; the caller closes the body of the response.
func (p *poster) do(ctx context.Context, method, address string, body []byte, header http.Header) (*http.Response, *Failure) {
	target, failure := p.parseURL(address)
	if failure != nil {
		return nil, failure
	}
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, &Failure{Step: "reading the URL", Cause: CauseSecretMalformed}
	}
	header.Set("User-Agent", "plumbline")
	request.Header = header
	response, err := p.client.Do(request)
	if err != nil {
		return nil, networkFailure("posting", err)
	}
	return response, nil
}

// parseURL holds what the Secret says to a URL that may be posted to.
func (p *poster) parseURL(raw string) (string, *Failure) {
	u, err := url.Parse(raw)
	malformed := &Failure{Step: "reading the URL", Cause: CauseSecretMalformed}
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil:
		return "", malformed
	case u.Scheme == "https", u.Scheme == "http" && p.egress.PlainHTTP:
		u.Fragment = ""
		return u.String(), nil
	default:
		return "", malformed
	}
}

// statusFailure is nil for 2xx. 408, 425 and 429 may pass, as 5xx may; of the
// others a repetition gets the same answer.
func statusFailure(r *http.Response, now time.Time) *Failure {
	failure := &Failure{Step: "posting", Status: r.StatusCode}
	switch {
	case r.StatusCode >= 200 && r.StatusCode < 300:
		return nil
	case r.StatusCode >= 300 && r.StatusCode < 400:
		failure.Cause = CauseRedirect
	case r.StatusCode == http.StatusRequestTimeout, r.StatusCode == http.StatusTooEarly,
		r.StatusCode == http.StatusTooManyRequests, r.StatusCode >= 500:
		failure.Cause, failure.Retry = CauseUnavailable, true
		failure.After = notify.ParseRetryAfter(r.Header.Get("Retry-After"), now)
	default:
		failure.Cause = CauseRefused
	}
	return failure
}
