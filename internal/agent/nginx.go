// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"syscall"

	"github.com/plumbline-dev/plumbline/internal/agent/follow"
	"github.com/plumbline-dev/plumbline/internal/connector/nginx"
	"github.com/plumbline-dev/plumbline/internal/connector/nginx/carry"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// NGINXSignals end an nginx. Its workers outlive a master that is killed, so the kernel terminates the master.
var NGINXSignals = Signals{Drain: syscall.SIGQUIT, End: syscall.SIGTERM, Orphan: syscall.SIGTERM}

// NGINX is the connector of an nginx, and counts its requests.
type NGINX struct {
	carrier *carry.Carrier
	lines   *carry.Lines
	// counted are the sums at the call of Count before.
	counted map[envoyname.Slot]nginx.Counts
}

// NewNGINX returns a connector, which counts the lines of the configuration.
func NewNGINX(c carry.Config) *NGINX {
	c.Passed = reachPoint
	return &NGINX{carrier: carry.New(c), lines: c.Lines}
}

// Kind implements [Connector].
func (*NGINX) Kind() string { return "nginx" }

// Check implements [Connector].
func (*NGINX) Check(p envoyxds.Port) error { return nginx.Check(p) }

// Prepare implements [Connector].
func (n *NGINX) Prepare(ctx context.Context, ports []envoyxds.Port) error {
	return refusalOf(n.carrier.Prepare(ctx, ports))
}

// CarryOut implements [Connector].
func (n *NGINX) CarryOut(ctx context.Context, ports []envoyxds.Port) follow.Result {
	late, err := n.carrier.CarryOut(ctx, ports)
	return resultOf(late, err)
}

// Count implements [Counter]. An nginx does not tell of requests in flight.
func (n *NGINX) Count(context.Context) (map[envoyname.Slot]Counted, error) {
	sums, _ := n.lines.Counts()
	counted := map[envoyname.Slot]Counted{}
	for slot, sum := range sums {
		c := sum.Since(n.counted[slot])
		counted[slot] = Counted{Answered: c.Answered, Failed: c.Failed, ClientErrors: c.ClientErrors, GivenUp: c.GivenUp, FailedOver: c.FailedOver}
	}
	n.counted = sums
	return counted, nil
}
