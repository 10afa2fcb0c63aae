// SPDX-License-Identifier: Apache-2.0

package edgetraffic

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// Answer to a request.
type Answer struct {
	Status int
	// Variation is the name of the upstream that answered; empty if the proxy did.
	Variation       string
	Header, Trailer http.Header
}

// Client keeps one connection.
type Client struct {
	http.Client
	opened atomic.Int64
}

// NewClient returns a client of HTTP/1.1, whose connection ends with the test.
func NewClient(tb testing.TB) *Client { return newClient(tb, false) }

// NewHTTP2Client returns a client of HTTP/2 without TLS.
func NewHTTP2Client(tb testing.TB) *Client { return newClient(tb, true) }

func newClient(tb testing.TB, http2 bool) *Client {
	c := &Client{}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	var dialer net.Dialer
	c.Transport = &http.Transport{
		Protocols: protocols, MaxConnsPerHost: 1,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c.opened.Add(1)
			return dialer.DialContext(ctx, network, address)
		},
	}
	tb.Cleanup(c.CloseIdleConnections)
	return c
}

// Opened is how many connections were opened.
func (c *Client) Opened() int { return int(c.opened.Load()) }

// Ask sends one request to an address; headers come in pairs. The body of a POST cannot be sent twice, so a
// connection that closes under a POST is an error.
func (c *Client) Ask(tb testing.TB, method, address string, headers ...string) (Answer, error) {
	r, err := http.NewRequestWithContext(tb.Context(), method, "http://"+address+"/", http.NoBody)
	if err != nil {
		return Answer{}, err
	}
	if method == http.MethodPost {
		const body = "a body"
		r.Body, r.GetBody, r.ContentLength = io.NopCloser(strings.NewReader(body)), nil, int64(len(body))
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := c.Do(r)
	if err != nil {
		return Answer{}, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if closing := response.Body.Close(); err == nil {
		err = closing
	}
	return Answer{response.StatusCode, response.Header.Get("Variation"), response.Header, response.Trailer}, err
}
