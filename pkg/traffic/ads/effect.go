// SPDX-License-Identifier: Apache-2.0

package ads

// Effect is something that a Stream wants done, or has to tell.
type Effect interface{ isEffect() }

// Send a response to the proxy.
type Send struct {
	Type  Type
	Nonce string
	// Resources are new or changed ones, Removed those that are gone.
	Resources []*Resource
	Removed   []string
}

// Acked tells that the proxy has these: it has acknowledged them, or reported to have them
// when the stream began.
type Acked struct{ Resources []*Resource }

// Ahead tells that the proxy reported to have a route of a later decision than there is, or one
// that is gone; it keeps that.
type Ahead struct {
	Route   string
	Version Version
}

// Rejected tells that the proxy refuses a resource; it keeps what it had.
type Rejected struct {
	Resource *Resource
	// Message is what the proxy says about it.
	Message string
}

// Late tells that a route was sent although the proxy has not acknowledged endpoints
// of all its clusters.
type Late struct{ Route *Resource }

// Withheld tells that a proxy acknowledges no clusters any more since it was sent this
// one, which is therefore taken away from it: Envoy 1.40 waits without a bound for a
// cluster that cannot be built.
type Withheld struct{ Cluster *Resource }

// Stalled tells that a response has had no answer for long.
type Stalled struct {
	Type  Type
	Nonce string
}

// Stale tells that the proxy answered something that it was not sent, or twice.
type Stale struct {
	Type  Type
	Nonce string
}

func (Send) isEffect()     {}
func (Acked) isEffect()    {}
func (Ahead) isEffect()    {}
func (Rejected) isEffect() {}
func (Late) isEffect()     {}
func (Withheld) isEffect() {}
func (Stalled) isEffect()  {}
func (Stale) isEffect()    {}
