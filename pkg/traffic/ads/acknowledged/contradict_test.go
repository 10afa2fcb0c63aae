// SPDX-License-Identifier: Apache-2.0

package acknowledged_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

// M6: a proxy with other content, or with a sequence that nobody has decided, counted as one that
// has acknowledged the newest decision. After a restore of etcd all proxies were such.
func TestAProxyThatHasAnotherSplitContradicts(t *testing.T) {
	other := acknowledged.Route{Name: route, Has: ads.Version{Sequence: 7, Hash: "another"}}
	tests := map[string]struct {
		has       acknowledged.Record
		shared    bool
		published ads.Version
		want      traffic.Knowledge
		ahead     uint64
		why       string
	}{
		"the newest decision as it is published":                  {connected(time.Hour, has(7)), false, version(7), traffic.Proven, 0, ""},
		"the newest decision that this replica has not published": {connected(time.Hour, has(7)), false, version(6), traffic.Proven, 0, ""},
		"the decision before":                                     {connected(time.Hour, has(6)), false, version(7), traffic.Unknown, 0, "has not acknowledged it yet"},
		"other content of the newest decision":                    {connected(time.Hour, other), false, version(7), traffic.Contradicted, 0, "has 7.another, and that sequence is 7.h"},
		"a later decision than there is":                          {connected(time.Hour, has(50)), false, version(7), traffic.Contradicted, 50, "has 50.h, and the newest sequence is 7"},
		"a sequence that cannot be reached":                       {connected(time.Hour, has(1<<60)), false, version(7), traffic.Contradicted, 0, "has 1152921504606846976.h, and the newest sequence is 7"},
		"a later decision on a former stream":                     {left(time.Second, former(50, time.Second)), false, version(7), traffic.Contradicted, 50, "has 50.h, and the newest sequence is 7"},
		"a route of many services that is ahead":                  {connected(time.Hour, has(60)), true, version(45), traffic.Contradicted, 22, "has 60.h, and the newest sequence is 45"},
		"a route of many services":                                {connected(time.Hour, has(45)), true, version(45), traffic.Proven, 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := acknowledged.Question{
				Now: now, Applied: []acknowledged.Applied{{Sequence: 7, At: now, Shared: 45}}, Wanted: wanted(1),
				Replicas: []acknowledged.Replica{replica("a", true, tc.has)}, Newest: map[string]ads.Version{route: tc.published},
			}
			q.Wanted[0].Shared = tc.shared
			got := acknowledged.Judge(q)
			why := ""
			for _, l := range got.OutOfSync {
				why = l.Why
			}
			if got.Knowledge != tc.want || got.Ahead != tc.ahead || why != tc.why {
				t.Errorf("it is %s, ahead %d, because it %q", got.Knowledge, got.Ahead, why)
			}
			if in := got.Acknowledged == 1; in != (tc.want == traffic.Proven) || in != (got.Sequence == 7) {
				t.Errorf("%d have acknowledged it, and sequence %d is in force", got.Acknowledged, got.Sequence)
			}
		})
	}
}

func TestNothingIsInForceWhileOneOfTwoProxiesContradicts(t *testing.T) {
	got := acknowledged.Judge(acknowledged.Question{
		Now: now, Applied: applied, Wanted: wanted(2), Newest: map[string]ads.Version{route: version(7)},
		Replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(50)), connected(time.Hour, has(7)))},
	})
	if got.Sequence != 0 || got.Acknowledged != 1 || got.Knowledge != traffic.Contradicted {
		t.Errorf("got %+v", got)
	}
}

func TestARouteThatAProxyReportsToHaveIsKnown(t *testing.T) {
	x, p := acknowledged.NewIndex(), acknowledged.Proxy{UID: "u", Namespace: "shop", Pod: "web-0"}
	x.Opened(p, now)
	x.Happened(p, ads.Ahead{Route: route, Version: version(50)})
	want := []acknowledged.Route{{Name: route, Has: version(50)}}
	if d := cmp.Diff(want, x.Records(nil, []string{route})["u"].Routes); d != "" {
		t.Errorf("its routes (-want +got):\n%s", d)
	}
}
