// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// DefaultDeadline is how long a release waits for proxies before the status says that
// its deadline is over.
const DefaultDeadline = 10 * time.Minute

// Policy says who has to confirm what is in force, and what happens without that.
type Policy struct {
	Deadline time.Duration
	// Proceed has the release go on without laggards after the deadline.
	Proceed bool
	// Same leaves out proxies of other namespaces.
	Same bool
}

// PolicyOf reads a spec. What it does not know counts as the default.
func PolicyOf(c *v1alpha1.Confirmation) Policy {
	p := Policy{Deadline: DefaultDeadline}
	if c == nil {
		return p
	}
	if c.Deadline != nil && c.Deadline.Duration > 0 {
		p.Deadline = c.Deadline.Duration
	}
	p.Proceed, p.Same = c.OnLaggard == v1alpha1.LaggardsProceed, c.Namespaces == v1alpha1.ConfirmedBySame
	return p
}

// Standing of what is in force.
type Standing string

// The standings. A release is Ready in the first two alone.
const (
	// Confirmed: all proxies that have to have confirmed it.
	Confirmed Standing = "Confirmed"
	// Proceeded: the deadline is over, and the release goes on without laggards.
	Proceeded Standing = "Proceeded"
	// Confirming: proxies are told it, and the deadline is not over.
	Confirming Standing = "Confirming"
	// Overdue: the deadline is over, and the release waits for laggards.
	Overdue Standing = "Overdue"
	// Unrouted: no proxy is there that could confirm it.
	Unrouted Standing = "Unrouted"
	// NotYetRedirected: all proxies have confirmed it, and pods may have connections that
	// are older than the management of the Service.
	NotYetRedirected Standing = "NotYetRedirected"
	// Unobserved: which proxies have confirmed it is not known.
	Unobserved Standing = "Unobserved"
)

// StandingOf says how it stands with a sequence that was decided at a time. seen is nil
// if nobody could be asked.
func StandingOf(seen *traffic.Observation, sequence uint64, p Policy, decided, now time.Time) Standing {
	if seen == nil {
		return Unobserved
	}
	switch seen.Knowledge {
	case traffic.Proven, traffic.Accepted:
		if seen.Sequence >= sequence {
			return Confirmed
		}
	case traffic.NobodyRoutes:
		return Unrouted
	case traffic.Unknown, traffic.Contradicted:
	}
	switch {
	case len(seen.Unheard) > 0 && len(seen.Laggards) == 0:
		return Unobserved
	case len(seen.NotYetRedirected) > 0 && len(seen.Laggards) == 0:
		return NotYetRedirected
	case len(seen.Laggards) == 0 || now.Sub(decided) < p.Deadline:
		return Confirming
	case p.Proceed && seen.Confirmed > 0:
		return Proceeded
	}
	return Overdue
}
