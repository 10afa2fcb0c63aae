// SPDX-License-Identifier: Apache-2.0

package routertest

import "github.com/plumbline-dev/plumbline/pkg/traffic"

// headers are the checks of routers that go by a header before the weights.
func headers() []check {
	maps := asksWith(func(c traffic.Capabilities) bool { return c.HeaderMap })
	overrides := asksWith(func(c traffic.Capabilities) bool { return c.Override })
	both := asksWith(func(c traffic.Capabilities) bool { return c.HeaderMap && c.Override })
	return []check{
		{"a header that is mapped comes before the weights", maps, testMatch},
		{"a header that names a variation comes before the weights", overrides, testOverride},
		{"a header that names a variation comes before one that is mapped", both, testOverrideFirst},
	}
}

func testMatch(b *bench) {
	for i, weight := range []traffic.Weight{0, traffic.Total} {
		split := b.split(uint64(i+1), weight) //nolint:gosec // it is small
		split.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary", "staff": "stable"}}
		b.apply(split)
		weighed := map[traffic.Weight]string{0: "stable", traffic.Total: "canary"}[weight]
		b.goes("a value that is mapped", map[string]string{"X-Group": "beta", "X-User": "a"}, "canary")
		b.goes("a value that is mapped", map[string]string{"X-Group": "staff", "X-User": "a"}, "stable")
		b.goes("a value that is not mapped", map[string]string{"X-Group": "betas", "X-User": "a"}, weighed)
		b.goes("a value of another header", map[string]string{"X-Groups": "beta", "X-User": "a"}, weighed)
	}
}

func testOverride(b *bench) {
	split := b.split(1, 0)
	split.Override = "x-variation"
	b.apply(split)
	b.goes("a header that names the canary", map[string]string{"X-Variation": "canary"}, "canary")
	b.goes("a header that names no variation", map[string]string{"X-Variation": "canary2"}, "stable")
}

func testOverrideFirst(b *bench) {
	split := b.split(1, 0)
	split.Override = "x-variation"
	split.Match = traffic.Match{Header: "x-group", Values: map[string]string{"staff": "stable"}}
	b.apply(split)
	b.goes("a header that names the canary", map[string]string{"X-Variation": "canary", "X-Group": "staff"}, "canary")
}
