// SPDX-License-Identifier: Apache-2.0

// Package prometheus asks a Prometheus for one number. It speaks the API for instant queries, which other
// systems offer as well. The address, the authorities and the token belong to the installation.
package prometheus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

// Timeout bounds a query, from the connection to the last byte of the answer.
const Timeout = 10 * time.Second

const (
	// evaluation bounds the time that Prometheus takes, so that its own error arrives within Timeout.
	evaluation = Timeout - time.Second
	// maxHeader of an answer, in bytes.
	maxHeader = 16 << 10
	// path of the API for instant queries.
	path = "/api/v1/query"
)

// Config says where Prometheus is.
type Config struct {
	// URL begins with https:// or http://, and can have a path before that of the API.
	URL string
	// CAFile has the authorities that the server is known by; empty: those of the system.
	CAFile string
	// TokenFile has a token that requests carry; empty for none. It needs https://.
	TokenFile string
}

// Client asks one Prometheus. It is safe for concurrent use.
type Client struct {
	config Config
	target string
	now    func() time.Time
}

// New returns a client. The error names the part of the configuration that cannot work. Files are read at each
// query, so that new contents need no restart.
func New(config Config, now func() time.Time) (*Client, error) {
	target, err := ParseURL(config.URL)
	if err != nil {
		return nil, err
	}
	if config.TokenFile != "" && target.Scheme != "https" {
		return nil, errors.New("reading the address of Prometheus: a token needs https://")
	}
	return &Client{config: config, target: target.JoinPath(path).String(), now: now}, nil
}

// ParseURL reads the address of a Prometheus: https:// or http://, without user, query and fragment.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("reading the address of Prometheus: want https:// or http://, a host, and no user, query or fragment")
	}
	return u, nil
}

// ErrUnreachable says that Prometheus gives no answer. The error of the network is wrapped beside it, for
// the log alone: that error names addresses of the installation.
var ErrUnreachable = errors.New("no answer of Prometheus")

// Query returns the one number that a query has now, within [Timeout]. An error is no data: it is a
// reason of [gates.ParsePrometheus], or wraps [ErrUnreachable].
func (c *Client) Query(ctx context.Context, promQL string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	client, err := c.connect()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	form := url.Values{"query": {promQL}, "timeout": {evaluation.String()}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.target, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("User-Agent", "plumbline")
	if c.config.TokenFile != "" {
		token, err := os.ReadFile(c.config.TokenFile)
		if err != nil {
			return 0, fmt.Errorf("%w: reading the token: %w", ErrUnreachable, err)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = response.Body.Close() }() // all that is wanted was read
	body, err := io.ReadAll(io.LimitReader(response.Body, gates.MaxPrometheusAnswer+1))
	if err != nil {
		return 0, fmt.Errorf("%w: reading the answer: %w", ErrUnreachable, err)
	}
	return gates.ParsePrometheus(response.StatusCode, body, c.now())
}

// connect returns a client for one request: queries are rare, and a connection that idles breaks at the
// wrong time.
func (c *Client) connect() (*http.Client, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.config.CAFile != "" {
		bundle, err := os.ReadFile(c.config.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities: %w", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(bundle) {
			return nil, errors.New("reading the authorities: the file has no certificate")
		}
	}
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
