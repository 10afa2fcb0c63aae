// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

const (
	// crowd is how many users, or requests, a check asks for.
	crowd = 400
	// steps is how many splits a check applies under load.
	steps = 100
)

func shares() []check {
	sticky := asksWith(func(c traffic.Capabilities) bool { return c.Sticky })
	loads := func(_ Maker, s Stand) bool {
		_, is := s.(Loader)
		return is
	}
	return []check{
		{"no request is lost while the split changes", loads, testLoad},
		{"requests are divided by the weights", asks, testWeights},
		{"requests are divided between three variations by the weights", asks, testThreeWeights},
		{"a variation at weight 0 gets no request", asks, testZero},
		{"a request without a key is drawn by itself", sticky, testDrawn},
	}
}

// about demands a share within six standard deviations of the binomial distribution, and one request more; fewer
// than one run in a billion is outside.
func (b *bench) about(what string, got, of int, share float64) {
	b.Helper()
	if deviation := math.Sqrt(float64(of) * share * (1 - share)); math.Abs(float64(got)-float64(of)*share) > 6*deviation+1 {
		b.Errorf("%s: %d of %d, want %.0f", what, got, of, float64(of)*share)
	}
}

// share demands a share of requests that no key decides: exact to one request of a round robin.
func (b *bench) share(what string, got, of int, weight traffic.Weight) {
	b.Helper()
	share := float64(weight) / float64(traffic.Total)
	if !b.RoundRobin {
		b.about(what, got, of, share)
		return
	}
	if math.Abs(float64(got)-float64(of)*share) > 1 {
		b.Errorf("%s: %d of %d, want %.1f to one request", what, got, of, float64(of)*share)
	}
}

// tally counts the requests without a key that go to each variation.
func (b *bench) tally() map[string]int {
	b.Helper()
	counts := map[string]int{}
	for range crowd {
		counts[b.ask(nil, nil).Variation.Name]++
	}
	return counts
}

func testLoad(b *bench) {
	b.apply(b.split(1, 0))
	stop := b.stand.(Loader).Load(web) //nolint:forcetypeassert // the check fits Loaders alone
	for i := range steps {
		b.apply(b.split(uint64(i+2), traffic.Total/steps*traffic.Weight(i+1))) //nolint:gosec // it is small
	}
	if sent, lost := stop(); lost > 0 || sent == 0 {
		b.Errorf("%d of %d requests are lost over %d steps", lost, sent, steps)
	}
}

func testWeights(b *bench) {
	for i, weight := range []traffic.Weight{1_000, 5_000, 9_000} {
		split := b.split(uint64(i+1), weight) //nolint:gosec // it is small
		split.Key = traffic.Key{}
		b.apply(split)
		b.share("requests on the canary", b.tally()["canary"], crowd, weight)
	}
}

// next adds a third variation to a split, which takes its weight from the stable one.
func next(split traffic.Split, reserved, weight traffic.Weight) traffic.Split {
	split.Variations = append(split.Variations, traffic.Variation{
		Name: "next", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"version": "next"}},
	})
	split.Shares[0].Weight -= weight
	split.Shares[1].Reserved = traffic.Total - reserved
	split.Shares = append(split.Shares, traffic.Share{Variation: "next", Weight: weight, Reserved: reserved})
	return split
}

func testThreeWeights(b *bench) {
	split := next(b.split(1, 1_000), 6_000, 2_500)
	split.Key = traffic.Key{}
	b.apply(split)
	counts := b.tally()
	for _, share := range split.Shares {
		b.share("requests on "+share.Variation, counts[share.Variation], crowd, share.Weight)
	}
}

func testZero(b *bench) {
	for i, tc := range []struct {
		canary traffic.Weight
		only   string
	}{{0, "stable"}, {traffic.Total, "canary"}, {0, "stable"}} {
		split := b.split(uint64(i+1), tc.canary) //nolint:gosec // it is small
		split.Key = traffic.Key{}
		b.apply(split)
		if counts := b.tally(); counts[tc.only] != crowd {
			b.Errorf("with the canary at %s %% requests go to %v, want all at %s", tc.canary.Percent(), counts, tc.only)
		}
	}
}

func testDrawn(b *bench) {
	for i, key := range []traffic.Key{{Kind: traffic.ByHeader, Name: "x-user"}, {Kind: traffic.ByCookie, Name: "session"}} {
		split := Split(uint64(i+1), 5_000) //nolint:gosec // it is small
		split.Key = key
		b.apply(split)
		b.about("requests of "+key.Kind.String()+" without a key on the canary", b.tally()["canary"], crowd, 0.5)
	}
}
