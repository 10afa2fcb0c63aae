// SPDX-License-Identifier: Apache-2.0

// Package servertime tells the API server's time, by the Date of its answers.
//
// What depends on the time of day must not depend on the clock of one node. A
// [Keeper] compares the two with every answer that a client gets. Date tells
// whole seconds, so the difference is known to about half a second, which is well
// within what is allowed (pkg/remediate/window.MaxClockSkew).
package servertime

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// lasts is how long a comparison counts: a clock may be set at any time.
const lasts = 5 * time.Minute

// slow is how long an answer may take and still tell the time: a request that
// took longer was stamped at some moment in between, and nobody knows which.
const slow = time.Second

// Keeper knows how far a clock is from the API server's.
type Keeper struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	skew     time.Duration
	measured time.Time
}

// New makes a Keeper that has not compared anything yet.
func New(own clock.PassiveClock) *Keeper { return &Keeper{clock: own} }

// Watch has every client that is made from config afterwards compare the clocks.
func (k *Keeper) Watch(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &listener{next, k} })
}

// Now is the API server's time, as far as it is known; else the own.
func (k *Keeper) Now() time.Time {
	now := k.clock.Now()
	if skew := k.Skew(); skew != window.SkewUnknown {
		return now.Add(-skew)
	}
	return now
}

// Since is how long ago a time of the API server's is.
func (k *Keeper) Since(t time.Time) time.Duration { return k.Now().Sub(t) }

// Skew is how far the own clock is ahead; window.SkewUnknown when that was not
// compared within the last minutes.
func (k *Keeper) Skew() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.measured.IsZero() || k.clock.Now().Sub(k.measured).Abs() > lasts {
		return window.SkewUnknown
	}
	return k.skew
}

// note compares the Date of an answer with the own clock at the middle of the
// request.
func (k *Keeper) note(date string, sent, received time.Time) {
	told, err := http.ParseTime(date)
	if err != nil || received.Sub(sent) > slow || received.Before(sent) {
		return
	}
	middle := sent.Add(received.Sub(sent) / 2)
	k.mu.Lock()
	defer k.mu.Unlock()
	// The second that is told began at most a second ago.
	k.skew, k.measured = middle.Sub(told.Add(500*time.Millisecond)), received
}

type listener struct {
	next   http.RoundTripper
	keeper *Keeper
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := l.keeper.clock.Now()
	response, err := l.next.RoundTrip(request)
	if err == nil {
		l.keeper.note(response.Header.Get("Date"), sent, l.keeper.clock.Now())
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (l *listener) WrappedRoundTripper() http.RoundTripper { return l.next }
