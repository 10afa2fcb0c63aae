// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/gatewayapi"
	"github.com/plumbline-dev/plumbline/internal/connector/webhook"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// measured is the router of one release, whose splits, restores and requests the metrics count.
type measured struct {
	traffic.Router
	identity
	metrics *Metrics
	now     func() time.Time

	mu sync.Mutex
	// sequence is the last one that the router took; 0 before the first one, and after a removal.
	sequence uint64
	// told is when the router took the sequence first. pending is since when the sequence is neither effective nor
	// settling; zero while it is one of these.
	told, pending time.Time
	// confirmed says that the sequence was effective once.
	confirmed bool
	refused   refusal
	held      bool
	known     traffic.Knowledge
	starved   int
	// restored is the time of the last restore that was counted.
	restored time.Time
}

// newMeasured returns the measured router of a TrafficRouter. Restores of an earlier process are counted already.
func newMeasured(router traffic.Router, of identity, metrics *Metrics, now func() time.Time) *measured {
	m := &measured{Router: router, identity: of, metrics: metrics, now: now}
	if r, tells := router.(restorer); tells {
		if all := r.Restored(); len(all) > 0 {
			m.restored = all[len(all)-1]
		}
	}
	return m
}

// refusal is the present refusal of a router; the zero refusal means that the router refuses no split.
type refusal struct {
	sequence uint64
	reason   string
}

// The reasons of refusals for which no router has a reason of its own.
const (
	reasonIncapable = "Incapable"
	reasonLater     = "LaterSequence"
	reasonRequest   = "RequestRefused"
	reasonOther     = "Other"
)

// reasonOf returns the value of a label for the error of a router.
func reasonOf(err error) string {
	if later := (*traffic.LaterError)(nil); errors.As(err, &later) {
		return reasonLater
	}
	if incapable := (*traffic.IncapableError)(nil); errors.As(err, &incapable) {
		return reasonIncapable
	}
	if route := (*gatewayapi.RefusalError)(nil); errors.As(err, &route) {
		return string(route.Reason)
	}
	return reasonOther
}

// restorer is a router that restores weights after a change of another writer.
type restorer interface {
	// Restored returns the times of the last restores, the newest one last.
	Restored() []time.Time
}

// Validate implements traffic.Router.
func (m *measured) Validate(split traffic.Split) error {
	err := m.Router.Validate(split)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.noteRefusal(split.Sequence, reasonOf(err))
	}
	return err //nolint:wrapcheck // the error is the router's
}

// Apply implements traffic.Router.
func (m *measured) Apply(ctx context.Context, split traffic.Split) error {
	err := m.Router.Apply(ctx, split)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noteRestore()
	if held := (*gatewayapi.HeldError)(nil); errors.As(err, &held) {
		if !m.held {
			m.held = true
			m.countEdit(editHeld)
		}
		return err //nolint:wrapcheck // the error is the router's
	}
	m.held = false
	if err != nil {
		m.noteRefusal(split.Sequence, reasonOf(err))
		return err //nolint:wrapcheck // as above
	}
	if m.refused.reason != reasonRequest {
		m.refused = refusal{}
	}
	if split.Sequence != m.sequence {
		m.sequence, m.told, m.pending, m.confirmed, m.known = split.Sequence, m.now(), m.now(), false, traffic.Unknown
	}
	return nil
}

// Remove implements traffic.Router.
func (m *measured) Remove(ctx context.Context) error {
	err := m.Router.Remove(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.sequence, m.told, m.pending, m.confirmed, m.known = 0, time.Time{}, time.Time{}, false, ""
		m.refused, m.held, m.starved = refusal{}, false, 0
	}
	return err //nolint:wrapcheck // the error is the router's
}

// Observe implements traffic.Router.
func (m *measured) Observe(ctx context.Context) (traffic.Observation, error) {
	seen, err := m.Router.Observe(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		seen.Knowledge = traffic.Unknown
	}
	m.noteObservation(&seen)
	return seen, err //nolint:wrapcheck // the error is the router's
}

// noteObservation keeps the result of a look. The lock is held, as in all functions below.
func (m *measured) noteObservation(seen *traffic.Observation) {
	if m.sequence == 0 {
		return
	}
	before, now := m.known, m.now()
	m.known, m.starved = seen.Knowledge, len(seen.Starved)
	switch {
	case seen.Knowledge == traffic.Accepted && seen.Sequence >= m.sequence && now.Before(seen.SettledAt):
	case !seen.IsEffective(m.sequence, now):
		if m.pending.IsZero() {
			m.pending = now
		}
		return
	case !m.confirmed:
		m.confirmed = true
		if m.metrics != nil {
			m.metrics.confirmed.WithLabelValues(m.name, m.kind).Observe(now.Sub(m.told).Seconds())
		}
	case before == traffic.Contradicted:
		if _, tells := m.Router.(restorer); !tells {
			m.countEdit(editRestored)
		}
	}
	m.pending = time.Time{}
}

// noteRestore counts the restores of a router that tells them.
func (m *measured) noteRestore() {
	router, tells := m.Router.(restorer)
	if !tells {
		return
	}
	for _, at := range router.Restored() {
		if at.After(m.restored) {
			m.restored = at
			m.countEdit(editRestored)
		}
	}
}

func (m *measured) noteRefusal(sequence uint64, reason string) {
	if is := (refusal{sequence, reason}); is != m.refused {
		m.refused = is
		if m.metrics != nil {
			m.metrics.refusals.WithLabelValues(m.name, m.kind, reason).Inc()
		}
	}
}

func (m *measured) countEdit(result string) {
	if m.metrics != nil {
		m.metrics.edits.WithLabelValues(m.name, m.kind, result).Inc()
	}
}

// noteRequest counts the end of a request to the program of the router.
func (m *measured) noteRequest(result webhook.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.metrics != nil {
		m.metrics.requests.WithLabelValues(m.name, m.kind, string(result)).Inc()
	}
	switch result {
	case webhook.Refused:
		m.noteRefusal(m.sequence, reasonRequest)
	case webhook.Succeeded:
		if m.refused.reason == reasonRequest {
			m.refused = refusal{}
		}
	case webhook.Failed:
	}
}

// addTo adds the router to the gauges of its TrafficRouter.
func (m *measured) addTo(s *sums, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known != "" {
		s.splits[m.known]++
	}
	if m.refused != (refusal{}) {
		s.refused++
	}
	if m.held {
		s.held++
	}
	s.starved += m.starved
	if !m.pending.IsZero() {
		s.pending = max(s.pending, now.Sub(m.pending))
	}
}
