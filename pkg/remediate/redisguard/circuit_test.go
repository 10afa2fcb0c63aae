// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The circuit as a story: each word is a call that wants to be made, with how it
// ends, or seconds that pass. What is told is who was let through.
func TestCircuit(t *testing.T) {
	tests := map[string]struct{ story, through string }{
		"while all goes well everybody asks":                 {"ok ok ok ok", "yes yes yes yes"},
		"two failures change nothing":                        {"bad bad ok bad bad ok", "yes yes yes yes yes yes"},
		"after three in a row nobody asks":                   {"bad bad bad ok ok", "yes yes yes no no"},
		"until it has rested":                                {"bad bad bad 4s ok 1s ok ok", "yes yes yes no yes yes"},
		"then one tries, and a failure means another rest":   {"bad bad bad 5s bad ok 4s ok 1s ok ok", "yes yes yes yes no no yes yes"},
		"who goes away says nothing":                         {"bad bad away away bad ok", "yes yes yes yes yes no"},
		"nor when he was the one who tried: the next one is": {"bad bad bad 5s away bad ok", "yes yes yes yes yes no"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := circuit{failures: 3, rest: 5 * time.Second}
			now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
			ends := map[string]outcome{"ok": worked, "bad": failed, "away": abandoned}
			var through []string
			for word := range strings.FieldsSeq(test.story) {
				how, isCall := ends[word]
				if !isCall {
					d, err := time.ParseDuration(word)
					if err != nil {
						t.Fatal(err)
					}
					now = now.Add(d)
					continue
				}
				if !c.enter(now) {
					through = append(through, "no")
					continue
				}
				through = append(through, "yes")
				c.leave(how, now)
			}
			if diff := cmp.Diff(test.through, strings.Join(through, " ")); diff != "" {
				t.Errorf("through (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneAloneTriesARestedRedis(t *testing.T) {
	c := circuit{failures: 1, rest: time.Second}
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	c.enter(now)
	c.leave(failed, now)
	now = now.Add(time.Second)
	if !c.enter(now) || c.enter(now) || c.enter(now.Add(time.Hour)) {
		t.Error("not exactly one tries")
	}
	if !c.resting() {
		t.Error("it counts as well before it is")
	}
	c.leave(worked, now)
	if c.resting() || !c.enter(now) || !c.enter(now) {
		t.Error("it is well, and not everybody asks")
	}
}
