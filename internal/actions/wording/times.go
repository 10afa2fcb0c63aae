// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// FormatAge gives the time from at until now as kubectl prints it.
func FormatAge(at metav1.Time, now time.Time) string {
	if at.IsZero() {
		return Unknown
	}
	return duration.HumanDuration(now.Sub(at.Time))
}

// FormatAgo gives the age of a time in a sentence.
func FormatAgo(at metav1.Time, now time.Time) string {
	if at.IsZero() {
		return "at an unknown time"
	}
	return FormatAge(at, now) + " ago"
}

// FormatTimestamp gives a time in UTC by RFC 3339.
func FormatTimestamp(at metav1.Time) string { return at.UTC().Format(time.RFC3339) }

// FormatTime gives a time and how far from now it is; empty for no time.
func FormatTime(at *metav1.Time, now time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case at.After(now):
		return fmt.Sprintf("%s (in %s)", FormatTimestamp(*at), FormatDuration(at.Sub(now)))
	}
	return fmt.Sprintf("%s (%s)", FormatTimestamp(*at), FormatAgo(*at, now))
}

// FormatUntil says when something ends, and how long that is from now.
func FormatUntil(at metav1.Time, now time.Time) string {
	left := at.Sub(now)
	if left <= 0 {
		return "until " + FormatTimestamp(at)
	}
	return fmt.Sprintf("until %s, in %s", FormatTimestamp(at), FormatDuration(left))
}

// FormatDuration gives a duration as kubectl prints ages.
func FormatDuration(d time.Duration) string { return duration.HumanDuration(d) }
