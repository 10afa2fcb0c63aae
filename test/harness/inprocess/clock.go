// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Ahead is a clock that runs as the real one does, and can be set forward; its timers
// are real. The zero value is the real time.
type Ahead struct {
	clock.RealClock
	mu sync.Mutex
	by time.Duration
}

// Now implements clock.PassiveClock.
func (a *Ahead) Now() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Add(a.by)
}

// Since implements clock.PassiveClock.
func (a *Ahead) Since(t time.Time) time.Duration { return a.Now().Sub(t) }

// Set puts the clock forward to a time.
func (a *Ahead) Set(to time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by = time.Until(to)
}

// Dates has the API server's answers carry the time of this clock, as those of a
// server that is set by it would.
func (a *Ahead) Dates(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Header.Set("Date", a.Now().UTC().Format(http.TimeFormat))
			}
			return response, err
		})
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
