// SPDX-License-Identifier: Apache-2.0

package sendonce

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// errSent keeps a transport from sending a request twice.
var errSent = errors.New("the headers of the request were sent")

// NewRequest makes a request that a transport does not repeat once it has written the headers.
//
// A connection of HTTP/2 may take no more requests (GOAWAY, RFC 9113 §6.8) between its choice and the first header.
// The transport has sent no byte of the request then, and may take another connection.
func NewRequest(ctx context.Context, method, url, body string) (*http.Request, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	// A reader without a name for its size: the transport cannot read it again by itself.
	read := func() io.ReadCloser { return io.NopCloser(io.MultiReader(strings.NewReader(body))) }
	request, err := http.NewRequestWithContext(ctx, method, url, read())
	if err != nil {
		return nil, err
	}
	request.GetBody = func() (io.ReadCloser, error) {
		if sent.Load() {
			return nil, errSent
		}
		return read(), nil
	}
	return request, nil
}
