// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAReleaseDividesTheRequestsOfAService(t *testing.T) {
	s, _ := shopWithTwo(t)
	r := s.start(leads)
	proxy, front := s.proxy(r, "front-0")
	release := s.release("web", "{type: Percentage, percentages: {stable: 90, canary: 10}}")
	s.split(release, "stable 90 / canary 10")
	first := release.Status.Effective.Sequence
	s.carries(proxy, first)
	shares(t, count(t, front, 2_000, nil), 2_000, 0.1)

	s.patch(release, "spec: {trafficSplit: {percentages: {stable: 50, canary: 50}}}")
	s.split(release, "stable 50 / canary 50")
	if is := release.Status.Effective.Sequence; is != first+1 {
		t.Errorf("the sequence is %d after %d", is, first)
	}
	s.carries(proxy, first+1)
	shares(t, count(t, front, 2_000, nil), 2_000, 0.5)
	s.told(release, "SplitChanged", "stable 50 / canary 50")

	s.patch(release, "spec: {trafficSplit: {percentages: {stable: 100, canary: 0}}}")
	s.split(release, "stable 100 / canary 0")
	s.carries(proxy, first+2)
	if got := count(t, front, 500, nil); got["200 stable"] != 500 {
		t.Errorf("at 0 %% the requests went to %v", got)
	}
}

// visitors have a cookie that the proxy gave them, and where they were sent.
func visitors(t *testing.T, front string, n int) (cookies, at []string) {
	t.Helper()
	for range n {
		answer, cookie := ask(t, front)
		if cookie == "" {
			t.Fatal("a visitor was given no cookie")
		}
		cookies, at = append(cookies, cookie), append(at, answer)
	}
	return cookies, at
}

func TestVisitorsStayWhileTheirVariationGrows(t *testing.T) {
	const n = 300
	s, _ := shopWithTwo(t)
	r := s.start(leads)
	proxy, front := s.proxy(r, "front-0")
	release := s.release("web", "{type: Sticky, sticky: {cookie: plumb}, percentages: {stable: 80, canary: 20}}")
	s.split(release, "stable 80 / canary 20")
	sequence := release.Status.Effective.Sequence
	s.carries(proxy, sequence)
	cookies, at := visitors(t, front, n)
	for _, percent := range []int{20, 45, 70, 100} {
		if percent > 20 {
			s.patch(release, fmt.Sprintf("spec: {trafficSplit: {percentages: {stable: %d, canary: %d}}}", 100-percent, percent))
			s.split(release, fmt.Sprintf("stable %d / canary %d", 100-percent, percent))
			sequence++
			s.carries(proxy, sequence)
		}
		now := map[string]int{}
		for i, cookie := range cookies {
			answer, _ := ask(t, front, "Cookie", cookie)
			if now[answer]++; at[i] == "200 canary" && answer != "200 canary" {
				t.Errorf("at %d %% a visitor goes from %q to %q", percent, at[i], answer)
			}
			at[i] = answer
		}
		shares(t, now, n, float64(percent)/100)
	}
}

func TestAHeaderLeadsToAVariation(t *testing.T) {
	s, _ := shopWithTwo(t)
	r := s.start(leads)
	proxy, front := s.proxy(r, "front-0")
	release := s.release("web", `{type: Header, percentages: {stable: 100, canary: 0}, headerMatch: {header: X-Beta, values: {"yes": canary, "no": stable}}, overrideHeader: X-Variation}`)
	s.split(release, "stable 100 / canary 0")
	s.carries(proxy, release.Status.Effective.Sequence)
	for name, tc := range map[string]struct {
		headers []string
		want    string
	}{
		"no header":                      {nil, "200 stable"},
		"a value that is mapped":         {[]string{"x-beta", "yes"}, "200 canary"},
		"one that is not":                {[]string{"x-beta", "perhaps"}, "200 stable"},
		"the override":                   {[]string{"x-variation", "canary"}, "200 canary"},
		"the override before the header": {[]string{"x-variation", "stable", "x-beta", "yes"}, "200 stable"},
		"an override that names nothing": {[]string{"x-variation", "none"}, "200 stable"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				if got, _ := ask(t, front, tc.headers...); got != tc.want {
					t.Fatalf("it answers %q, want %q", got, tc.want)
				}
			}
		})
	}
}

// stalled waits until a release says that it is, and why.
func (s *shop) stalled(r *v1alpha1.ABRelease, reason, message string) {
	s.t.Helper()
	s.wait(r, "it is stalled: "+reason, func(r *v1alpha1.ABRelease) bool {
		c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionStalled)
		return c != nil && c.Reason == reason && contains(c.Message, message)
	})
}

func TestASecondReleaseOfAServiceIsRefusedWithTheNameOfTheFirst(t *testing.T) {
	s, _ := shopWithTwo(t)
	r := s.start(leads)
	proxy, front := s.proxy(r, "front-0")
	first := s.release("first", "{type: Percentage, percentages: {stable: 100, canary: 0}}")
	s.split(first, "stable 100 / canary 0")
	s.carries(proxy, first.Status.Effective.Sequence)
	second := s.release("second", "{type: Percentage, percentages: {stable: 0, canary: 100}}")
	s.stalled(second, "AnotherSplit", "ABRelease first divides the requests of Service web already")
	s.told(second, "AnotherSplit", "first")
	if second.Status.Effective != nil {
		t.Errorf("of the second one is in force: %+v", second.Status.Effective)
	}
	if got := count(t, front, 100, nil); got["200 stable"] != 100 {
		t.Errorf("the requests went to %v", got)
	}

	// It takes over when the first one goes, above all that proxies have seen of it.
	before := first.Status.Effective.Sequence
	s.must(admin.Delete(t.Context(), first))
	s.split(second, "stable 0 / canary 100")
	if second.Status.Effective.Sequence <= before {
		t.Errorf("the sequence is %d after %d", second.Status.Effective.Sequence, before)
	}
	s.carries(proxy, second.Status.Effective.Sequence)
	reaches(t, front, "200 canary")
}

// What cannot be in force although the API server let it pass.
func TestAnInvalidSpecLeavesInForceWhatWas(t *testing.T) {
	s, _ := shopWithTwo(t)
	r := s.start(asksProxies) // their router knows what proxies cannot carry out
	proxy, front := s.proxy(r, "front-0")
	release := s.release("web", `{type: Header, percentages: {stable: 100, canary: 0}, headerMatch: {header: X-Beta, values: {"yes": canary}}}`)
	s.split(release, "stable 100 / canary 0")
	sequence := release.Status.Effective.Sequence
	s.carries(proxy, sequence)
	s.patch(release, `spec: {trafficSplit: {percentages: {stable: 0, canary: 100}, headerMatch: {values: {"spaces around ": canary}}}}`)
	s.stalled(release, "Invalid", "the former split stays effective")
	if is := release.Status.Effective.Sequence; is != sequence || release.Status.Split != "stable 100 / canary 0" {
		t.Errorf("in force is %s with sequence %d", release.Status.Split, is)
	}
	reaches(t, front, "200 canary", "x-beta", "yes")
	reaches(t, front, "200 stable")

	s.patch(release, `spec: {trafficSplit: {headerMatch: {values: {"spaces around ": null}}}}`)
	s.split(release, "stable 0 / canary 100")
	reaches(t, front, "200 canary")
}
