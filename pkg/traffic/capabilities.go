// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strings"
)

// Capability names an ability of a router.
type Capability string

// The capabilities of [Capabilities], by the names that people read.
const (
	CapabilitySticky                   Capability = "Sticky"
	CapabilityAnonymousVisitors        Capability = "AnonymousVisitors"
	CapabilityHeaderMap                Capability = "HeaderMap"
	CapabilityOverride                 Capability = "Override"
	CapabilityResolution               Capability = "Resolution"
	CapabilityKnowledge                Capability = "Knowledge"
	CapabilityOutcomes                 Capability = "Outcomes"
	CapabilityInFlight                 Capability = "InFlight"
	CapabilityRollbackWithoutAPIServer Capability = "RollbackWithoutAPIServer"
)

// Capabilities are the abilities of a router. The zero value carries out no split and knows nothing.
type Capabilities struct {
	// Sticky keeps visitors on a variation by a header or a cookie, also while its share grows.
	Sticky bool
	// AnonymousVisitors gives a cookie to visitors without one, and keeps them by the cookie.
	AnonymousVisitors bool
	// HeaderMap sends certain values of a header to certain variations, before the weights.
	HeaderMap bool
	// Override sends a request to the variation that a header names, before HeaderMap.
	Override bool
	// Resolution is the smallest share above 0 that the router gives to a variation.
	Resolution Weight
	// Knowledge is the best that the router can tell of a split: Proven or Accepted.
	Knowledge Knowledge
	// Outcomes counts the requests of each variation, and those that failed.
	Outcomes bool
	// InFlight counts the requests that have no answer yet.
	InFlight bool
	// RollbackWithoutAPIServer carries out a prepared rollback while the API server is away.
	RollbackWithoutAPIServer bool
}

// FullCapabilities are all of them, each at its best.
func FullCapabilities() Capabilities {
	return Capabilities{
		Sticky: true, AnonymousVisitors: true, HeaderMap: true, Override: true, Resolution: 1, Knowledge: Proven,
		Outcomes: true, InFlight: true, RollbackWithoutAPIServer: true,
	}
}

// Lack is a capability that a split needs and a router does not have.
type Lack struct {
	Capability Capability
	// Why says which part of the split needs the capability, and the way out.
	Why string
}

// IncapableError says which capabilities a router lacks for a split. It names one at least.
type IncapableError struct{ Lacks []Lack }

func (e *IncapableError) Error() string {
	texts := make([]string, len(e.Lacks))
	for i, l := range e.Lacks {
		texts[i] = fmt.Sprintf("the router lacks the capability %s: %s", l.Capability, l.Why)
	}
	return strings.Join(texts, "; ")
}

// Check returns an [IncapableError] with each capability that a valid split needs and the router lacks; nil if
// it lacks none.
func (c Capabilities) Check(split Split) error {
	var lacks []Lack
	need := func(has bool, capability Capability, why string, args ...any) {
		if !has {
			lacks = append(lacks, Lack{capability, fmt.Sprintf(why, args...)})
		}
	}
	switch key := split.Key; key.Kind {
	case PerRequest:
	case ByHeader:
		need(c.Sticky, CapabilitySticky, "header %s would keep visitors on a variation; remove sticky from the split", key.Name)
	case ByCookie:
		need(c.Sticky, CapabilitySticky, "cookie %s would keep visitors on a variation; remove sticky from the split", key.Name)
	case ByVisitor:
		need(c.Sticky, CapabilitySticky, "cookie %s would keep visitors on a variation; remove sticky from the split", key.Name)
		need(c.AnonymousVisitors, CapabilityAnonymousVisitors, "the router would give cookie %s to visitors; keep visitors by a header or a cookie of the application", key.Name)
	default:
		need(false, CapabilitySticky, "the kind %d of a key is unknown", int(key.Kind))
	}
	need(c.HeaderMap || len(split.Match.Values) == 0, CapabilityHeaderMap, "values of header %s select variations; remove the header match from the split", split.Match.Header)
	need(c.Override || split.Override == "", CapabilityOverride, "header %s names a variation; remove the override from the split", split.Override)
	for _, share := range split.Shares {
		need(share.Weight == 0 || share.Weight >= c.smallest(), CapabilityResolution, "variation %s has %s %%, and the smallest share is %s %%; choose a larger share or 0",
			share.Variation, share.Weight.Percent(), c.smallest().Percent())
	}
	if lacks == nil {
		return nil
	}
	return &IncapableError{lacks}
}

// CheckMeasured returns an [IncapableError] if the router cannot measure a canary. Each stage of a run then waits for
// counts that never come.
func (c Capabilities) CheckMeasured() error {
	if c.Outcomes {
		return nil
	}
	return &IncapableError{[]Lack{{CapabilityOutcomes, "a stage passes by the counts of its requests; give the router a source of counts, or remove the rollout from the release"}}}
}

// smallest is the smallest share above 0. A router without a resolution gives all requests to one variation.
func (c Capabilities) smallest() Weight {
	if c.Resolution <= 0 {
		return Total
	}
	return c.Resolution
}

// Both returns the capabilities that two routers have together, when each divides a part of the requests.
func (c Capabilities) Both(other Capabilities) Capabilities {
	return Capabilities{
		Sticky:                   c.Sticky && other.Sticky,
		AnonymousVisitors:        c.AnonymousVisitors && other.AnonymousVisitors,
		HeaderMap:                c.HeaderMap && other.HeaderMap,
		Override:                 c.Override && other.Override,
		Resolution:               max(c.smallest(), other.smallest()),
		Knowledge:                c.Knowledge.Weaker(other.Knowledge),
		Outcomes:                 c.Outcomes && other.Outcomes,
		InFlight:                 c.InFlight && other.InFlight,
		RollbackWithoutAPIServer: c.RollbackWithoutAPIServer && other.RollbackWithoutAPIServer,
	}
}

// Weaker returns the one of two that says less for a split: Contradicted before Unknown, NoProxies, Accepted and
// Proven. A kind that it does not know counts as Unknown.
func (k Knowledge) Weaker(other Knowledge) Knowledge {
	if other.rank() < k.rank() {
		return other
	}
	return k
}

func (k Knowledge) rank() int {
	switch k {
	case Contradicted:
		return 0
	case Unknown:
		return 1
	case NoProxies:
		return 2
	case Accepted:
		return 3
	case Proven:
		return 4
	default:
		return 1
	}
}
