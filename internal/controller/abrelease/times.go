// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"cmp"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// Times are how long the controller waits. One that is zero is as in production.
type Times struct {
	// Acknowledged is how soon a release is looked at again that all proxies have acknowledged.
	Acknowledged time.Duration
	// Groups is how soon a release with groups is looked at again in a run, and IdleGroups otherwise.
	Groups, IdleGroups time.Duration
	// Ledger is how long this process believes its copy of the ConfigMap.
	Ledger time.Duration
	// Counts is how often counts alone are stored.
	Counts time.Duration
	// Settles is how long after the acknowledgment requests may still end that were sent
	// by the former split.
	Settles time.Duration
	// Sweep is how often it is looked for entries of Services that are gone, and KeptFor how
	// long these stay.
	Sweep, KeptFor time.Duration
}

// withDefaults has each time that is not set as in production.
func (t Times) withDefaults() Times {
	return Times{
		Groups: cmp.Or(t.Groups, 2*time.Second), IdleGroups: cmp.Or(t.IdleGroups, 15*time.Second),
		Acknowledged: cmp.Or(t.Acknowledged, 10*time.Second), Ledger: cmp.Or(t.Ledger, 5*time.Second),
		Counts: cmp.Or(t.Counts, 30*time.Second), Settles: cmp.Or(t.Settles, release.Settles),
		Sweep: cmp.Or(t.Sweep, time.Minute), KeptFor: cmp.Or(t.KeptFor, release.KeptFor),
	}
}
