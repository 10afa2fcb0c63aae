// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Event is something that people are told.
type Event struct {
	Reason  EventReason
	Message string
	// Warning says that it is not as somebody wants it.
	Warning bool
}

// EventReason is one word for it.
type EventReason string

// The reasons.
const (
	SplitChanged      EventReason = "SplitChanged"
	ReservationsMoved EventReason = "ReservationsMoved"
	Clamped           EventReason = "Clamped"
	Unclamped         EventReason = "Unclamped"
	// RouteChangedByAnother: another writer changed the weights of a route, and the router restored its own.
	RouteChangedByAnother EventReason = "RouteChangedByAnother"
)

// events of going over from one state to another.
func events(before, next *State, moved bool) []Event {
	var told []Event
	if before == nil || differs(before.asWanted(), next.asWanted()) {
		told = append(told, Event{Reason: SplitChanged, Message: Text(next.Wanted)})
	}
	if moved {
		told = append(told, Event{Reason: ReservationsMoved, Warning: true, Message: "the ranges of the variations could not stay, so visitors may move to another variation; reserve the largest percentage of a variation (spec.variations[].reserved)"})
	}
	for _, share := range next.Wanted[1:] {
		is := next.withholds(share.Variation)
		was := before != nil && before.withholds(share.Variation)
		switch {
		case is && !was:
			told = append(told, Event{Clamped, share.Variation + " has no ready endpoints: its " + percent(share.Weight) + " % go to " + next.Wanted.Stable(), true})
		case was && !is && share.Weight > 0:
			told = append(told, Event{Unclamped, share.Variation + " has its " + percent(share.Weight) + " % back", false})
		}
	}
	return told
}

// asWanted is the split without clamping.
func (s *State) asWanted() (split traffic.Split) {
	split = s.Split
	split.Shares = s.Wanted
	return split
}

// withholds says that a variation has no share although one is wanted.
func (s *State) withholds(variation string) bool {
	i := slices.IndexFunc(s.Wanted, func(w traffic.Share) bool { return w.Variation == variation })
	return i > 0 && s.Wanted[i].Weight > 0 && s.Split.Shares[i].Weight == 0
}

// Withheld are the variations that have no share although one is wanted.
func (s *State) Withheld() (variations []string) {
	for _, share := range s.Wanted {
		if s.withholds(share.Variation) {
			variations = append(variations, share.Variation)
		}
	}
	return variations
}

// Text of a split for people: stable 90 / canary 10.
func Text(s traffic.Shares) string {
	parts := make([]string, 0, len(s))
	for _, share := range s {
		parts = append(parts, fmt.Sprint(share.Variation, " ", percent(share.Weight)))
	}
	return strings.Join(parts, " / ")
}

func percent(w traffic.Weight) string { return w.Percent() }
