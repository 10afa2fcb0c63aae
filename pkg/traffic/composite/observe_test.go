// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// proxy of a world in which each has acknowledged some sequence, and has counted.
type proxy struct {
	name      string
	has       uint64
	since     time.Time
	completed map[string]uint64
	redirects bool
}

// look is a naive router of some proxies: one that asks each of them.
func look(proxies []proxy, applied uint64) traffic.Observation {
	seen := traffic.Observation{Knowledge: traffic.Proven, Sequence: applied, Wanted: len(proxies)}
	outcomes := map[string]*traffic.Outcomes{"stable": {Window: time.Minute}, "canary": {Window: time.Minute}}
	for _, p := range proxies {
		seen.Sequence = min(seen.Sequence, p.has)
		for variation, n := range p.completed {
			outcomes[variation].Completed += n
		}
		if p.has > applied {
			seen.Ahead = max(seen.Ahead, p.has)
		}
		if p.has == applied {
			seen.Acknowledged++
		} else {
			seen.OutOfSync = append(seen.OutOfSync, traffic.OutOfSync{Name: p.name, Has: p.has, Since: p.since})
		}
		if p.redirects {
			seen.NotYetRedirected = append(seen.NotYetRedirected, p.name)
		}
	}
	switch {
	case seen.Ahead > 0:
		seen.Knowledge = traffic.Contradicted
	case len(seen.OutOfSync)+len(seen.NotYetRedirected) > 0:
		seen.Knowledge = traffic.Unknown
	}
	slices.SortStableFunc(seen.OutOfSync, func(a, b traffic.OutOfSync) int { return a.Since.Compare(b.Since) })
	slices.Sort(seen.NotYetRedirected)
	for _, variation := range []string{"stable", "canary"} {
		seen.Arms = append(seen.Arms, traffic.Arm{Variation: variation, Outcomes: outcomes[variation]})
	}
	return seen
}

// Two routers together know as much as one that has the proxies of both.
func TestACompositeKnowsWhatOneRouterOfAllProxiesWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const applied = 5
		n := 0
		proxies := func(t *rapid.T) []proxy {
			all := make([]proxy, rapid.IntRange(1, 5).Draw(t, "proxies"))
			for i := range all {
				n++
				all[i] = proxy{
					name: fmt.Sprintf("shop/p%02d", n), has: rapid.SampledFrom([]uint64{0, 4, 5, 5, 5, 5, 6}).Draw(t, "has"),
					since:     noon.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "since")) * time.Second),
					completed: map[string]uint64{"stable": uint64(rapid.IntRange(0, 99).Draw(t, "stable")), "canary": uint64(rapid.IntRange(0, 99).Draw(t, "canary"))}, //nolint:gosec // small
					redirects: rapid.IntRange(0, 5).Draw(t, "redirects") == 0,
				}
			}
			return all
		}
		var parts [][]proxy
		var answers []answer[traffic.Observation]
		for i := range rapid.IntRange(1, 4).Draw(t, "parts") {
			part := proxies(t)
			parts = append(parts, part)
			answers = append(answers, answer[traffic.Observation]{part: fmt.Sprint("part-", i), said: look(part, applied)})
		}
		got, err := observe(answers)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(look(slices.Concat(parts...), applied), got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("(-one router +composite):\n%s", d)
		}
	})
}

