// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Duration is written as [d.]hh:mm:ss, with a fraction of a second where there is one, and read also
// as Go (15m) and ISO 8601 (PT15M) write durations. It is never negative.
type Duration struct{ time.Duration }

const (
	day = 24 * time.Hour
	// maxDays bounds durations that are read; a Duration holds 106,751 days.
	maxDays = 100_000
)

// MarshalText writes the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String writes the duration as [d.]hh:mm:ss.
func (d Duration) String() string {
	left := d.Duration
	var b strings.Builder
	if left < 0 {
		b.WriteByte('-')
		left = -left
	}
	if days := left / day; days > 0 {
		fmt.Fprintf(&b, "%d.", days)
		left %= day
	}
	fmt.Fprintf(&b, "%02d:%02d:%02d", left/time.Hour, left/time.Minute%60, left/time.Second%60)
	if fraction := left % time.Second; fraction > 0 {
		b.WriteString(strings.TrimRight(fmt.Sprintf(".%09d", fraction), "0"))
	}
	return b.String()
}

// UnmarshalText reads a duration in one of the three forms.
func (d *Duration) UnmarshalText(text []byte) error {
	read, err := parseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration such as 00:15:00, 15m or PT15M: %w", text, err)
	}
	d.Duration = read
	return nil
}

// Schema describes a duration for OpenAPI.
func (Duration) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Description: "A duration as [d.]hh:mm:ss; read also as 15m and PT15M.", Examples: []any{"00:15:00"},
		Pattern: durationPattern, PatternDescription: "a duration such as 00:15:00, 15m or PT15M",
	}
}

// durationPattern is that of the three forms, so that a problem names the field of another text.
const durationPattern = `^(?:(?:\d{1,6}\.)?\d{1,6}:[0-5]\d:[0-5]\d(?:\.\d{1,9})?|` +
	`P(?:\d{1,6}D)?(?:T(?:\d{1,7}H)?(?:\d{1,9}M)?(?:\d{1,9}(?:\.\d{1,9})?S)?)?|` +
	`0|(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+)$`

var (
	clockForm = regexp.MustCompile(`^(?:(\d{1,6})\.)?(\d{1,6}):([0-5]\d):([0-5]\d)(\.\d{1,9})?$`)
	isoForm   = regexp.MustCompile(`^P(?:(\d{1,6})D)?(?:T(?:(\d{1,7})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$`)
)

var errTooLong = errors.New("it is too long")

func parseDuration(text string) (time.Duration, error) {
	switch {
	case clockForm.MatchString(text):
		m := clockForm.FindStringSubmatch(text)
		return sum([]string{m[1], m[2], m[3], m[4] + m[5]})
	case len(text) > 1 && text[len(text)-1] != 'T' && isoForm.MatchString(text):
		return sum(isoForm.FindStringSubmatch(text)[1:])
	}
	read, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, errors.New("it has another form")
	case read < 0:
		return 0, errors.New("it is negative")
	case read > maxDays*day:
		return 0, errTooLong
	}
	return read, nil
}

// sum adds days, hours, minutes and seconds, each empty for none.
func sum(parts []string) (time.Duration, error) {
	total := time.Duration(0)
	for i, unit := range []time.Duration{day, time.Hour, time.Minute} {
		if parts[i] == "" {
			continue
		}
		count, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil || time.Duration(count) > (maxDays*day-total)/unit {
			return 0, errTooLong
		}
		total += time.Duration(count) * unit
	}
	if parts[3] == "" {
		return total, nil
	}
	seconds, err := time.ParseDuration(parts[3] + "s")
	if err != nil || seconds > maxDays*day-total {
		return 0, errTooLong
	}
	return total + seconds, nil
}
