// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
)

// clamped waits until a release says that the canary is, or is not.
func (s *shop) clamped(r *v1alpha1.ABRelease, want bool) {
	s.t.Helper()
	s.wait(r, "whether it is clamped", func(r *v1alpha1.ABRelease) bool {
		return v1alpha1.IsDegradedFor(r.Status.Conditions, v1alpha1.ReasonNoReadyEndpoints) == want
	})
}

func TestAVariationWithoutEndpointsGivesItsShareToTheStableOne(t *testing.T) {
	s, canary := shopWithTwo(t)
	r := s.start(leads)
	proxy, front := s.proxy(r, "front-0")
	release := s.release("web", "{type: Percentage, percentages: {stable: 50, canary: 50}}")
	s.split(release, "stable 50 / canary 50")
	sequence := release.Status.Effective.Sequence
	s.carries(proxy, sequence)

	s.ready(canary, false)
	gone := time.Now()
	s.carries(proxy, sequence+1)
	t.Logf("the proxy had it %s after the endpoint was gone", time.Since(gone))
	s.clamped(release, true)
	if release.Status.Split != "stable 100 / canary 0" || *release.Status.Wanted[1].Weight != 5_000 {
		t.Errorf("in force is %s, wanted %v", release.Status.Split, release.Status.Wanted)
	}
	if got := count(t, front, 200, nil); got["200 stable"] != 200 {
		t.Errorf("the requests went to %v", got)
	}
	s.told(release, "Clamped", "canary has no ready endpoints")

	s.ready(canary, true)
	s.clamped(release, false)
	s.carries(proxy, sequence+2)
	s.split(release, "stable 50 / canary 50")
	s.told(release, "Unclamped", "canary has its 50 % back")
	if held := time.Since(gone); held < 9*time.Second {
		t.Errorf("it has its share back after %s", held)
	}
	reaches(t, front, "200 canary")
}

// A canary that has no pods yet gets no requests when its release is made.
func TestAReleaseBeforeItsCanary(t *testing.T) {
	s := newShop(t)
	s.service("web")
	s.backend("web-stable", "web", "stable")
	r := s.start(leads)
	proxy, front := s.proxy(r, "front-0")
	release := s.release("web", "{type: Percentage, percentages: {stable: 50, canary: 50}}")
	s.clamped(release, true)
	if is := release.Status.Effective.Sequence; is != 1 || release.Status.Split != "stable 100 / canary 0" {
		t.Errorf("in force is %s with sequence %d", release.Status.Split, is)
	}
	s.carries(proxy, 1)
	if got := count(t, front, 100, nil); got["200 stable"] != 100 {
		t.Errorf("the requests went to %v", got)
	}
}

// A proxy goes on with what it has, and follows the Service without the release.
func TestAServiceWhoseReleaseIsDeletedIsServedWithoutOne(t *testing.T) {
	s, _ := shopWithTwo(t)
	plain := s.plain("web", backend.Start(t, "plain"))
	r := s.start(leads)
	proxy, front := s.proxy(r, "front-0")
	reaches(t, front, "200 plain")
	release := s.release("web", "{type: Percentage, percentages: {stable: 50, canary: 50}}")
	s.split(release, "stable 50 / canary 50")
	s.carries(proxy, release.Status.Effective.Sequence)
	s.patch(release, "spec: {trafficSplit: {percentages: {stable: 60, canary: 40}}}")
	s.split(release, "stable 60 / canary 40")
	last := release.Status.Effective.Sequence
	s.carries(proxy, last)
	s.must(admin.Delete(t.Context(), release))
	reaches(t, front, "200 plain")
	settled, err := sequence(t, proxy)
	if err != nil || settled <= last {
		t.Errorf("the proxy has sequence %d after %d: %v", settled, last, err)
	}

	// Another release begins above it, and an endpoint that changes meanwhile is seen.
	s.must(admin.Delete(t.Context(), plain))
	again := s.release("web", "{type: Percentage, percentages: {stable: 0, canary: 100}}")
	s.split(again, "stable 0 / canary 100")
	if is := again.Status.Effective.Sequence; is <= settled {
		t.Errorf("the next one begins with %d after %d", is, settled)
	}
	s.carries(proxy, again.Status.Effective.Sequence)
	reaches(t, front, "200 canary")
}

