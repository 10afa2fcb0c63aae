// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// Findings H4 and H6: one proxy held a release for ever, and no proxy was an acknowledgment.
func TestHowItStandsWithADecision(t *testing.T) {
	late := []traffic.OutOfSync{{Name: "shop/a"}}
	hold, proceed := release.Policy{Deadline: time.Minute}, release.Policy{Deadline: time.Minute, Proceed: true}
	settled := time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC)
	one := &traffic.Observation{Knowledge: traffic.Unknown, Sequence: 6, Wanted: 2, Acknowledged: 1, OutOfSync: late}
	none := &traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1, OutOfSync: late}
	tests := map[string]struct {
		seen   *traffic.Observation
		policy release.Policy
		after  time.Duration
		want   release.Standing
	}{
		"that all proxies have acknowledged":                              {&traffic.Observation{Knowledge: traffic.Proven, Sequence: 7, Wanted: 1, Acknowledged: 1}, hold, 0, release.Acknowledged},
		"that was taken where it cannot be asked":                         {&traffic.Observation{Knowledge: traffic.Accepted, Sequence: 7}, hold, 0, release.Acknowledged},
		"that was taken a moment before it counts":                        {&traffic.Observation{Knowledge: traffic.Accepted, Sequence: 7, SettledAt: settled}, proceed, time.Minute - 1, release.Acknowledging},
		"that was taken when it counts":                                   {&traffic.Observation{Knowledge: traffic.Accepted, Sequence: 7, SettledAt: settled}, hold, time.Minute, release.Acknowledged},
		"that was taken where the former one counts":                      {&traffic.Observation{Knowledge: traffic.Accepted, Sequence: 6}, hold, time.Hour, release.Acknowledging},
		"that is proven needs no time":                                    {&traffic.Observation{Knowledge: traffic.Proven, Sequence: 7, SettledAt: settled}, hold, 0, release.Acknowledged},
		"of which only the one before is acknowledged":                    {&traffic.Observation{Knowledge: traffic.Proven, Sequence: 6, Wanted: 1, Acknowledged: 1}, hold, time.Hour, release.Acknowledging},
		"that no proxy could acknowledge":                                 {&traffic.Observation{Knowledge: traffic.NoProxies}, proceed, time.Hour, release.Unrouted},
		"past which older connections may go":                             {&traffic.Observation{Knowledge: traffic.Unknown, Sequence: 7, Wanted: 1, Acknowledged: 1, NotYetRedirected: []string{"shop/a"}}, proceed, time.Hour, release.NotYetRedirected},
		"before the deadline":                                             {one, hold, 59 * time.Second, release.Acknowledging},
		"after the deadline":                                              {one, hold, time.Minute, release.Overdue},
		"before the deadline of a release that proceeds":                  {one, proceed, 59 * time.Second, release.Acknowledging},
		"after the deadline of a release that proceeds":                   {one, proceed, time.Minute, release.Proceeded},
		"that proceeds and that no proxy has acknowledged":                {none, proceed, time.Hour, release.Overdue},
		"of which nothing is known":                                       {nil, proceed, time.Hour, release.Unobserved},
		"of which a replica with all proxies that miss it is silent":      {&traffic.Observation{Knowledge: traffic.Unknown, Sequence: 6, Wanted: 1, Acknowledged: 1, Unheard: []string{"b"}}, proceed, time.Hour, release.Unobserved},
		"that a proxy has passed where it cannot be asked":                {&traffic.Observation{Knowledge: traffic.Accepted, Sequence: 8}, hold, 0, release.Acknowledged},
		"that proxies that are out of sync miss beside a silent replica":  {&traffic.Observation{Knowledge: traffic.Unknown, Sequence: 6, Wanted: 1, OutOfSync: late, Unheard: []string{"b"}}, hold, time.Hour, release.Overdue},
		"that proxies that are out of sync miss beside older connections": {&traffic.Observation{Knowledge: traffic.Unknown, Sequence: 6, Wanted: 1, OutOfSync: late, NotYetRedirected: []string{"shop/b"}}, hold, time.Second, release.Acknowledging},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			decided := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			if got := release.StandingOf(tc.seen, 7, tc.policy, decided, decided.Add(tc.after)); got != tc.want {
				t.Errorf("it is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestThePolicyOfARelease(t *testing.T) {
	tests := map[string]struct {
		spec *v1alpha1.Acknowledgment
		want release.Policy
	}{
		"without one":                   {nil, release.Policy{Deadline: 10 * time.Minute}},
		"with nothing in it":            {&v1alpha1.Acknowledgment{}, release.Policy{Deadline: 10 * time.Minute}},
		"with a deadline":               {&v1alpha1.Acknowledgment{Deadline: &metav1.Duration{Duration: time.Hour}, OnTimeout: v1alpha1.TimeoutHold}, release.Policy{Deadline: time.Hour}},
		"without a time to wait":        {&v1alpha1.Acknowledgment{Deadline: &metav1.Duration{}}, release.Policy{Deadline: 10 * time.Minute}},
		"that proceeds":                 {&v1alpha1.Acknowledgment{OnTimeout: v1alpha1.TimeoutProceed}, release.Policy{Deadline: 10 * time.Minute, Proceed: true}},
		"without other namespaces":      {&v1alpha1.Acknowledgment{Namespaces: v1alpha1.AcknowledgedBySame}, release.Policy{Deadline: 10 * time.Minute, Same: true}},
		"with words of a later version": {&v1alpha1.Acknowledgment{OnTimeout: "Abort", Namespaces: "Selected"}, release.Policy{Deadline: 10 * time.Minute}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, release.PolicyOf(tc.spec)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
