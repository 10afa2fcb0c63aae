// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

// drawnShares draws valid shares of 2 to 8 variations.
func drawnShares(t *rapid.T) traffic.Shares {
	left := traffic.Total
	shares := traffic.Shares{{Variation: "v0", Weight: traffic.Total}}
	for i := range rapid.IntRange(1, 7).Draw(t, "variations") {
		reserved := traffic.Weight(rapid.IntRange(0, int(left)).Draw(t, "reserved"))
		weight := traffic.Weight(rapid.IntRange(0, int(reserved)).Draw(t, "weight"))
		left -= reserved
		shares[0].Weight -= weight
		shares = append(shares, traffic.Share{Variation: fmt.Sprint("v", i+1), Weight: weight, Reserved: reserved})
	}
	return shares
}

// evaluate does with a value what the rules do: it takes the next arm as long as the bucket is not
// below the end before it.
func evaluate(value string, bucket traffic.Weight, room int) string {
	fields := strings.Split(value, ":")
	arm := fields[1]
	for i := range room - 1 {
		if end, _ := strconv.Atoi(fields[2*i+2]); bucket-traffic.Weight(end) >= 0 {
			arm = fields[2*i+3]
		}
	}
	return arm
}

// naive is the variation whose segment has a bucket.
func naive(segments []traffic.Segment, bucket traffic.Weight) string {
	var all []string
	for _, s := range segments {
		for range s.Weight {
			all = append(all, s.Variation)
		}
	}
	return all[bucket]
}

// Whatever the shares: the rules read a value as the segments, its number of fields is that of the
// rules, and it is read back.
func TestAnEntrySaysWhatTheSegmentsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares, sequence := drawnShares(t), rapid.Uint64().Draw(t, "sequence")
		room, layout := countSegments(len(shares)), shares.Layout()
		value := formatEntry(sequence, layout, room)
		if got := strings.Count(value, ":"); got != 2*room-1 {
			t.Fatalf("%s has %d separators, want those of %d segments", value, got, room)
		}
		for _, bucket := range []int{0, 1, 9_999, rapid.IntRange(0, 9_999).Draw(t, "bucket")} {
			want, got := naive(layout, traffic.Weight(bucket)), evaluate(value, traffic.Weight(bucket), room)
			if want != got {
				t.Fatalf("of %s bucket %d has %s, want %s", value, bucket, got, want)
			}
		}
		read, segments, err := ParseEntry(value)
		if d := cmp.Diff(layout, segments); err != nil || read != sequence || d != "" {
			t.Fatalf("%s is read as sequence %d (%v); segments (-want +got):\n%s", value, read, err, d)
		}
	})
}

func TestAnEditedEntryIsNoticed(t *testing.T) {
	want, _ := EntryOf(portset.Divided(portset.ByHeader, 500))
	for name, tc := range map[string]struct{ value, want string }{
		"as it should be":                 {"7:canary:500:stable", ""},
		"an older sequence":               {"6:canary:100:stable", "has sequence 6, want 7"},
		"a later sequence":                {"8:canary:1000:stable", "has sequence 8, want 7"},
		"other shares under the sequence": {"7:canary:9000:stable", "was edited"},
		"other arms":                      {"7:stable:500:canary", "was edited"},
		"ends that are no numbers":        {"7:canary:much:stable", "was edited"},
		"an end behind the last bucket":   {"7:canary:10001:stable", "was edited"},
		"an end with a zero before it":    {"7:canary:0500:stable", "was edited"},
		"no sequence":                     {"canary:500:stable", "was edited"},
		"nothing":                         {"", "was edited"},
		"an arm too few":                  {"7:canary:500", "was edited"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckEntry(want, tc.value)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// Whatever a map has: what is read is written the same, and is all keys.
func FuzzParseEntry(f *testing.F) {
	for _, value := range []string{"7:canary:500:stable", "7:canary:0:stable", "1:a:1:b:2:c:10000:c", "", ":", "18446744073709551616:a", "7:a:b"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		sequence, segments, err := ParseEntry(value)
		if err != nil {
			return
		}
		var sum traffic.Weight
		for _, s := range segments {
			sum += s.Weight
		}
		if room := (strings.Count(value, ":") + 1) / 2; sum != traffic.Total || formatEntry(sequence, segments, room) != value {
			t.Errorf("%q is read as %d %v", value, sequence, segments)
		}
	})
}
