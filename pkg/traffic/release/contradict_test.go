// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

func TestContradictions(t *testing.T) {
	arm := func(name string, completed uint64) traffic.Arm {
		return traffic.Arm{Variation: name, Outcomes: &traffic.Outcomes{Window: time.Minute, Completed: completed}}
	}
	tests := map[string]struct {
		canary traffic.Weight
		key    traffic.KeyKind
		arms   []traffic.Arm
		since  time.Duration // before noon; 0 is not acknowledged
		want   string
	}{
		"requests where none may be":                     {0, traffic.PerRequest, []traffic.Arm{arm("stable", 1000), arm("canary", 11)}, 2 * time.Minute, "canary has no share and answered 11 requests"},
		"a few strays":                                   {0, traffic.PerRequest, []traffic.Arm{arm("stable", 1000), arm("canary", 10)}, 2 * time.Minute, ""},
		"they were counted before it was settled":        {0, traffic.PerRequest, []traffic.Arm{arm("stable", 1000), arm("canary", 500)}, 89 * time.Second, ""},
		"it is not acknowledged":                         {0, traffic.PerRequest, []traffic.Arm{arm("stable", 1000), arm("canary", 500)}, 0, ""},
		"none where many must be":                        {1_000, traffic.PerRequest, []traffic.Arm{arm("stable", 500), arm("canary", 0)}, 2 * time.Minute, "canary has 10 % and answered 0 of 500 requests"},
		"too few to say":                                 {1_000, traffic.PerRequest, []traffic.Arm{arm("stable", 499), arm("canary", 0)}, 2 * time.Minute, ""},
		"the visitors may all be elsewhere":              {1_000, traffic.ByVisitor, []traffic.Arm{arm("stable", 99_999), arm("canary", 0)}, 2 * time.Minute, ""},
		"so many can hardly be":                          {1_000, traffic.ByVisitor, []traffic.Arm{arm("stable", 100_000), arm("canary", 0)}, 2 * time.Minute, "answered 0 of 100000"},
		"a share that differs is no contradiction":       {5_000, traffic.PerRequest, []traffic.Arm{arm("stable", 9_000), arm("canary", 1)}, 2 * time.Minute, ""},
		"nothing was counted":                            {0, traffic.PerRequest, []traffic.Arm{{Variation: "stable"}, {Variation: "canary"}}, 2 * time.Minute, ""},
		"of one nothing is known, and of the other much": {1_000, traffic.PerRequest, []traffic.Arm{arm("stable", 500), {Variation: "canary"}}, 2 * time.Minute, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			split := traffic.Split{Routing: traffic.Routing{Key: traffic.Key{Kind: tc.key}, Shares: traffic.Shares{
				{Variation: "stable", Weight: traffic.Total - tc.canary}, {Variation: "canary", Weight: tc.canary, Reserved: traffic.Total},
			}}}
			var since time.Time
			if tc.since > 0 {
				since = noon.Add(-tc.since)
			}
			got := strings.Join(release.Contradictions(split, traffic.Observation{Arms: tc.arms}, since, noon, release.Settles), "; ")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
