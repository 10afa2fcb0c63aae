// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// crowd is how many users a test asks for.
const crowd = 400

// Routing runs what every router must pass whose requests can be asked for.
func Routing(t *testing.T, begin func(*testing.T) Asker) {
	for name, test := range map[string]func(*testing.T, Asker){
		"users are divided by the weights, and stay while the share grows":         testUsersStay,
		"a session stays while the share grows":                                    testSessionStays,
		"a visitor gets a cookie and stays while the share grows":                  testVisitorStays,
		"of three variations users leave only the stable one for that which grows": testThree,
		"a request without a key is drawn by itself":                               testDrawn,
		"another salt divides users independently":                                 testSalt,
		"a header that is mapped comes before the weights":                         testMatch,
		"a header that names a variation comes before one that is mapped":          testOverride,
		"pods are those of the selectors that were applied last":                   testSelectors,
		"requests of another Service are not divided":                              testOtherServices,
		"a release that names another Service leaves the former one":               testServiceChanges,
		"a removed split divides no requests, and other releases go on":            testRemoved,
		"a refused split, or one that goes back, leaves requests as they were":     testRefusedChangesNothing,
		"later changes by the caller of its own split have no effect":              testOwnCopy,
	} {
		t.Run(name, func(t *testing.T) { test(t, begin(t)) })
	}
}

// ask for a request to Service web.
func ask(t *testing.T, stand Asker, headers, cookies map[string]string) Answer {
	t.Helper()
	return askFor(t, stand, Request{Service: web, Headers: headers, Cookies: cookies})
}

func askFor(t *testing.T, stand Asker, request Request) Answer {
	t.Helper()
	answer, err := stand.Ask(request)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// goes demands where a request to Service web goes.
func goes(t *testing.T, stand Asker, what string, headers map[string]string, want string) {
	t.Helper()
	if got := ask(t, stand, headers, nil); !got.Divided || got.Variation.Name != want {
		t.Errorf("%s goes to %q, want %s", what, got.Variation.Name, want)
	}
}

// canaries are those of the crowd whose request goes to the canary.
func canaries(t *testing.T, stand Asker, headers, cookies func(i int) map[string]string) map[int]bool {
	t.Helper()
	of := func(by func(int) map[string]string, i int) map[string]string {
		if by == nil {
			return nil
		}
		return by(i)
	}
	got := map[int]bool{}
	for i := range crowd {
		if ask(t, stand, of(headers, i), of(cookies, i)).Variation.Name == "canary" {
			got[i] = true
		}
	}
	return got
}

func byUser(i int) map[string]string { return map[string]string{"X-User": name(i)} }

// about demands a share, within six standard deviations, which one run in a billion is not.
func about(t *testing.T, what string, got, of int, share float64) {
	t.Helper()
	if deviation := math.Sqrt(float64(of) * share * (1 - share)); math.Abs(float64(got)-float64(of)*share) > 6*deviation+1 {
		t.Errorf("%s: %d of %d, want %.0f", what, got, of, float64(of)*share)
	}
}

// stays demands that nobody leaves the canary while its share grows from nothing to all.
func stays(t *testing.T, stand Asker, key traffic.Key, headers, cookies func(i int) map[string]string) {
	t.Helper()
	var before map[int]bool
	for i, weight := range []traffic.Weight{0, 1_000, 3_000, traffic.Total} {
		split := Split(uint64(i+1), weight) //nolint:gosec // it is small
		split.Key = key
		apply(t, stand, split)
		now := canaries(t, stand, headers, cookies)
		about(t, "those on the canary", len(now), crowd, float64(weight)/float64(traffic.Total))
		for user := range before {
			if !now[user] {
				t.Errorf("%s leaves the canary while its share grows to %d", name(user), weight)
			}
		}
		before = now
	}
}

func testUsersStay(t *testing.T, stand Asker) {
	stays(t, stand, traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}, byUser, nil)
}

func testSessionStays(t *testing.T, stand Asker) {
	stays(t, stand, traffic.Key{Kind: traffic.ByCookie, Name: "session"}, nil, func(i int) map[string]string { return map[string]string{"session": name(i)} })
}

