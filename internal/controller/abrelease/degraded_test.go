// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// The condition shows one reason, and each has an Event when it is new.
func TestDegradedShowsTheMostSevereReasonAndEachNewOneIsTold(t *testing.T) {
	w := newWorld(t)
	release := ir.Object{Kind: "ABRelease", Namespace: "shop", Name: "web"}
	problem := func(reason ir.Reason) ir.Problem {
		return ir.Problem{Object: release, Reason: reason, Message: "says why"}
	}
	w.look()
	proven := traffic.Observation{Sequence: 1, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1}
	older := traffic.Observation{Sequence: 1, Knowledge: traffic.Unknown, Wanted: 1, Acknowledged: 1, NotYetRedirected: []string{"shop/a"}, RedirectedAt: noon.Add(time.Hour)}
	other := older
	other.Knowledge, other.OutOfSync = traffic.Contradicted, []traffic.OutOfSync{{Name: "shop/front-0", Why: "has 1.x"}}
	starved := proven
	starved.Starved = []traffic.Starved{{Part: "edge/traefik-0", Variation: "canary", Why: "it got 1 of 400 requests"}}
	for _, step := range []struct {
		name     string
		seen     traffic.Observation
		problems []ir.Problem
		reasons  string // the first is that of the condition
		events   string
	}{
		{"nothing", proven, nil, "", ""},
		{"IPv6", proven, []ir.Problem{problem(ir.IPv6NotSplit)}, "IPv6NotSplit", "IPv6NotSplit"},
		{"older connections as well", older, []ir.Problem{problem(ir.IPv6NotSplit)}, "IPv6NotSplit NotYetRedirected", "NotYetRedirected"},
		{"selectors as well", older, []ir.Problem{problem(ir.IPv6NotSplit), problem(ir.SelectorsOverlap)}, "SelectorsOverlap IPv6NotSplit NotYetRedirected", "SelectorsOverlap"},
		{"another split as well", other, []ir.Problem{problem(ir.IPv6NotSplit), problem(ir.SelectorsOverlap)}, "Contradicted SelectorsOverlap IPv6NotSplit NotYetRedirected", "Contradicted"},
		{"IPv6 alone again", proven, []ir.Problem{problem(ir.IPv6NotSplit)}, "IPv6NotSplit", ""},
		{"nothing again", proven, nil, "", ""},
		{"a starved share", starved, nil, "ShareStarved", "ShareStarved"},
		{"older connections again", older, nil, "NotYetRedirected", "NotYetRedirected"},
	} {
		w.said()
		w.problems = step.problems
		w.router.Say(step.seen)
		r := w.look()
		if diff := cmp.Diff(step.reasons, strings.Join(toldReasons(&r.Status), " ")); diff != "" {
			t.Errorf("%s: reasons (-want +got):\n%s", step.name, diff)
		}
		first, _, _ := strings.Cut(step.reasons, " ")
		if got := degradedFor(r); got != first {
			t.Errorf("%s: the reason is %q, want %q", step.name, got, first)
		}
		var events []string
		for _, e := range w.said() {
			if warning, is := strings.CutPrefix(e, "Warning "); is {
				reason, _, _ := strings.Cut(warning, " ")
				events = append(events, reason)
			}
		}
		if diff := cmp.Diff(step.events, strings.Join(events, " ")); diff != "" {
			t.Errorf("%s: Events (-want +got):\n%s", step.name, diff)
		}
	}
	w.ready["canary"] = 0
	w.router.Deafen(errors.New("nobody answers"))
	if c := meta.FindStatusCondition(w.look().Status.Conditions, v1alpha1.ConditionDegraded); c.Reason != v1alpha1.ReasonNoReadyEndpoints {
		t.Errorf("while nobody is asked the condition is %+v", c)
	}
}

// The counts of a starved share change with each look.
func TestAStarvedShareThatGoesOnIsNotWrittenEachTime(t *testing.T) {
	w := newWorld(t)
	w.look()
	for i := range 20 {
		w.router.Say(traffic.Observation{
			Sequence: 1, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1,
			Starved: []traffic.Starved{{Part: "edge/traefik-0", Variation: "canary", Why: fmt.Sprintf("it got 0 of %d requests", 400+i)}},
		})
		w.look()
		w.clock.Step(time.Second)
	}
	if w.writes > 3 {
		t.Errorf("the status was written %d times in 20 s", w.writes)
	}
}
