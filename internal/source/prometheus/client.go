// SPDX-License-Identifier: Apache-2.0

// Package prometheus asks a Prometheus for numbers. It speaks the APIs for instant queries and for range
// queries, which other systems offer as well.
//
//	[Client.Query]       one number, as gates of rollouts want
//	[Client.QueryRange]  series of a window, as assessments of effectiveness want
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

// Name of the program in messages.
const Name = "Prometheus"

const (
	// evaluation bounds the time that Prometheus takes, so that its own error arrives within
	// [source.Timeout].
	evaluation = source.Timeout - time.Second
	// instantPath is that of the API for instant queries.
	instantPath = "/api/v1/query"
)

// Client asks one Prometheus. It is safe for concurrent use.
type Client struct {
	client *source.Client
	now    func() time.Time
}

// New returns a client. The error names the part of the configuration that cannot work.
func New(config source.Config, now func() time.Time) (*Client, error) {
	client, err := source.New(Name, config)
	if err != nil {
		return nil, err
	}
	return &Client{client: client, now: now}, nil
}

// ErrUnreachable says that Prometheus gives no answer. The error of the network is wrapped beside it, for
// the log alone: that error names addresses of the installation.
var ErrUnreachable = errors.New("no answer of Prometheus")

// Query returns the one number that a query has now, within [source.Timeout]. An error is no data: it is a
// reason of [gates.ParsePrometheus], or wraps [ErrUnreachable].
func (c *Client) Query(ctx context.Context, promQL string) (float64, error) {
	answer, err := c.client.Post(ctx, instantPath, url.Values{"query": {promQL}, "timeout": {evaluation.String()}})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return gates.ParsePrometheus(answer.Status, answer.Body, c.now())
}
