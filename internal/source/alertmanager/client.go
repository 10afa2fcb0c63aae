// SPDX-License-Identifier: Apache-2.0

// Package alertmanager asks an Alertmanager, by version 2 of its API, for the alerts that fire.
//
// An alert that is silenced, inhibited or muted fires: its cause is there, and no person is told. So the
// client asks for alerts of each state, and never looks at the state.
package alertmanager

import (
	"context"
	"net/url"

	"github.com/plumbline-dev/plumbline/internal/source"
)

// Name of the program in messages.
const Name = "Alertmanager"

// alertsPath is that of the API for alerts.
const alertsPath = "/api/v2/alerts"

// Client asks one Alertmanager. It is safe for concurrent use.
type Client struct{ client *source.Client }

// New returns a client. The error names the part of the configuration that cannot work.
func New(config source.Config) (*Client, error) {
	client, err := source.New(Name, config)
	if err != nil {
		return nil, err
	}
	return &Client{client: client}, nil
}

// Firing returns the alerts that fire and that each of the matchers selects, within [source.Timeout]. A
// matcher has the syntax of Alertmanager, such as namespace="shop". Each error is a [source.Error].
func (c *Client) Firing(ctx context.Context, matchers []string) (Answer, error) {
	answer, err := c.client.Get(ctx, alertsPath, url.Values{
		"active": {"true"}, "silenced": {"true"}, "inhibited": {"true"}, "unprocessed": {"true"}, "filter": matchers,
	})
	if err != nil {
		return Answer{}, err
	}
	return Parse(answer)
}
