// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/controller/trafficrouter"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// The steps of a release are in force when the Traefik has them, also after its restart. When the release goes, all
// requests go to the stable variation before the split ends.
func TestAReleaseOverATraefik(t *testing.T) {
	s, _ := shopWithTwo(t)
	e := s.traefikEdge(nil)
	e.startLeader()
	r := s.routed("[{name: " + e.router.Name + "}]")
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	e.wantShare(400, 40)
	s.patch(r, `{spec: {trafficSplit: {percentages: {stable: 50, canary: 50}}}}`)
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 50")
	e.wantShare(400, 200)
	e.Kill()
	s.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "edge/traefik-0")
	e.Run()
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 50")
	e.wantShare(400, 200)
	status := &trafficrouter.Controller{Client: admin, Reports: e.registry.ReportOf, Resolve: resolve, Clock: clock.RealClock{}, Traefiks: e.registry}
	s.seen(status, e.router, "Configured", metav1.ConditionTrue)
	if d := cmp.Diff([]string{"HeaderMap", "Override", "Outcomes"}, e.router.Status.Capabilities); d != "" {
		t.Errorf("the capabilities (-want +got):\n%s", d)
	}
	s.must(admin.Delete(t.Context(), r))
	s.gone(r)
	poll.Until(t, patience, "requests are divided no more", func() error {
		if answer, err := e.askTraefik(t.Context()); err != nil || answer != "plain" {
			return fmt.Errorf("they go to %q (%w)", answer, err)
		}
		return nil
	})
	seen := e.polled.splits()
	if n := len(seen); n < 3 || seen[n-1] != "undivided" || !strings.HasSuffix(seen[n-2], ": canary 0") {
		t.Errorf("the Traefik has polled %q, want that the canary has 0 before the split ends", seen)
	}
}

// A leader that begins knows the splits that are in force before it answers, and no Traefik goes back to a split of
// before, or to none.
func TestALeaderThatIsReplacedTakesNoTraefikBack(t *testing.T) {
	s, _ := shopWithTwo(t)
	e := s.traefikEdge(nil)
	first := e.startLeader()
	r := s.routed("[{name: " + e.router.Name + "}]")
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	s.patch(r, `{spec: {trafficSplit: {percentages: {stable: 50, canary: 50}}}}`)
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 50")
	first.stop()
	e.wantShare(100, 50)
	e.startLeader()
	s.patch(r, `{spec: {trafficSplit: {percentages: {stable: 80, canary: 20}}}}`)
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 20")
	e.wantShare(100, 20)
	seen := slices.DeleteFunc(e.polled.splits(), func(split string) bool { return split == "undivided" })
	if all := e.polled.splits(); slices.Contains(all[slices.Index(all, seen[0]):], "undivided") {
		t.Errorf("the Traefik has polled %q, which takes a split away", all)
	}
	last := uint64(0)
	for _, split := range seen {
		text, _, _ := strings.Cut(split, ":")
		sequence, err := strconv.ParseUint(text, 10, 64)
		if err != nil || sequence < last {
			t.Errorf("the Traefik has polled %q, in which a sequence goes back (%v)", seen, err)
		}
		last = sequence
	}
}

// Without an API a split is accepted, and counts after the settle time. An API without a user is no API that can be
// asked: then the split is unknown, and the Traefik is named.
func TestATraefikThatCannotBeAskedProvesNothing(t *testing.T) {
	const settle = 2 * time.Second
	s, _ := shopWithTwo(t)
	e := s.traefikEdge(func(r *v1alpha1.TrafficRouter) {
		r.Spec.Settle, r.Spec.Traefik.Programs[0].URL = &metav1.Duration{Duration: settle}, ""
	})
	e.startLeader()
	r := s.routed("[{name: " + e.router.Name + "}]")
	s.wait(r, "the split is accepted", func(r *v1alpha1.ABRelease) bool {
		return r.Status.Acknowledged != nil && r.Status.Acknowledged.Knowledge == v1alpha1.AcknowledgedAccepted
	})
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	e.router.Spec.Traefik.Programs[0].URL = "http://" + e.Web // where no API is
	s.must(admin.Update(t.Context(), e.router))
	s.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "edge/traefik-0 (asking the API of edge/traefik-0: status 404")
}

// Another Service of the configuration changes after each ten requests, so the round robin never reaches a canary of 2 %.
func TestAShareThatATraefikCannotGiveIsTold(t *testing.T) {
	const rounds, each = 30, 10
	s, _ := shopWithTwo(t)
	e := s.traefikEdge(nil)
	e.startLeader()
	r := s.release("autumn", `{type: Percentage, percentages: {stable: 98, canary: 2}}`+"\nrouters: [{name: "+e.router.Name+"}]")
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 2")
	of := e.registry.FindProvider(e.router.Name)
	of.Count(t.Context())
	for round := range rounds {
		e.changeAnother(round + 1)
		for range each {
			_, err := e.askTraefik(t.Context())
			s.must(err)
		}
	}
	of.Count(t.Context())
	s.says(r, v1alpha1.ConditionDegraded, metav1.ConditionTrue, "variation canary at edge/traefik-0: ")
	s.told(r, v1alpha1.ReasonShareStarved, "variation canary")
}
