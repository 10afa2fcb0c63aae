// SPDX-License-Identifier: Apache-2.0

package acknowledged_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

var (
	now     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	started = now.Add(-time.Hour)
	applied = []acknowledged.Applied{{Sequence: 6, At: now.Add(-10 * time.Minute)}, {Sequence: 7, At: now.Add(-time.Minute)}}
)

const route = "shop/web|80"

func ago(d time.Duration) time.Time { return now.Add(-d) }

func version(sequence uint64) ads.Version { return ads.Version{Sequence: sequence, Hash: "h"} }

func has(sequence uint64) acknowledged.Route {
	return acknowledged.Route{Name: route, Has: version(sequence)}
}

func former(sequence uint64, since time.Duration) acknowledged.Route {
	return acknowledged.Route{Name: route, Has: version(sequence), Former: ago(since)}
}

// connected is a record of a proxy whose stream is open since then.
func connected(since time.Duration, routes ...acknowledged.Route) acknowledged.Record {
	return acknowledged.Record{Connected: ago(since), Routes: routes}
}

// left is one of a proxy whose stream has ended.
func left(since time.Duration, routes ...acknowledged.Route) acknowledged.Record {
	return acknowledged.Record{Connected: started, Left: ago(since), Routes: routes}
}

func replica(name string, heard bool, records ...acknowledged.Record) acknowledged.Replica {
	r := acknowledged.Replica{Name: name, Heard: heard, Records: map[string]acknowledged.Record{}}
	for i, record := range records {
		if !record.Connected.IsZero() {
			r.Records[fmt.Sprint("uid-", i)] = record
		}
	}
	return r
}

// wanted are so many proxies, web-0 and so on.
func wanted(n int) (all []acknowledged.Wanted) {
	for i := range n {
		all = append(all, acknowledged.Wanted{Proxy: acknowledged.Proxy{UID: fmt.Sprint("uid-", i), Namespace: "shop", Pod: fmt.Sprint("web-", i)}, Routes: []string{route}, Since: started})
	}
	return all
}

// lost are so many proxies, of which the pod of one is not Ready.
func lost(n, which int) []acknowledged.Wanted {
	all := wanted(n)
	all[which].Unfit = "its pod is not Ready"
	return all
}

var none acknowledged.Record

// never is said of a proxy that may have had no stream at all, with what helps.
const never = "is connected to no replica, and no replica remembers it: see the logs of its container plumbline-proxy, or delete the pod"

func outOfSync(pod string, sequence uint64, why string, since time.Time) traffic.OutOfSync {
	return traffic.OutOfSync{Name: "shop/" + pod, Has: sequence, Why: why, Since: since}
}

