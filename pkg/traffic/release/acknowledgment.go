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

// Policy says who has to acknowledge what is in force, and what happens without that.
type Policy struct {
	Deadline time.Duration
	// Proceed has the release go on without proxies that are out of sync after the deadline.
	Proceed bool
	// Same leaves out proxies of other namespaces.
	Same bool
}

// PolicyOf reads a spec. What it does not know counts as the default.
func PolicyOf(c *v1alpha1.Acknowledgment) Policy {
	p := Policy{Deadline: DefaultDeadline}
	if c == nil {
		return p
	}
	if c.Deadline != nil && c.Deadline.Duration > 0 {
		p.Deadline = c.Deadline.Duration
	}
	p.Proceed, p.Same = c.OnTimeout == v1alpha1.TimeoutProceed, c.Namespaces == v1alpha1.AcknowledgedBySame
	return p
}

// Standing of what is in force.
type Standing string

// The standings. A release is Ready in the first two alone.
const (
	// Acknowledged: all proxies that have to have acknowledged it.
	Acknowledged Standing = "Acknowledged"
	// Proceeded: the deadline is over, and the release goes on without proxies that are out of sync.
	Proceeded Standing = "Proceeded"
	// Acknowledging: proxies are told it, and the deadline is not over.
	Acknowledging Standing = "Acknowledging"
	// Overdue: the deadline is over, and the release waits for proxies that are out of sync.
	Overdue Standing = "Overdue"
	// Unrouted: no proxy is there that could acknowledge it.
	Unrouted Standing = "Unrouted"
	// NotYetRedirected: all proxies have acknowledged it, and pods may have connections that
	// are older than the management of the Service.
	NotYetRedirected Standing = "NotYetRedirected"
	// Unobserved: which proxies have acknowledged it is not known.
	Unobserved Standing = "Unobserved"
)

// StandingOf says how it stands with a sequence that was decided at a time. seen is nil
// if nobody could be asked.
func StandingOf(seen *traffic.Observation, sequence uint64, p Policy, decided, now time.Time) Standing {
	if seen == nil {
		return Unobserved
	}
	if seen.IsEffective(sequence, now) {
		return Acknowledged
	}
	if seen.Knowledge == traffic.NoProxies {
		return Unrouted
	}
	switch {
	case len(seen.Unheard) > 0 && len(seen.OutOfSync) == 0:
		return Unobserved
	case len(seen.NotYetRedirected) > 0 && len(seen.OutOfSync) == 0:
		return NotYetRedirected
	case len(seen.OutOfSync) == 0 || now.Sub(decided) < p.Deadline:
		return Acknowledging
	case p.Proceed && seen.Acknowledged > 0:
		return Proceeded
	}
	return Overdue
}
