// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"net/netip"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// Counts of the requests of an arm.
type Counts struct {
	// Answered have an answer, those of nginx itself included; Failed are 5xx and ClientErrors 4xx of
	// them. GivenUp are those that their client ended before the answer (499).
	Answered, Failed, ClientErrors, GivenUp uint64
	// FailedOver are those of Answered that endpoints of the stable variation answered for another one.
	FailedOver uint64
}

// Add counts one request; failedOver says that the endpoint of the answer is a backup of the arm.
func (c Counts) Add(status int, failedOver bool) Counts {
	const givenUp, client, server = 499, 400, 500
	if status == givenUp {
		c.GivenUp++
		return c
	}
	c.Answered++
	if failedOver {
		c.FailedOver++
	}
	switch {
	case status >= server:
		c.Failed++
	case status >= client:
		c.ClientErrors++
	}
	return c
}

// Since returns the requests after an earlier sum of the same lines.
func (c Counts) Since(before Counts) Counts {
	return Counts{
		c.Answered - before.Answered, c.Failed - before.Failed, c.ClientErrors - before.ClientErrors, c.GivenUp - before.GivenUp,
		c.FailedOver - before.FailedOver,
	}
}

// Backups are the endpoints of the stable variation that answer for an arm whose own endpoints are away.
type Backups map[envoyname.Slot]map[netip.AddrPort]bool

// FindBackups returns the backups of all arms. An endpoint of both variations is no backup.
func FindBackups(ports []envoyxds.Port) Backups {
	all := Backups{}
	for _, p := range ports {
		for _, a := range p.Arms {
			backups := map[netip.AddrPort]bool{}
			for _, endpoint := range a.Failover {
				if !slices.Contains(a.Own, endpoint) {
					backups[endpoint] = true
				}
			}
			all[envoyname.Slot{Namespace: p.Namespace, Service: p.Service, Port: p.Number, Variation: a.Variation, Forced: a.Forced}] = backups
		}
	}
	return all
}
