// SPDX-License-Identifier: Apache-2.0

// Package servertime tells the API server's time, by the Date of its answers.
//
// What depends on the time of day must not depend on the clock of one node. A
// [Keeper] notes the time of every answer that a client gets. Date tells
// whole seconds, so the time is known to about half a second, which is well
// within what is allowed (pkg/remediate/window.MaxClockSkew). Between two answers the
// monotonic clock counts, which nobody sets.
package servertime

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// lasts is how long an answer counts.
const lasts = 5 * time.Minute

// slow is how long an answer may take and still tell the time: a request that
// took longer was stamped at some moment in between, and nobody knows which.
const slow = time.Second

// Keeper knows the API server's time.
type Keeper struct {
	clock clock.PassiveClock
	// elapsed is the time since the Keeper was made, which no setting of the clock changes.
	elapsed func() time.Duration

	mu sync.Mutex
	// told is the time of the last answer that counts, and at when that was; told is zero
	// before the first one.
	told time.Time
	at   time.Duration
}

// New makes a Keeper that has heard nothing yet. Its own clock may be wrong, and may be set.
func New(own clock.PassiveClock) *Keeper {
	began := own.Now() // of the real clock with a monotonic reading
	return &Keeper{clock: own, elapsed: func() time.Duration { return own.Since(began) }}
}

// Watch has every client that is made from config afterwards tell the time.
func (k *Keeper) Watch(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &listener{next, k} })
}

// Now is the API server's time, as far as it is known; else the own.
func (k *Keeper) Now() time.Time {
	if now, known := k.server(); known {
		return now
	}
	return k.clock.Now()
}

// Since is how long ago a time of the API server's is.
func (k *Keeper) Since(t time.Time) time.Duration { return k.Now().Sub(t) }

// Skew is how far the own clock is ahead; window.SkewUnknown when no answer told the time
// within the last minutes.
func (k *Keeper) Skew() time.Duration {
	now, known := k.server()
	if !known {
		return window.SkewUnknown
	}
	return k.clock.Now().Sub(now)
}

// server is the API server's time; false when that is not known.
func (k *Keeper) server() (time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	passed := k.elapsed() - k.at
	return k.told.Add(passed), !k.told.IsZero() && passed <= lasts
}

// note takes the Date of an answer for the time in the middle of the request.
func (k *Keeper) note(date string, sent, received time.Duration) {
	told, err := http.ParseTime(date)
	if err != nil || received-sent > slow {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	// The second that is told began at most a second ago.
	k.told, k.at = told.Add(500*time.Millisecond), sent+(received-sent)/2
}

type listener struct {
	next   http.RoundTripper
	keeper *Keeper
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := l.keeper.elapsed()
	response, err := l.next.RoundTrip(request)
	if err == nil {
		l.keeper.note(response.Header.Get("Date"), sent, l.keeper.elapsed())
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (l *listener) WrappedRoundTripper() http.RoundTripper { return l.next }
