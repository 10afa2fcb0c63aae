// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Slot is what is counted apart: a variation on one port of a service.
type Slot struct {
	Namespace, Service string
	Port               uint16
	Variation          string
}

// compare is negative when a slot comes before another.
func (s Slot) compare(other Slot) int {
	if c := strings.Compare(s.Namespace, other.Namespace); c != 0 {
		return c
	}
	if c := strings.Compare(s.Service, other.Service); c != 0 {
		return c
	}
	if c := cmp.Compare(s.Port, other.Port); c != 0 {
		return c
	}
	return strings.Compare(s.Variation, other.Variation)
}

// Counter is one number of [Counts].
type Counter int

// The counters.
const (
	// Started reached an upstream; each attempt of a request is one.
	Started Counter = iota
	// Completed have a status, of the upstream or of the proxy.
	Completed
	// Class1 to Class5 are those with a status of 1xx to 5xx.
	Class1
	Class2
	Class3
	Class4
	Class5
	// TimedOut ran into the limit of the route.
	TimedOut
	// Reset were broken off by the upstream, which only HTTP/2 can say.
	Reset
	// Retried are the attempts after the first: no server has seen the one before. RetryLimit
	// are the requests whose last attempt failed as well.
	Retried
	RetryLimit
	// NoneHealthy found no endpoint, NotConnected none that takes a connection,
	// Overflowed found a circuit breaker open, and Abandoned ended before there was a
	// connection. None of them is in Started.
	NoneHealthy
	NotConnected
	Overflowed
	Abandoned
	// ConnectFailed counts connections, not requests.
	ConnectFailed
	// GRPCOK, GRPCRefused, GRPCUnavailable and GRPCFailed are calls of gRPC by what
	// they came to, see [GRPCStatus].
	GRPCOK
	GRPCRefused
	GRPCUnavailable
	GRPCFailed
	// FailedOver were served by the stable variation, since no endpoint of this one could be
	// reached. None of them is in the other numbers. Derived.
	FailedOver
	// Canceled were given up by the client before there was a status. Derived.
	Canceled
	// Failed are those of Completed that count against the variation. Derived.
	Failed

	counters
)

// GRPCStatus says what a status of gRPC counts as. A fault of the service is what
// OpenTelemetry takes for one; what else is not OK is an answer about the request, as
// is a 404.
func GRPCStatus(code int) (Counter, bool) {
	switch code {
	case 0:
		return GRPCOK, true
	case 14: // Unavailable
		return GRPCUnavailable, true
	case 2, 4, 12, 13, 15: // Unknown, DeadlineExceeded, Unimplemented, Internal, DataLoss
		return GRPCFailed, true
	case 1, 3, 5, 6, 7, 8, 9, 10, 11, 16:
		return GRPCRefused, true
	}
	return 0, false
}

// Buckets is how many there are of latencies: one for each of [Bounds], and one for
// what is above all of them.
const Buckets = 34

// Bounds are the upper bounds of the buckets in milliseconds, from 1 to 65,536, each √2
// times the one before: a quantile read from them is at most 41 % too high at every
// height.
func Bounds() []float64 {
	out := make([]float64, 0, Buckets-1)
	for half := range Buckets - 1 {
		bound := math.Ldexp(1, half/2)
		if half%2 == 1 {
			bound *= math.Sqrt2
		}
		out = append(out, bound)
	}
	return out
}

var bounds = Bounds()

// Bucket of a latency that is at most bound: the first whose own is not lower, so that
// none is told to be shorter than it was.
func Bucket(bound float64) int {
	// What is written as text and read again may differ in the last digit.
	at, _ := slices.BinarySearch(bounds, bound*(1-1e-9))
	return at
}

// numbers is how many there are in Counts.
const numbers = int(counters) + Buckets

// Counts are what happened in some time. The first are by [Counter], the others are
// latencies.
type Counts [numbers]uint64

// Add what happened in another time.
func (c *Counts) Add(other *Counts) {
	for i, n := range other {
		c[i] += n
	}
}

// Latency has a count for each bucket.
func (c *Counts) Latency() []uint64 { return c[counters:] }

// Outcomes are the requests that are over, and those of them that count against the
// variation. One that was given up is among both: of a variation that hangs there are
// no others, and what clients give up anyway they give up on all variations. Of a call
// of gRPC that fails late the failure is counted when it happens, and the call when its
// answer began; so in a short time there may be more failures than calls, and those in
// excess are left out.
func (c *Counts) Outcomes() (over, failed uint64) {
	over = c[Completed] + c[Canceled]
	return over, min(over, c[Failed]+c[Canceled])
}
