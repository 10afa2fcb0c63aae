// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

// Times are how long the discovery server waits. One that is zero is as in production.
type Times struct {
	// Goodbye is how long streams have to end when the process does.
	Goodbye time.Duration
	// Window is the period whose counts are told; that of a younger split is shorter.
	Window time.Duration
	// OldConnections is how long after proxies were told of a Service pods are taken to
	// have kept connections from before, which go past a split.
	OldConnections time.Duration
	// Silence is how long a proxy whose pod or node is not Ready is unheard when it counts as gone.
	Silence time.Duration
}

// withDefaults has each time that is not set as in production.
func (t Times) withDefaults() Times {
	return Times{
		Goodbye: cmp.Or(t.Goodbye, 5*time.Second), Window: cmp.Or(t.Window, time.Minute),
		OldConnections: cmp.Or(t.OldConnections, 10*time.Minute), Silence: cmp.Or(t.Silence, acknowledged.Silence),
	}
}
