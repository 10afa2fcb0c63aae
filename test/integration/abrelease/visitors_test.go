// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// A backup that is restored makes another uid, and a tool may write the variations in
// another order.
func TestAReleaseThatIsMadeAgainMovesNoVisitor(t *testing.T) {
	s, _ := shopWithTwo(t)
	r := s.start(asksProxies)
	_, front := s.proxy(r, "front-0")
	s.runs("front-0")
	const split = "{type: Sticky, sticky: {header: x-user}, percentages: {stable: 50, canary: 50}}"
	first := s.release("web", split)
	s.says(first, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged sequence 1")
	before := users(t, front)
	s.must(admin.Delete(t.Context(), first))
	poll.Until(t, patience, "the release is gone", func() error {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(first), &v1alpha1.ABRelease{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there (%w)", err)
	})

	again := &v1alpha1.ABRelease{ObjectMeta: s.named("web")}
	s.must(yaml.UnmarshalStrict([]byte(`
serviceName: web
stable: stable
variations:
- {name: canary, selector: {matchLabels: {app: web, version: canary}}}
- {name: stable, selector: {matchLabels: {app: web, version: stable}}}
trafficSplit: `+split), &again.Spec))
	s.create(again)
	s.says(again, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged sequence")
	if again.UID == first.UID {
		t.Errorf("both releases have the uid %s", first.UID)
	}
	if diff := cmp.Diff(before, users(t, front)); diff != "" {
		t.Errorf("users moved (-before +after):\n%s", diff)
	}
}

// The canary has all requests, and is the stable variation from now on. Who had it keeps it,
// and the variation that was stable is on trial next.
func TestAnotherStableVariationMovesNoVisitorAndLosesNoRequest(t *testing.T) {
	s, _ := shopWithTwo(t)
	r := s.start(asksProxies)
	_, front := s.proxy(r, "front-0")
	s.runs("front-0")
	release := s.release("web", "{type: Sticky, sticky: {header: x-user}, percentages: {stable: 0, canary: 100}}")
	s.split(release, "stable 0 / canary 100")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged")
	end := askOn(t, front)
	before := users(t, front)

	s.patch(release, "spec: {stable: canary}")
	s.split(release, "canary 100 / stable 0")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged")
	if diff := cmp.Diff(before, users(t, front)); diff != "" {
		t.Errorf("users moved (-before +after):\n%s", diff)
	}

	s.patch(release, "spec: {trafficSplit: {percentages: {stable: 20, canary: 80}}}")
	s.split(release, "canary 80 / stable 20")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged")
	moved := 0
	for user, answer := range users(t, front) {
		if answer != before[user] {
			moved++
		}
	}
	if moved == 0 || moved > 25 { // of 50, 10 are wanted
		t.Errorf("%d of 50 users moved to the variation that has a fifth", moved)
	}
	end()
}

// askOn asks one time after the other until end is called, which fails the test if a request
// has failed.
func askOn(t *testing.T, address string) (end func()) {
	t.Helper()
	stop, failed := make(chan struct{}), make(chan []string, 1)
	stopOnce := sync.OnceFunc(func() { close(stop) })
	t.Cleanup(stopOnce)
	var asked atomic.Int64
	go func() {
		var lost []string
		defer func() { failed <- lost }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			asked.Add(1)
			if answer, _ := ask(t, address); !strings.HasPrefix(answer, "200 ") {
				lost = append(lost, answer)
			}
		}
	}()
	return func() {
		t.Helper()
		stopOnce()
		lost := <-failed
		if n := asked.Load(); n == 0 || len(lost) > 0 {
			t.Errorf("of %d requests %d failed: %q", n, len(lost), lost)
		}
	}
}

func TestDecimalsOfAPercentageReachTheProxy(t *testing.T) {
	s, _ := shopWithTwo(t)
	r := s.start(asksProxies)
	proxy, _ := s.proxy(r, "front-0")
	s.runs("front-0")
	release := s.release("web", `{type: Percentage, percentages: {stable: "99.75", canary: "0.25"}}`)
	s.split(release, "stable 99.75 / canary 0.25")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged sequence 1")
	dump, err := proxy.Get(t.Context(), "/config_dump?resource=dynamic_route_configs")
	s.must(err)
	for _, weight := range []string{`"weight": 9975`, `"weight": 25`} {
		if !strings.Contains(dump, weight) {
			t.Errorf("the proxy has no %s: %s", weight, dump)
		}
	}
}
