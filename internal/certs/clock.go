// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// toleratedSkew is how far our clock may be off before the API server's counts.
// Certificates are backdated by far more, and a Date header knows only seconds.
const toleratedSkew = time.Minute

// Clock tells the time by which certificates are judged, which is the API
// server's and not ours: a node whose clock is a day ahead would otherwise issue
// certificates that nobody accepts before tomorrow. The API server's time comes
// with each of its answers, in the Date header (RFC 9110 §6.6.1).
type Clock struct {
	local func() time.Time
	log   *slog.Logger
	ahead atomic.Int64 // nanoseconds that the API server is ahead of us
}

// NewClock returns a clock that agrees with ours until it hears otherwise.
func NewClock(log *slog.Logger) *Clock { return &Clock{local: time.Now, log: log} }

// Now is the time.
func (c *Clock) Now() time.Time {
	now := c.local()
	if ahead := c.Ahead(); ahead.Abs() >= toleratedSkew {
		return now.Add(ahead)
	}
	return now
}

// Ahead is how far the API server's clock is ahead of ours, about a second
// exact; negative when ours is ahead.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// Listen wraps a client's transport; rest.Config.Wrap takes it.
func (c *Clock) Listen(next http.RoundTripper) http.RoundTripper { return &listener{c, next} }

type listener struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(req)
	if err == nil {
		l.clock.hear(response.Header.Get("Date"))
	}
	return response, err
}

func (c *Clock) hear(date string) {
	at, err := http.ParseTime(date)
	if err != nil {
		return // A proxy may have dropped it; the next answer has one.
	}
	ahead := at.Sub(c.local().Truncate(time.Second))
	before := time.Duration(c.ahead.Swap(int64(ahead)))
	if (ahead.Abs() >= toleratedSkew) != (before.Abs() >= toleratedSkew) {
		c.log.Warn("certs.clock", "api_server_ahead", ahead.String(), "used", ahead.Abs() >= toleratedSkew)
	}
}
