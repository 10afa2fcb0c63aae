// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net/http"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/portforward"
)

// unreached is the problem of requests about the ports of other processes, which the server does not reach yet.
func unreached() *wire.Problem {
	return wire.NewProblem(wire.Unavailable,
		"this server does not read the records of the executor and the proxies of the discovery server: use kubectl plumbline console, and source=plan for the history of kept plans")
}

// System implements [httpapi.Processes].
func (c *Cluster) System(context.Context) (string, error) { return "", unreached() }

// Proxy implements [httpapi.Processes].
func (c *Cluster) Proxy(context.Context, portforward.Target, string, map[string]string) ([]byte, error) {
	return nil, unreached()
}

// Forward implements [httpapi.Processes] with a client that sends no request.
func (c *Cluster) Forward(portforward.Target) *http.Client {
	return &http.Client{Transport: refusing{}}
}

type refusing struct{}

// RoundTrip implements http.RoundTripper.
func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, unreached() }