func TestWhetherADecisionIsInForce(t *testing.T) {
	starting := wanted(1)
	starting[0].Starting = true
	asking := wanted(1)
	asking[0].By = "the annotation example.com/a"
	young := wanted(1)
	young[0].Since = ago(time.Second)
	tests := map[string]struct {
		wanted   []acknowledged.Wanted
		replicas []acknowledged.Replica
		want     traffic.Observation
	}{
		"all have acknowledged, each at its replica": {
			wanted: wanted(2), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(7))), replica("b", true, none, connected(time.Hour, has(7)))},
			want: traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 2, Acknowledged: 2},
		},
		"no proxy that could acknowledge it is no acknowledgment (H6)": {
			replicas: []acknowledged.Replica{replica("a", true)},
			want:     traffic.Observation{Knowledge: traffic.NoProxies},
		},
		"one that is silent while its pod is not Ready counts as gone (H4)": {
			wanted: lost(2, 1), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(7)))},
			want: traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1,
				Gone: []traffic.OutOfSync{outOfSync("web-1", 0, "counts as gone: its pod is not Ready", started)}},
		},
		"one that left while its pod is not Ready counts as gone (H4)": {
			wanted: lost(2, 1), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(7)), left(3*time.Minute, former(6, 3*time.Minute)))},
			want: traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1,
				Gone: []traffic.OutOfSync{outOfSync("web-1", 0, "counts as gone: its pod is not Ready", ago(3*time.Minute))}},
		},
		"one that left a minute ago holds it, whatever its pod is": {
			wanted: lost(1, 0), replicas: []acknowledged.Replica{replica("a", true, left(time.Minute, former(7, time.Minute)))},
			want: traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 0, "is not connected since 2026-03-01T11:59:00Z", applied[0].At)}},
		},
		"one that is connected holds it, whatever its pod is": {
			wanted: lost(1, 0), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(6)))},
			want: traffic.Observation{Sequence: 6, Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 6, "has not acknowledged it yet", applied[1].At)}},
		},
		"one that may be connected to a replica that is not heard holds it": {
			wanted: lost(1, 0), replicas: []acknowledged.Replica{replica("a", true), replica("b", false)},
			want: traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1, Unheard: []string{"b"},
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 0, "is not seen; not heard: b", applied[0].At)}},
		},
		"with all proxies gone no proxy routes (H6)": {
			wanted: lost(1, 0), replicas: []acknowledged.Replica{replica("a", true)},
			want: traffic.Observation{Knowledge: traffic.NoProxies,
				Gone: []traffic.OutOfSync{outOfSync("web-0", 0, "counts as gone: its pod is not Ready", started)}},
		},
		"one has the decision before": {
			wanted: wanted(2), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(7)), connected(time.Hour, has(6)))},
			want: traffic.Observation{Sequence: 6, Knowledge: traffic.Unknown, Wanted: 2, Acknowledged: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-1", 6, "has not acknowledged it yet", applied[1].At)}},
		},
		"one refuses it": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, acknowledged.Route{Name: route, Has: version(6), About: version(7), Why: "refuses 7.h: Sum of weights"}))},
			want: traffic.Observation{Sequence: 6, Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 6, "refuses 7.h: Sum of weights", applied[1].At)}},
		},
		"one has never been connected": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("a", true)},
			want: traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 0, never, applied[0].At)}},
		},
		"one that has to because somebody wrote so, with what that is": {
			wanted: asking, replicas: []acknowledged.Replica{replica("a", true)},
			want: traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 0, never+", or take the Service out of the annotation example.com/a", applied[0].At)}},
		},
		"one that began to run after the decision waits since then": {
			wanted: young, replicas: []acknowledged.Replica{replica("a", true)},
			want: traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 0, never, ago(time.Second))}},
		},
		"one that does not run yet need not acknowledge it": {
			wanted: append(starting, wanted(2)[1]), replicas: []acknowledged.Replica{replica("a", true, none, connected(time.Hour, has(7)))},
			want: traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1},
		},
		"one that does not run yet and has been connected has to": {
			wanted: starting, replicas: []acknowledged.Replica{replica("a", true, connected(time.Second))},
			want: traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 0, "has just been connected", applied[0].At)}},
		},
		"one that is between two streams still has it": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("a", true, left(time.Second, former(7, time.Second)))},
			want: traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1},
		},
		"one that goes over to another replica still has it": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("a", true, left(time.Second, former(7, time.Second))), replica("b", true, connected(time.Second))},
			want: traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1},
		},
		"what one says on its new stream counts, not what it had before": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("a", true, left(time.Second, former(7, time.Second))), replica("b", true, connected(time.Second, has(6)))},
			want: traffic.Observation{Sequence: 6, Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 6, "has not acknowledged it yet", applied[1].At)}},
		},
		"one that stays away does not have it any more": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("a", true, left(time.Minute, former(7, time.Minute)))},
			want: traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 0, "is not connected since 2026-03-01T11:59:00Z", applied[0].At)}},
		},
		"one that is back and does not ask for the route": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("a", true, connected(time.Minute, former(7, time.Minute)))},
			want: traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 0, "was not sent route "+route+", or does not ask for it", applied[0].At)}},
		},
		"of two streams that seem to be open the lower counts": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(6))), replica("b", true, connected(time.Second, has(7)))},
			want: traffic.Observation{Sequence: 6, Knowledge: traffic.Unknown, Wanted: 1,
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 6, "has not acknowledged it yet", applied[1].At)}},
		},
		"one is on a replica that is not heard": {
			wanted: wanted(2), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(7))), replica("b", false, none, connected(time.Hour, has(7)))},
			want: traffic.Observation{Knowledge: traffic.Unknown, Wanted: 2, Acknowledged: 1, Unheard: []string{"b"},
				OutOfSync: []traffic.OutOfSync{outOfSync("web-1", 0, "is connected to replica b, which is not heard", applied[0].At)}},
		},
		"one may be on a replica that was never heard": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("c", false), replica("a", true), replica("b", false)},
			want: traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1, Unheard: []string{"b", "c"},
				OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 0, "is not seen; not heard: b, c", applied[0].At)}},
		},
		"all are on replicas that are heard, and one is not": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(7))), replica("b", false)},
			want: traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1, Unheard: []string{"b"}},
		},
		"one has a later decision, and it is not known which is published": {
			wanted: wanted(1), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(8)))},
			want: traffic.Observation{Sequence: 8, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1},
		},
		"those that have been gone longest come first": {
			wanted: append(lost(1, 0), lost(2, 1)[1]), replicas: []acknowledged.Replica{replica("a", true, left(3*time.Minute), left(4*time.Minute))},
			want: traffic.Observation{Knowledge: traffic.NoProxies, Gone: []traffic.OutOfSync{
				outOfSync("web-1", 0, "counts as gone: its pod is not Ready", ago(4*time.Minute)),
				outOfSync("web-0", 0, "counts as gone: its pod is not Ready", ago(3*time.Minute)),
			}},
		},
		"those that wait longest come first": {
			wanted: wanted(3), replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(6)), connected(time.Hour, has(5)), connected(time.Hour, has(6)))},
			want: traffic.Observation{Sequence: 5, Knowledge: traffic.Unknown, Wanted: 3, OutOfSync: []traffic.OutOfSync{
				outOfSync("web-1", 5, "has not acknowledged it yet", applied[0].At),
				outOfSync("web-0", 6, "has not acknowledged it yet", applied[1].At),
				outOfSync("web-2", 6, "has not acknowledged it yet", applied[1].At),
			}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := acknowledged.Judge(acknowledged.Question{Now: now, Applied: applied, Wanted: tc.wanted, Replicas: tc.replicas})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// naive says the same in the words of the documentation, one proxy after the other.
func naive(q acknowledged.Question) (seen traffic.Observation) {
	newest := q.Applied[len(q.Applied)-1].Sequence
	seen.Knowledge, seen.Sequence = traffic.Proven, newest
	for _, r := range q.Replicas {
		if !r.Heard {
			seen.Unheard = append(seen.Unheard, r.Name)
		}
	}
	first := true
	for _, w := range q.Wanted {
		ever := false
		var open, closed []uint64
		for _, r := range q.Replicas {
			record, is := r.Records[w.UID]
			ever = ever || is
			if !is || !r.Heard {
				continue
			}
			for _, x := range record.Routes {
				if x.Has.Hash == "" {
					continue
				}
				if x.Former.IsZero() {
					open = append(open, x.Has.Sequence)
				} else if q.Now.Before(x.Former.Add(acknowledged.Absence)) {
					closed = append(closed, x.Has.Sequence)
				}
			}
		}
		if w.Starting && !ever || naivelyGone(q, w) {
			continue
		}
		if len(open) == 0 {
			open = closed
		}
		var lowest uint64
		for i, s := range open {
			if i == 0 || s < lowest {
				lowest = s
			}
		}
		seen.Wanted++
		if lowest >= newest {
			seen.Acknowledged++
		} else {
			seen.Knowledge = traffic.Unknown
			seen.OutOfSync = append(seen.OutOfSync, traffic.OutOfSync{Name: w.Namespace + "/" + w.Pod, Has: lowest})
		}
		if first || lowest < seen.Sequence {
			seen.Sequence, first = lowest, false
		}
	}
	if seen.Wanted == 0 {
		seen.Knowledge, seen.Sequence = traffic.NoProxies, 0
	}
	return seen
}

// naivelyGone looks at each replica for a sign of life.
func naivelyGone(q acknowledged.Question, w acknowledged.Wanted) bool {
	last, left := w.Since, false
	for _, r := range q.Replicas {
		record, is := r.Records[w.UID]
		switch {
		case !r.Heard, is && record.Left.IsZero():
			return false
		case is && (!left || record.Left.After(last)):
			last, left = record.Left, true
		}
	}
	if !left && q.Since.After(last) {
		last = q.Since
	}
	return w.Unfit != "" && !q.Now.Before(last.Add(acknowledged.Silence))
}

func drawRecord(t *rapid.T) acknowledged.Record {
	seconds := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(118, 122))
	r := acknowledged.Record{Connected: ago(time.Duration(seconds.Draw(t, "connected")) * time.Second)}
	if rapid.Bool().Draw(t, "left") {
		r.Left = ago(time.Duration(seconds.Draw(t, "gone")) * time.Second)
	}
	if rapid.Bool().Draw(t, "asks") {
		x := acknowledged.Route{Name: route}
		if rapid.Bool().Draw(t, "has") {
			x.Has = version(rapid.Uint64Range(5, 8).Draw(t, "sequence"))
		}
		if !r.Left.IsZero() || rapid.Bool().Draw(t, "former") {
			x.Former = ago(time.Duration(seconds.Draw(t, "since")) * time.Second)
		}
		r.Routes = append(r.Routes, x)
	}
	return r
}

