// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// cohorts are the checks of routers that keep visitors.
func cohorts() []check {
	sticky := asksWith(func(c traffic.Capabilities) bool { return c.Sticky })
	visitors := asksWith(func(c traffic.Capabilities) bool { return c.Sticky && c.AnonymousVisitors })
	return []check{
		{"users are divided by the weights, and stay while the share grows", sticky, testUsersStay},
		{"a session stays while the share grows", sticky, testSessionStays},
		{"a visitor gets a cookie and stays while the share grows", visitors, testVisitorStays},
		{"of three variations users leave only the stable one for that which grows", sticky, testThree},
		{"another salt divides users independently", sticky, testSalt},
	}
}

// name of a user; all have another one.
func name(i int) string { return fmt.Sprint("user-", i) }

func byUser(i int) map[string]string { return map[string]string{"X-User": name(i)} }

// canaries are those of the crowd whose request goes to the canary.
func (b *bench) canaries(headers, cookies func(i int) map[string]string) map[int]bool {
	b.Helper()
	of := func(by func(int) map[string]string, i int) map[string]string {
		if by == nil {
			return nil
		}
		return by(i)
	}
	got := map[int]bool{}
	for i := range crowd {
		if b.ask(of(headers, i), of(cookies, i)).Variation.Name == "canary" {
			got[i] = true
		}
	}
	return got
}

// stays demands that no user leaves the canary while its share grows from 0 to all.
func (b *bench) stays(key traffic.Key, headers, cookies func(i int) map[string]string) {
	b.Helper()
	var before map[int]bool
	for i, weight := range []traffic.Weight{0, 1_000, 3_000, traffic.Total} {
		split := Split(uint64(i+1), weight) //nolint:gosec // it is small
		split.Key = key
		b.apply(split)
		now := b.canaries(headers, cookies)
		b.about("those on the canary", len(now), crowd, float64(weight)/float64(traffic.Total))
		for user := range before {
			if !now[user] {
				b.Errorf("%s leaves the canary while its share grows to %d", name(user), weight)
			}
		}
		before = now
	}
}

func testUsersStay(b *bench) {
	b.stays(traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}, byUser, nil)
}

func testSessionStays(b *bench) {
	b.stays(traffic.Key{Kind: traffic.ByCookie, Name: "session"}, nil, func(i int) map[string]string { return map[string]string{"session": name(i)} })
}

func testVisitorStays(b *bench) {
	key := traffic.Key{Kind: traffic.ByVisitor, Name: "visitor"}
	split := Split(1, 3_000)
	split.Key = key
	b.apply(split)
	first, on := map[int]string{}, map[int]string{}
	for i := range crowd {
		answer := b.ask(nil, nil)
		if answer.Visitor == "" {
			b.Fatal("a visitor without a cookie gets no cookie")
		}
		first[i], on[i] = answer.Visitor, answer.Variation.Name
	}
	cookies := func(i int) map[string]string { return map[string]string{"visitor": first[i]} }
	for i := range crowd {
		if again := b.ask(nil, cookies(i)); again.Visitor != "" || again.Variation.Name != on[i] {
			b.Fatalf("a visitor of %s is on %s then, and is given the cookie %q", on[i], again.Variation.Name, again.Visitor)
		}
	}
	split = Split(2, 6_000)
	split.Key = key
	b.apply(split)
	now := b.canaries(nil, cookies)
	b.about("visitors on the canary", len(now), crowd, 0.6)
	for i := range crowd {
		if on[i] == "canary" && !now[i] {
			b.Errorf("visitor %d leaves the canary while its share grows", i)
		}
	}
}

func testThree(b *bench) {
	on := map[int]string{}
	for i, step := range []struct {
		canary, next traffic.Weight
		grows        string
	}{{1_000, 2_000, ""}, {4_000, 2_000, "canary"}, {4_000, 5_000, "next"}} {
		split := next(Split(uint64(i+1), step.canary), 6_000, step.next) //nolint:gosec // it is small
		b.apply(split)
		counts := map[string]int{}
		for user := range crowd {
			is := b.ask(byUser(user), nil).Variation.Name
			if was := on[user]; was != "" && is != was && (was != "stable" || is != step.grows) {
				b.Errorf("%s goes from %s to %s while %s grows", name(user), was, is, step.grows)
			}
			on[user] = is
			counts[is]++
		}
		for _, share := range split.Shares {
			b.about("those on "+share.Variation, counts[share.Variation], crowd, float64(share.Weight)/float64(traffic.Total))
		}
	}
}

func testSalt(b *bench) {
	b.apply(Split(1, 5_000))
	before := b.canaries(byUser, nil)
	other := Split(2, 5_000)
	other.Salt = "another"
	b.apply(other)
	both := 0
	for user := range b.canaries(byUser, nil) {
		if before[user] {
			both++
		}
	}
	b.about("of those on the canary by one salt, by another", both, len(before), 0.5)
}