func testVisitorStays(t *testing.T, stand Asker) {
	key := traffic.Key{Kind: traffic.ByVisitor, Name: "visitor"}
	split := Split(1, 3_000)
	split.Key = key
	apply(t, stand, split)
	first, on := map[int]string{}, map[int]string{}
	for i := range crowd {
		answer := ask(t, stand, nil, nil)
		if answer.Visitor == "" {
			t.Fatal("a visitor without a cookie gets no cookie")
		}
		first[i], on[i] = answer.Visitor, answer.Variation.Name
	}
	cookies := func(i int) map[string]string { return map[string]string{"visitor": first[i]} }
	for i := range crowd {
		if again := ask(t, stand, nil, cookies(i)); again.Visitor != "" || again.Variation.Name != on[i] {
			t.Fatalf("a visitor of %s is on %s then, and is given the cookie %q", on[i], again.Variation.Name, again.Visitor)
		}
	}
	split = Split(2, 6_000)
	split.Key = key
	apply(t, stand, split)
	now := canaries(t, stand, nil, cookies)
	about(t, "visitors on the canary", len(now), crowd, 0.6)
	for i := range crowd {
		if on[i] == "canary" && !now[i] {
			t.Errorf("visitor %d leaves the canary while its share grows", i)
		}
	}
}

func testThree(t *testing.T, stand Asker) {
	next := traffic.Variation{Name: "next", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"version": "next"}}}
	on := map[int]string{}
	for i, step := range []struct {
		canary, next traffic.Weight
		grows        string
	}{{1_000, 2_000, ""}, {4_000, 2_000, "canary"}, {4_000, 5_000, "next"}} {
		split := Split(uint64(i+1), step.canary) //nolint:gosec // it is small
		split.Variations = append(split.Variations, next)
		split.Shares[0].Weight -= step.next
		split.Shares[1].Reserved = 4_000
		split.Shares = append(split.Shares, traffic.Share{Variation: "next", Weight: step.next, Reserved: 6_000})
		apply(t, stand, split)
		counts := map[string]int{}
		for user := range crowd {
			is := ask(t, stand, byUser(user), nil).Variation.Name
			if was := on[user]; was != "" && is != was && (was != "stable" || is != step.grows) {
				t.Errorf("%s goes from %s to %s while %s grows", name(user), was, is, step.grows)
			}
			on[user] = is
			counts[is]++
		}
		for _, share := range split.Shares {
			about(t, "those on "+share.Variation, counts[share.Variation], crowd, float64(share.Weight)/float64(traffic.Total))
		}
	}
}

func testDrawn(t *testing.T, stand Asker) {
	for i, key := range []traffic.Key{{}, {Kind: traffic.ByHeader, Name: "x-user"}, {Kind: traffic.ByCookie, Name: "session"}} {
		split := Split(uint64(i+1), 5_000) //nolint:gosec // it is small
		split.Key = key
		apply(t, stand, split)
		about(t, "requests of "+key.Kind.String()+" without a key on the canary", len(canaries(t, stand, nil, nil)), crowd, 0.5)
	}
}

func testSalt(t *testing.T, stand Asker) {
	apply(t, stand, Split(1, 5_000))
	before := canaries(t, stand, byUser, nil)
	other := Split(2, 5_000)
	other.Salt = "another"
	apply(t, stand, other)
	both := 0
	for user := range canaries(t, stand, byUser, nil) {
		if before[user] {
			both++
		}
	}
	about(t, "of those on the canary by one salt, by another", both, len(before), 0.5)
}

func testMatch(t *testing.T, stand Asker) {
	for i, weight := range []traffic.Weight{0, traffic.Total} {
		split := Split(uint64(i+1), weight) //nolint:gosec // it is small
		split.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary", "staff": "stable"}}
		apply(t, stand, split)
		weighed := map[traffic.Weight]string{0: "stable", traffic.Total: "canary"}[weight]
		goes(t, stand, "a value that is mapped", map[string]string{"X-Group": "beta", "X-User": "a"}, "canary")
		goes(t, stand, "a value that is mapped", map[string]string{"X-Group": "staff", "X-User": "a"}, "stable")
		goes(t, stand, "a value that is not mapped", map[string]string{"X-Group": "betas", "X-User": "a"}, weighed)
		goes(t, stand, "a value of another header", map[string]string{"X-Groups": "beta", "X-User": "a"}, weighed)
	}
}