func TestWhatIsSaidIsWhatTheNaiveSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := acknowledged.Question{Now: now, Applied: applied, Wanted: wanted(rapid.IntRange(0, 4).Draw(t, "wanted"))}
		q.Since = ago(time.Duration(rapid.IntRange(118, 122).Draw(t, "known since")) * time.Second)
		for i := range q.Wanted {
			q.Wanted[i].Starting = rapid.Bool().Draw(t, "starting")
			q.Wanted[i].Unfit = rapid.SampledFrom([]string{"", "its pod is not Ready"}).Draw(t, "unfit")
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "replicas") {
			r := acknowledged.Replica{Name: fmt.Sprint(i), Heard: rapid.Bool().Draw(t, "heard"), Records: map[string]acknowledged.Record{}}
			for j := range 4 {
				if rapid.Bool().Draw(t, "there") {
					r.Records[fmt.Sprint("uid-", j)] = drawRecord(t)
				}
			}
			q.Replicas = append(q.Replicas, r)
		}
		got := acknowledged.Judge(q)
		opts := []cmp.Option{
			cmpopts.IgnoreFields(traffic.OutOfSync{}, "Why", "Since"), cmpopts.IgnoreFields(traffic.Observation{}, "Gone"),
			cmpopts.SortSlices(func(a, b traffic.OutOfSync) bool { return a.Name < b.Name }),
		}
		if diff := cmp.Diff(naive(q), got, opts...); diff != "" {
			t.Fatal(diff)
		}
		if got.Wanted != got.Acknowledged+len(got.OutOfSync) || (got.Knowledge == traffic.Unknown) != (len(got.OutOfSync) > 0) || (got.Knowledge == traffic.NoProxies) != (got.Wanted == 0) {
			t.Fatalf("%+v", got)
		}
		for _, l := range append(got.OutOfSync, got.Gone...) {
			if l.Why == "" || l.Since.IsZero() {
				t.Fatalf("nothing is said about %+v", l)
			}
		}
	})
}
