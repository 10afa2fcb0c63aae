// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"maps"
	"math"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// shares fails unless the canary's share of the answers is as likely as not to be
// that percentage: within five standard deviations.
func (m *mesh) shares(of string, v visits, percent float64) {
	m.Helper()
	m.sharesOf(of, v, percent, v.answered())
	if extra := slices.DeleteFunc(slices.Collect(maps.Keys(v.Answered)), func(version string) bool {
		return version == "stable" || version == "canary"
	}); len(extra) > 0 {
		m.Errorf("%s: answers of %q", of, extra)
	}
}

// sharesOf is shares where not each answer was drawn, but each of so many users.
func (m *mesh) sharesOf(of string, v visits, percent float64, drawn uint64) {
	m.Helper()
	p := percent / 100
	share := float64(v.Answered["canary"]) / float64(v.answered())
	if bound := deviations(p, drawn); math.Abs(share-p) > bound {
		m.Errorf("%s: the canary has %.1f %% of %d answers, want %.0f %% ± %.1f: %+v", of, 100*share, v.answered(), percent, 100*bound, v)
	}
}

// deviations are five standard deviations of a share of so many draws: with four, one
// run in 900 would fail by chance.
func deviations(p float64, drawn uint64) float64 { return 5 * math.Sqrt(p*(1-p)/float64(drawn)) }

// observed waits until the status tells by what the proxies have counted that the canary
// has that share. It is rounded to whole percents.
func (m *mesh) observed(percent float64) {
	var requests int64
	r := m.release("observed", func(r *v1alpha1.ABRelease) bool {
		requests = 0
		for _, o := range r.Status.Observed {
			if o.Requests == nil || *o.Requests == 0 || o.SharePercent == nil {
				return false
			}
			requests += *o.Requests
		}
		return len(r.Status.Observed) == 2 && requests >= 780
	})
	i := slices.IndexFunc(r.Status.Observed, func(o v1alpha1.ObservedVariation) bool { return o.Variation == "canary" })
	if i < 0 {
		m.Fatalf("the canary is not observed: %+v", r.Status.Observed)
	}
	share, bound := float64(*r.Status.Observed[i].SharePercent), 1+100*deviations(percent/100, uint64(requests)) //nolint:gosec // not negative
	m.Logf("the status tells that the canary has %.0f %% of %d requests", share, requests)
	if math.Abs(share-percent) > bound {
		m.Errorf("the canary is told to have %.0f %%, want %.0f ± %.1f", share, percent, bound)
	}
}