func testOverride(t *testing.T, stand Asker) {
	split := Split(1, 0)
	split.Override = "x-variation"
	split.Match = traffic.Match{Header: "x-group", Values: map[string]string{"staff": "stable"}}
	apply(t, stand, split)
	goes(t, stand, "a header that names the canary", map[string]string{"X-Variation": "canary", "X-Group": "staff"}, "canary")
	goes(t, stand, "a header that names no variation", map[string]string{"X-Variation": "canary2"}, "stable")
}

func testSelectors(t *testing.T, stand Asker) {
	apply(t, stand, Split(1, traffic.Total))
	split := Split(1, traffic.Total)
	if d := cmp.Diff(split.Variations[1], ask(t, stand, nil, nil).Variation); d != "" {
		t.Errorf("the variation (-want +got):\n%s", d)
	}
	split.Sequence, split.Variations[1].Selector = 2, &metav1.LabelSelector{MatchLabels: map[string]string{"version": "next"}}
	apply(t, stand, split)
	if d := cmp.Diff(split.Variations[1], ask(t, stand, nil, nil).Variation); d != "" {
		t.Errorf("the variation with another selector (-want +got):\n%s", d)
	}
}

func undivided(t *testing.T, stand Asker, services ...types.NamespacedName) {
	t.Helper()
	for _, service := range services {
		if answer := askFor(t, stand, Request{Service: service}); answer.Divided || answer.Visitor != "" {
			t.Errorf("a request to Service %s goes to %q", service, answer.Variation.Name)
		}
	}
}

func testOtherServices(t *testing.T, stand Asker) {
	undivided(t, stand, web)
	apply(t, stand, Split(1, traffic.Total))
	goes(t, stand, "a request", nil, "canary")
	undivided(t, stand, types.NamespacedName{Namespace: "shop", Name: "pay"}, types.NamespacedName{Namespace: "bank", Name: "web"})
}

func testServiceChanges(t *testing.T, stand Asker) {
	apply(t, stand, Split(1, traffic.Total))
	split := Split(2, traffic.Total)
	split.Service = "pay"
	apply(t, stand, split)
	undivided(t, stand, web)
	if answer := askFor(t, stand, Request{Service: types.NamespacedName{Namespace: "shop", Name: "pay"}}); answer.Variation.Name != "canary" {
		t.Errorf("a request to the Service that is named now goes to %q", answer.Variation.Name)
	}
}

func testRemoved(t *testing.T, stand Asker) {
	other := Split(1, traffic.Total)
	other.Namespace = "bank"
	apply(t, stand, other)
	apply(t, stand, Split(1, traffic.Total))
	if err := stand.Router(release).Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	undivided(t, stand, web)
	if answer := askFor(t, stand, Request{Service: types.NamespacedName{Namespace: "bank", Name: "web"}}); answer.Variation.Name != "canary" {
		t.Errorf("a request of the release that was not removed goes to %q", answer.Variation.Name)
	}
}

func testRefusedChangesNothing(t *testing.T, stand Asker) {
	apply(t, stand, Split(2, traffic.Total))
	broken := Split(3, 0)
	broken.Variations = broken.Variations[:1]
	for _, split := range []traffic.Split{broken, Split(1, 0)} {
		if err := stand.Router(release).Apply(t.Context(), split); err == nil {
			t.Errorf("sequence %d is applied", split.Sequence)
		}
		goes(t, stand, "a request", nil, "canary")
	}
}

func testOwnCopy(t *testing.T, stand Asker) {
	split := Split(1, traffic.Total)
	split.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary"}}
	apply(t, stand, split)
	split.Shares[0].Weight, split.Shares[1].Weight, split.Match.Values["beta"] = traffic.Total, 0, "stable"
	goes(t, stand, "a request", nil, "canary")
	goes(t, stand, "a value that is mapped", map[string]string{"X-Group": "beta"}, "canary")
}
