// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// FormatAge gives the time since at as kubectl prints it.
func (inv *Invocation) FormatAge(at metav1.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(inv.Now().Sub(at.Time))
}

// FormatAgo gives the age of a time in a sentence.
func (inv *Invocation) FormatAgo(at metav1.Time) string {
	if at.IsZero() {
		return "at an unknown time"
	}
	return inv.FormatAge(at) + " ago"
}

// FormatTimestamp gives a time in UTC by RFC 3339.
func FormatTimestamp(at metav1.Time) string { return at.UTC().Format(time.RFC3339) }

// FormatTime gives a time and how far from now it is; nothing for no time.
func (inv *Invocation) FormatTime(at *metav1.Time) string {
	switch {
	case at.IsZero():
		return ""
	case at.After(inv.Now()):
		return fmt.Sprintf("%s (in %s)", FormatTimestamp(*at), FormatDuration(at.Sub(inv.Now())))
	}
	return fmt.Sprintf("%s (%s)", FormatTimestamp(*at), inv.FormatAgo(*at))
}

// FormatUntil says when something ends, and how long that is from now.
func (inv *Invocation) FormatUntil(at metav1.Time) string {
	left := at.Sub(inv.Now())
	if left <= 0 {
		return "until " + FormatTimestamp(at)
	}
	return fmt.Sprintf("until %s, in %s", FormatTimestamp(at), FormatDuration(left))
}

// FormatDuration gives a duration as kubectl prints ages.
func FormatDuration(d time.Duration) string { return duration.HumanDuration(d) }
