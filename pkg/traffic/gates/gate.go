// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"
	"time"
)

// Kind says how a gate is asked.
type Kind string

// The kinds.
const (
	// KindQuery is a query of Prometheus.
	KindQuery Kind = "Query"
	// KindWebhook is a signed request.
	KindWebhook Kind = "Webhook"
)

// Event is an event of a run that gates are asked about.
type Event string

// The events.
const (
	BeforeStart     Event = "BeforeStart"
	BeforeStage     Event = "BeforeStage"
	DuringStage     Event = "DuringStage"
	BeforePromotion Event = "BeforePromotion"
	// AfterRollback is told: no answer to it changes a run.
	AfterRollback Event = "AfterRollback"
)

// Point is a place in a run that gates are asked about.
type Point struct {
	// Run is the number of the run, from 1.
	Run   int64
	Event Event
	// Stage is the number of the stage, from 1; 0 if the event is about no stage.
	Stage int
	// Restart counts the measurements of the stage that began anew.
	Restart int
}

// String names a point for people.
func (p Point) String() string {
	switch p.Event {
	case BeforeStage, DuringStage:
		return fmt.Sprintf("%s %d", p.Event, p.Stage)
	case BeforeStart, BeforePromotion, AfterRollback:
		return string(p.Event)
	}
	return string(p.Event)
}

// Key names a gate of a release.
type Key struct {
	Kind Kind
	Name string
}

// String names a gate for people.
func (k Key) String() string {
	switch k.Kind {
	case KindQuery:
		return "query " + k.Name
	case KindWebhook:
		return "webhook " + k.Name
	}
	return string(k.Kind) + " " + k.Name
}

// SecretKey names a key of a Secret in the namespace of the installation.
type SecretKey struct{ Name, Key string }

// Webhook is a gate that a signed request asks.
type Webhook struct {
	Name  string
	Event Event
	// Destination has the URL, and SigningKey the key that signs requests.
	Destination, SigningKey SecretKey
}

// Key of the webhook.
func (w Webhook) Key() Key { return Key{KindWebhook, w.Name} }

// Set is all gates of a run.
type Set struct {
	Queries  []Query
	Webhooks []Webhook
}

// At lists the gates of a point, queries first.
func (s Set) At(p Point) []Key {
	var keys []Key
	if p.Event == DuringStage {
		for i := range s.Queries {
			keys = append(keys, s.Queries[i].Key())
		}
	}
	for i := range s.Webhooks {
		if s.Webhooks[i].Event == p.Event {
			keys = append(keys, s.Webhooks[i].Key())
		}
	}
	return keys
}

// has tells whether a gate is one of the set.
func (s Set) has(k Key) bool {
	for i := range s.Queries {
		if s.Queries[i].Key() == k {
			return true
		}
	}
	for i := range s.Webhooks {
		if s.Webhooks[i].Key() == k {
			return true
		}
	}
	return false
}

// query of a key; nil if the key is no query of the set.
func (s Set) query(k Key) *Query {
	for i := range s.Queries {
		if s.Queries[i].Key() == k {
			return &s.Queries[i]
		}
	}
	return nil
}

// Question is one gate that is to be asked about one point.
type Question struct {
	Key
	Point
}

// Due lists the questions about a point. A gate that is told is asked until it has passed.
func Due(set Set, states []State, p Point) []Question {
	var due []Question
	for _, k := range set.At(p) {
		if before := find(states, k); p.Event == AfterRollback && before.Point == p && before.Result == Pass {
			continue
		}
		due = append(due, Question{k, p})
	}
	return due
}

// FreshFor is for how long a Pass counts, given how often gates are asked: three intervals, and at least
// two minutes, so that one late answer holds no run.
func FreshFor(interval time.Duration) time.Duration { return max(3*interval, 2*time.Minute) }