// A discovery server that was just started, and one that does not lead, say what the
// one before has said.
func TestAProxyIsNeverMovedBackByARestart(t *testing.T) {
	s, _ := shopWithTwo(t)
	s.plain("web", backend.Start(t, "plain"))
	r := s.start(leads)
	proxy, front := s.proxy(r, "front-0")
	release := s.release("web", "{type: Percentage, percentages: {stable: 0, canary: 100}}")
	s.split(release, "stable 0 / canary 100")
	s.patch(release, "spec: {variations: "+both+", trafficSplit: {overrideHeader: x-variation}}")
	s.wait(release, "the second decision", func(r *v1alpha1.ABRelease) bool { return r.Status.Effective.Sequence == 2 })
	s.carries(proxy, 2)

	r.stop()
	follower := s.startAt(r.address, r, follows)
	s.connected(proxy)
	for range 100 {
		if got, _ := ask(t, front); got != "200 canary" {
			t.Fatalf("with a restarted server it answers %q", got)
		}
	}
	if is, err := sequence(t, proxy); err != nil || is != 2 {
		t.Errorf("the proxy has sequence %d: %v", is, err)
	}
	// While nobody leads, the release goes: who follows knows what was passed.
	s.must(admin.Delete(t.Context(), release))
	reaches(t, front, "200 plain")
	settled, err := sequence(t, proxy)
	if err != nil || settled <= 2 {
		t.Errorf("the proxy has sequence %d: %v", settled, err)
	}

	follower.stop()
	s.startAt(r.address, r, leads)
	s.connected(proxy)
	again := s.release("web", "{type: Percentage, percentages: {stable: 100, canary: 0}}")
	s.split(again, "stable 100 / canary 0")
	if is := again.Status.Effective.Sequence; is <= settled {
		t.Errorf("the next release begins with %d after %d", is, settled)
	}
	s.carries(proxy, again.Status.Effective.Sequence)
}

// A canary that the Service selects gets requests of clients without a proxy, and that
// is said.
func TestACanaryThatTheServiceSelectsIsNotExclusive(t *testing.T) {
	s := newShop(t)
	s.service("web")
	s.backend("web-stable", "web", "stable")
	s.start(leads)
	release := s.release("web", "{type: Percentage, percentages: {stable: 100, canary: 0}}")
	s.split(release, "stable 100 / canary 0")
	s.patch(release, `spec: {stable: stable, variations: [{name: stable, selector: {matchLabels: {app: web}}}, {name: canary, selector: {matchLabels: {version: stable, track: canary}}}]}`)
	pod := s.backend("web-canary", "web", "stable")
	pod.Labels["track"] = "canary"
	pod.Labels["app"] = "web"
	s.must(admin.Update(t.Context(), pod))
	s.wait(release, "it says so", func(r *v1alpha1.ABRelease) bool {
		// The pod is the stable one's, which comes first.
		c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && contains(c.Message, "counted as the first's")
	})
	s.patch(release, `spec: {stable: stable, variations: [{name: stable, selector: {matchLabels: {app: web}, matchExpressions: [{key: track, operator: DoesNotExist}]}}, {name: canary, selector: {matchLabels: {track: canary}}}]}`)
	s.wait(release, "it is not exclusive", func(r *v1alpha1.ABRelease) bool {
		return v1alpha1.IsDegradedFor(r.Status.Conditions, v1alpha1.ReasonSelectorsOverlap)
	})
	s.told(release, string(ir.SelectorsOverlap), "at every weight")
}

// quarantined pods get no requests, whatever divides them.
func TestAWorkloadInQuarantineGetsNoRequests(t *testing.T) {
	s, canary := shopWithTwo(t)
	r := s.start(leads)
	_, front := s.proxy(r, "front-0")
	release := s.release("web", "{type: Percentage, percentages: {stable: 0, canary: 100}}")
	s.split(release, "stable 0 / canary 100")
	reaches(t, front, "200 canary")
	s.quarantine("Pod", canary.Name)
	s.clamped(release, true)
	reaches(t, front, "200 stable")
}

// plain makes a Service a managed one, with an address in a slice.
func (s *shop) plain(name, address string) *discoveryv1.EndpointSlice {
	s.t.Helper()
	s.manage(name)
	slice := s.slice(name, address)
	s.create(slice)
	return slice
}
