// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/planning/planningtest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// today has a schedule, which is open on the day of the tests.
func today(c *planningtest.Cluster) {
	c.Policy.Spec.Schedule.AllowedDays = []v1alpha1.Weekday{v1alpha1.Weekday(epoch.Weekday().String())}
}

// While the clocks differ nobody knows whether a window is open, which the policy
// says, and no event tells that they agree again. The executor, which asks the same,
// begins no plan meanwhile.
func TestAPolicyWithAWindowWaitsUntilTheClocksAgree(t *testing.T) {
	tests := map[string]struct {
		change func(*planningtest.Cluster)
		skew   time.Duration
		says   string
		again  bool
	}{
		"they agree":                            {today, time.Second, "", false},
		"the own one is an hour ahead":          {today, time.Hour, "1h0m0s ahead of", true},
		"the own one is an hour behind":         {today, -time.Hour, "1h0m0s behind", true},
		"nobody has compared them":              {today, window.SkewUnknown, "has not been compared", true},
		"an hour ahead, and at any time of day": {func(*planningtest.Cluster) {}, time.Hour, "", false},
		// A clock that was an hour ahead, and that nobody had compared, made a drift too old: it was left alone for good.
		"nobody has compared them, and at any time of day": {func(*planningtest.Cluster) {}, window.SkewUnknown, "", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.change)
			b.r.Skew = func() time.Duration { return tc.skew }
			result := b.look()
			if got := b.status().WaitingFor; !strings.Contains(got, tc.says) || tc.says == "" && strings.Contains(got, "clock") {
				t.Errorf("it waits for %q, want %q", got, tc.says)
			}
			if got := result.RequeueAfter > 0 && result.RequeueAfter <= clockAgain; got != tc.again {
				t.Errorf("looked at again after %s", result.RequeueAfter)
			}
		})
	}
}

// asking counts reads past the cache, each of which tells the time.
type asking struct {
	client.Reader
	asked int
}

func (a *asking) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	a.asked++
	return a.Reader.Get(ctx, key, into, options...)
}

func TestAnAPIServerThatWasSilentForLongIsAskedForTheTime(t *testing.T) {
	b := newBench(t, today)
	live := &asking{Reader: b.client}
	b.r.Live = live
	b.r.Skew = func() time.Duration {
		if live.asked == 0 {
			return window.SkewUnknown
		}
		return 0
	}
	b.look()
	if got := b.status().WaitingFor; strings.Contains(got, "clock") {
		t.Errorf("it waits for %q", got)
	}
}
