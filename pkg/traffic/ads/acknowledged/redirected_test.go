// SPDX-License-Identifier: Apache-2.0

package acknowledged_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

// M4 of the review of the mesh: a connection that was open before the service was managed is not
// split, and the split was Proven all the same.
func TestASplitIsNotProvenOverConnectionsThatAreOlderThanTheManagement(t *testing.T) {
	const bound = 10 * time.Minute
	tests := map[string]struct {
		managed    time.Time
		redirected bool
		want       []string
	}{
		"the pod is older":                           {ago(time.Minute), true, []string{"shop/web-0"}},
		"until the bound is reached":                 {ago(bound), true, nil},
		"a moment before the bound":                  {ago(bound - 1), true, []string{"shop/web-0"}},
		"the pod is as old":                          {started, true, nil},
		"the pod is younger":                         {started.Add(-time.Second), true, nil},
		"its application names a local port instead": {ago(time.Minute), false, nil},
		"it is not stored since when":                {time.Time{}, true, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all := wanted(1)
			all[0].Redirected = tc.redirected
			want := traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1, NotYetRedirected: tc.want}
			if tc.want != nil {
				want.Knowledge, want.RedirectedAt = traffic.Unknown, tc.managed.Add(bound)
			}
			got := acknowledged.Judge(acknowledged.Question{
				Now: now, Applied: applied, Wanted: all, Replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(7)))},
				ManagedSince: tc.managed, OldConnections: bound,
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
