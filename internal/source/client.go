// SPDX-License-Identifier: Apache-2.0

package source

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
)

// The bounds of a request.
const (
	// Timeout bounds a request, from the connection to the last byte of the answer.
	Timeout = 10 * time.Second
	// MaxAnswer in bytes.
	MaxAnswer = 1 << 20
	// maxHeader of an answer, in bytes.
	maxHeader = 16 << 10
)

// Config says where a server is.
type Config struct {
	// URL begins with https:// or http://, and can have a path before that of the API.
	URL string
	// CAFile has the authorities that the server is known by; empty: those of the system.
	CAFile string
	// TokenFile has a token that requests carry; empty for none. It needs https://.
	TokenFile string
}

// Client asks one server. It is safe for concurrent use.
type Client struct {
	// name of the program, such as Prometheus, for messages.
	name   string
	config Config
	base   *url.URL
}

// New returns a client of the named program. The error names the part of the configuration that cannot
// work. Files are read at each request, so that new contents need no restart.
func New(name string, config Config) (*Client, error) {
	base, err := ParseURL(name, config.URL)
	if err != nil {
		return nil, err
	}
	if config.TokenFile != "" && base.Scheme != "https" {
		return nil, fmt.Errorf("reading the address of %s: a token needs https://", name)
	}
	return &Client{name: name, config: config, base: base}, nil
}

// ParseURL reads the address of the named program: https:// or http://, without user, query and fragment.
func ParseURL(name, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("reading the address of %s: want https:// or http://, a host, and no user, query or fragment", name)
	}
	return u, nil
}

// Get asks with parameters in the address.
func (c *Client) Get(ctx context.Context, path string, parameters url.Values) (Answer, error) {
	target := c.base.JoinPath(path)
	target.RawQuery = parameters.Encode()
	return c.ask(ctx, http.MethodGet, target, "")
}

// Post asks with parameters in a form, which can be longer than an address.
func (c *Client) Post(ctx context.Context, path string, parameters url.Values) (Answer, error) {
	return c.ask(ctx, http.MethodPost, c.base.JoinPath(path), parameters.Encode())
}

// ask makes one request within [Timeout]. Each error is an [Error] whose fault is Unreachable.
func (c *Client) ask(ctx context.Context, method string, target *url.URL, form string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	request, err := c.request(ctx, method, target, form)
	if err != nil {
		return Answer{}, c.unreachable("a file of the client cannot be read", err)
	}
	client, err := c.connect()
	if err != nil {
		return Answer{}, c.unreachable("a file of the client cannot be read", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, c.unreachable(describe(err), err)
	}
	defer func() { _ = response.Body.Close() }() // all that is wanted was read
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	if err != nil {
		return Answer{}, c.unreachable(describe(err), fmt.Errorf("reading the answer: %w", err))
	}
	sent, _ := http.ParseTime(response.Header.Get("Date")) // zero without one
	return Answer{name: c.name, Status: response.StatusCode, Type: response.Header.Get("Content-Type"), Time: sent, Body: body}, nil
}

func (c *Client) unreachable(why string, err error) error {
	return &Error{Unreachable, fmt.Sprintf("no answer of %s: %s", c.name, why), err}
}

func (c *Client) request(ctx context.Context, method string, target *url.URL, form string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, target.String(), strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "plumbline")
	request.Header.Set("Accept", "application/json")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if c.config.TokenFile == "" {
		return request, nil
	}
	token, err := os.ReadFile(c.config.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("reading the token: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return request, nil
}

// connect returns a client for one request: requests are rare, and a connection that idles breaks at the
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