func TestWhatPartsKnowTogether(t *testing.T) {
	proven := traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1}
	with := func(change func(*traffic.Observation)) traffic.Observation {
		o := proven
		change(&o)
		return o
	}
	said := func(seen ...traffic.Observation) (answers []answer[traffic.Observation]) {
		for i, o := range seen {
			answers = append(answers, answer[traffic.Observation]{part: fmt.Sprint("part-", i), said: o})
		}
		return answers
	}
	window := func(w time.Duration, n uint64) *traffic.Outcomes {
		return &traffic.Outcomes{Window: w, Completed: n, Failed: 1, InFlight: 2, Uncounted: 3}
	}
	for name, tc := range map[string]struct {
		answers []answer[traffic.Observation]
		want    traffic.Observation
	}{
		"one part knows what it knows": {said(proven), proven},
		"the lowest sequence and the weakest knowledge": {
			said(with(func(o *traffic.Observation) { o.Sequence = 9 }), with(func(o *traffic.Observation) { o.Knowledge = traffic.Accepted })),
			traffic.Observation{Sequence: 7, Knowledge: traffic.Accepted, Wanted: 2, Acknowledged: 2},
		},
		"the part that settles last decides": {
			said(with(func(o *traffic.Observation) { o.Knowledge, o.SettledAt = traffic.Accepted, noon.Add(time.Minute) }), with(func(o *traffic.Observation) {
				o.Knowledge, o.SettledAt = traffic.Accepted, noon
			}), proven),
			traffic.Observation{Sequence: 7, Knowledge: traffic.Accepted, SettledAt: noon.Add(time.Minute), Wanted: 3, Acknowledged: 3},
		},
		"a part without proxies proves nothing": {
			said(proven, traffic.Observation{Knowledge: traffic.NoProxies}),
			traffic.Observation{Knowledge: traffic.NoProxies, Wanted: 1, Acknowledged: 1},
		},
		"a contradiction is weaker than silence": {
			append(said(with(func(o *traffic.Observation) { o.Knowledge, o.Ahead = traffic.Contradicted, 8 })), answer[traffic.Observation]{part: "edge", err: errors.New("away")}),
			traffic.Observation{Knowledge: traffic.Contradicted, Wanted: 1, Acknowledged: 1, Ahead: 8, Unheard: []string{"edge"}},
		},
		"a part that is not heard leaves no sequence in force, wherever it stands": {
			append([]answer[traffic.Observation]{{part: "edge", err: errors.New("away")}}, said(proven, proven)...),
			traffic.Observation{Knowledge: traffic.Unknown, Wanted: 2, Acknowledged: 2, Unheard: []string{"edge"}},
		},
		"unheard parts of a part have its name": {
			said(with(func(o *traffic.Observation) { o.Unheard = []string{"xds-1"} }), proven),
			traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 2, Acknowledged: 2, Unheard: []string{"part-0/xds-1"}},
		},
		"those who wait longest come first": {
			said(with(func(o *traffic.Observation) {
				o.OutOfSync = []traffic.OutOfSync{{Name: "b", Since: noon.Add(time.Second)}}
				o.Gone = []traffic.OutOfSync{{Name: "d", Since: noon.Add(time.Second)}}
			}), with(func(o *traffic.Observation) {
				o.OutOfSync, o.Gone = []traffic.OutOfSync{{Name: "a", Since: noon}}, []traffic.OutOfSync{{Name: "c", Since: noon}}
			})),
			traffic.Observation{
				Sequence: 7, Knowledge: traffic.Proven, Wanted: 2, Acknowledged: 2,
				OutOfSync: []traffic.OutOfSync{{Name: "a", Since: noon}, {Name: "b", Since: noon.Add(time.Second)}},
				Gone:      []traffic.OutOfSync{{Name: "c", Since: noon}, {Name: "d", Since: noon.Add(time.Second)}},
			},
		},
		"outcomes are added, and the longest window holds": {
			said(with(func(o *traffic.Observation) {
				o.Arms = []traffic.Arm{{Variation: "stable", Outcomes: window(time.Minute, 9)}, {Variation: "canary"}}
			}), with(func(o *traffic.Observation) {
				o.Arms = []traffic.Arm{{Variation: "stable", Outcomes: window(time.Hour, 5)}, {Variation: "canary"}}
			})),
			traffic.Observation{
				Sequence: 7, Knowledge: traffic.Proven, Wanted: 2, Acknowledged: 2,
				Arms: []traffic.Arm{{Variation: "stable", Outcomes: &traffic.Outcomes{Window: time.Hour, Completed: 14, Failed: 2, InFlight: 4, Uncounted: 6}}, {Variation: "canary"}},
			},
		},
		"an arm has the outcomes of the one part that counts": {
			said(with(func(o *traffic.Observation) { o.Arms = []traffic.Arm{{Variation: "canary"}} }), with(func(o *traffic.Observation) {
				o.Arms = []traffic.Arm{{Variation: "canary", Outcomes: window(time.Minute, 9)}}
			})),
			traffic.Observation{
				Sequence: 7, Knowledge: traffic.Proven, Wanted: 2, Acknowledged: 2,
				Arms: []traffic.Arm{{Variation: "canary", Outcomes: window(time.Minute, 9)}},
			},
		},
		"pods of one namespace are counted once, and the last redirection ends the wait": {
			said(with(func(o *traffic.Observation) {
				o.Around, o.NotYetRedirected, o.RedirectedAt = traffic.Population{Pods: 9, Proxied: 4, Routing: 1}, []string{"shop/b"}, noon.Add(time.Hour)
			}), with(func(o *traffic.Observation) {
				o.Around, o.NotYetRedirected, o.RedirectedAt = traffic.Population{Pods: 9, Proxied: 2, Routing: 2}, []string{"shop/a", "shop/b"}, noon
			})),
			traffic.Observation{
				Sequence: 7, Knowledge: traffic.Proven, Wanted: 2, Acknowledged: 2, Around: traffic.Population{Pods: 9, Proxied: 4, Routing: 2},
				NotYetRedirected: []string{"shop/a", "shop/b"}, RedirectedAt: noon.Add(time.Hour),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := observe(tc.answers)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestNothingIsKnownIfNoPartAnswers(t *testing.T) {
	_, err := observe([]answer[traffic.Observation]{{part: "mesh", err: errors.New("away")}, {part: "edge", err: errors.New("slow")}})
	if err == nil || !strings.Contains(err.Error(), "router mesh: away") || !strings.Contains(err.Error(), "router edge: slow") {
		t.Errorf("got %v", err)
	}
}
