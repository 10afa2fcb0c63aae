// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"time"
)

// Router carries a split out, whatever moves the requests. It is one of a release;
// splits are absolute, so to apply one twice changes nothing. The contract of all routers is
// tested by package routertest.
type Router interface {
	// Capabilities returns the abilities of the router. They do not change while it runs.
	Capabilities() Capabilities
	// Validate returns the reasons why the router cannot carry out a split, those of [Capabilities.Check] among them.
	Validate(split Split) error
	// Apply has the requests of the split's Service divided so from now on, and those of a Service
	// of before not any more. A sequence, which begins with 1, is never followed by a lower one;
	// that is a [LaterError].
	Apply(ctx context.Context, split Split) error
	// Remove ends the division, so that requests go as the Service alone has them, and forgets the
	// sequence. To remove what was never applied changes nothing.
	Remove(ctx context.Context) error
	// Observe says what has become of it. An error means that nothing is known.
	Observe(ctx context.Context) (Observation, error)
	// Measure says what was counted after a cursor. An error means that nothing is known.
	Measure(ctx context.Context, since Cursor) (Measurement, error)
}

// LaterError says that a split of a later sequence was applied already.
type LaterError struct{ Sequence uint64 }

func (e *LaterError) Error() string {
	return fmt.Sprintf("%d was applied already, and no proxy goes back", e.Sequence)
}

// Knowledge is how it is known that a split is in force.
type Knowledge string

// The kinds of knowledge. Unknown and NoProxies never count as in force.
const (
	// Proven: everything that carries the split out has acknowledged it.
	Proven Knowledge = "Proven"
	// Accepted: it was taken, and whether it is carried out cannot be asked.
	Accepted Knowledge = "Accepted"
	// Unknown: somebody who has to acknowledge it has not, or was not heard of.
	Unknown Knowledge = "Unknown"
	// NoProxies: no proxy is there that could carry it out.
	NoProxies Knowledge = "NoProxies"
	// Contradicted: somebody who carries it out has another split under its sequence, or one of
	// a later sequence.
	Contradicted Knowledge = "Contradicted"
)

// Observation is what a router knows of a split.
type Observation struct {
	// Sequence is the newest one that is in force everywhere; 0 when none is.
	Sequence  uint64
	Knowledge Knowledge
	// SettledAt is when a sequence that is Accepted counts as in force: the program may be late, which the router
	// cannot see. The zero time is at once. It means nothing with other knowledge.
	SettledAt time.Time
	// Wanted is how many have to acknowledge a split, Acknowledged how many have acknowledged the
	// newest sequence that was applied.
	Wanted, Acknowledged int
	// OutOfSync are those that have not, those that wait longest first.
	OutOfSync []OutOfSync
	// Gone are those that need not acknowledge it: each is silent, and its pod or node is not
	// Ready. They are not among Wanted.
	Gone []OutOfSync
	// Around are the pods of the service's namespace.
	Around Population
	// Ahead is the sequence that the next decision has to be above for all to take it. It is 0
	// unless somebody has a split of a later sequence than the newest that was applied, as
	// after a restore of the store.
	Ahead uint64
	// Arms are the variations, in the order of the split.
	Arms []Arm
	// NotYetRedirected are proxies, as namespace/pod in order, whose pods may have kept
	// connections from before proxies knew the Service: these go past the split. While
	// there are any, Knowledge is Unknown. RedirectedAt is when time alone ends that.
	NotYetRedirected []string
	RedirectedAt     time.Time
	// Unheard are parts of the router that did not answer; what they know is missing.
	Unheard []string
	// Starved are variations that cannot have their share, whatever the program was told.
	Starved []Starved
}

// Starved says why a variation gets less than its share at a part of the router.
type Starved struct{ Part, Variation, Why string }

// IsEffective tells whether a sequence, or a later one, counts as in force: it is Proven, or Accepted and settled.
func (o *Observation) IsEffective(sequence uint64, now time.Time) bool {
	switch o.Knowledge {
	case Proven:
		return o.Sequence >= sequence
	case Accepted:
		return o.Sequence >= sequence && !now.Before(o.SettledAt)
	case Unknown, NoProxies, Contradicted:
	}
	return false
}

// Population counts the pods of a namespace that run.
type Population struct {
	// Pods are all of them, Proxied those that have a proxy, and Routing those whose proxy
	// routes requests to the service.
	Pods, Proxied, Routing int
}

// OutOfSync has not acknowledged what it should.
type OutOfSync struct {
	// Name is for people: namespace/pod of a proxy.
	Name string
	// Has is the sequence that it has acknowledged; 0 when it has none.
	Has uint64
	// Why says what is known about it.
	Why string
	// Since is when it was told, or should have been.
	Since time.Time
}

// Arm is what was seen of one variation.
type Arm struct {
	Variation string
	// Outcomes are counted over a window that ends now; nil when nothing is known.
	Outcomes *Outcomes
}

// Endpoints counts those of one variation: the ones that are ready to take requests, and all. Who
// counts them does not depend on who routes the requests. Revisions are the labels by which controllers
// tell the pods of one revision of a workload from those of another, in order.
type Endpoints struct {
	Ready, Targets int
	Revisions      []string
}

// Outcomes of requests that a split sent to a variation. Requests that were sent
// there by force are not among them.
type Outcomes struct {
	// Window is how long was counted.
	Window time.Duration
	// Completed have an answer, and Failed are those of them that count against the
	// variation.
	Completed, Failed uint64
	// InFlight have none yet.
	InFlight int64
	// Uncounted are proxies that send requests to the variation, and whose counts are missing
	// here: there was no room for these.
	Uncounted uint64
}
