// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// requestTimeout bounds one request, so that a hanging server is noticed; callers
// repeat.
const requestTimeout = 3 * time.Second

// maxBody bounds what is read of an answer; the objects asked for are small.
const maxBody = 4 << 20

// Client speaks to one API server as the administrator.
type Client struct {
	server string
	http   *http.Client
}

// StatusError is an answer other than 2xx.
type StatusError struct {
	Code int
	Body string
}

// Error shows the status and the beginning of the server's explanation.
func (e *StatusError) Error() string {
	return fmt.Sprintf("status %d: %.300s", e.Code, e.Body)
}

// New makes a client of the server, an https URL, from PEM encoded credentials.
func New(server string, authority, certificate, key []byte) (*Client, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("reading the authority: no certificate in it")
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}
	return &Client{server: server, http: &http.Client{Transport: transport, Timeout: requestTimeout}}, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ready reports, by a nil error, that the API server serves (its /readyz).
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodGet, "/readyz", "", nil)
	return err
}

// Exists reports, by a nil error, that the object at path exists.
func (c *Client) Exists(ctx context.Context, path string) error {
	_, err := c.do(ctx, http.MethodGet, path, "", nil)
	return err
}

// Apply creates or updates the object at path by server-side apply.
func (c *Client) Apply(ctx context.Context, path string, yaml []byte) error {
	query := url.Values{"fieldManager": {"plumbline-cluster"}, "force": {"true"}}
	_, err := c.do(ctx, http.MethodPatch, path+"?"+query.Encode(), "application/apply-patch+yaml", yaml)
	if err != nil {
		return fmt.Errorf("applying %s: %w", path, err)
	}
	return nil
}

// Condition reports, by a nil error, that the object at path has the condition
// with status True. A condition that is absent is not True.
func (c *Client) Condition(ctx context.Context, path, kind string) error {
	body, err := c.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	var object struct {
		Status struct {
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type != kind {
			continue
		}
		if condition.Status == "True" {
			return nil
		}
		return fmt.Errorf("%s is not %s: %s: %s", path, kind, condition.Reason, condition.Message)
	}
	return fmt.Errorf("%s has no condition %s yet", path, kind)
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, &StatusError{Code: response.StatusCode, Body: string(answer)}
	}
	return answer, nil
}
