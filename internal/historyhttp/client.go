// SPDX-License-Identifier: Apache-2.0

package historyhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
)

// Client asks one replica of the discovery server.
type Client struct {
	// HTTP sends every request to the port of the replica's pod.
	HTTP *http.Client
}

// maxAnswer bounds the bytes of an answer: several times those of the largest series.
const maxAnswer = 4 << 20

// Read asks for the last hour of a release. A replica of before does not have the path, and so does not lead. The
// connection ends with the answer.
func (c Client) Read(ctx context.Context, of history.Release) (d Document, err error) {
	defer c.HTTP.CloseIdleConnections()
	path := Prefix + url.PathEscape(of.Namespace) + "/" + url.PathEscape(of.Name) + "/" + url.PathEscape(of.UID)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, http.NoBody)
	if err != nil {
		return d, fmt.Errorf("reading history: %w", err)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		if failed, is := errors.AsType[*url.Error](err); is {
			err = failed.Err // the address names no server
		}
		return d, fmt.Errorf("reading history: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	switch response.StatusCode {
	case http.StatusOK:
		if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&d); err != nil {
			return Document{}, fmt.Errorf("reading history: %w", err)
		}
		return d, nil
	case http.StatusNotFound:
		return d, nil
	default:
		return d, fmt.Errorf("reading history: %s", response.Status)
	}
}
