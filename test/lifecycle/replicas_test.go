// SPDX-License-Identifier: Apache-2.0

//go:build lifecycle

package lifecycle

import (
	"context"
	"fmt"
	"testing"
)

func TestARollingUpdateLosesNoCall(t *testing.T) {
	old := whole(t)
	s := newStream(t, "rollout")
	kubectl(t, "rollout", "restart", deployment)
	kubectl(t, "rollout", "status", deployment, "--timeout=4m")
	fresh := awaitPods(t, 2)
	for _, pod := range fresh {
		for _, before := range old {
			if pod == before {
				t.Errorf("%s is still there: nothing was rolled out", pod)
			}
		}
	}
	bothAnswer(t, fresh)
	s.finishGraceful()
}

// bothAnswer waits until each pod has answered reviews: an API server keeps its
// connections, and each stays with one pod for a minute or two.
func bothAnswer(t *testing.T, pods []string) {
	t.Helper()
	eventually(t, "every replica answers its share", func(ctx context.Context) (bool, string) {
		saw, all := "", true
		for _, pod := range pods {
			n, err := sample(ctx, pod, "plumbline_admission_reviews_total")
			saw += fmt.Sprintf("%s %v (%v) ", pod, n, err)
			all = all && err == nil && n > 0
		}
		if all {
			fmt.Printf("    %s: reviews by replica: %s\n", t.Name(), saw)
		}
		return all, saw
	})
}

func TestScalingToOneAndBackLosesNoCall(t *testing.T) {
	s := newStream(t, "scale")
	kubectl(t, "scale", deployment, "--replicas=1")
	one := awaitPods(t, 1)
	s.more(rate) // with one alone
	kubectl(t, "scale", deployment, "--replicas=2")
	two := awaitPods(t, 2)
	kubectl(t, "rollout", "status", deployment, "--timeout=4m")
	if one[0] != two[0] && one[0] != two[1] {
		t.Errorf("of %v nobody is left in %v", one, two)
	}
	bothAnswer(t, two)
	s.finishGraceful()
}

// Without any replica calls go on. That none is asked is known from the API
// server, which counts every call as one without an answer.
func TestWithNoReplicaCallsGoOnAndWhatWasWrittenIsLookedAtAgain(t *testing.T) {
	q := newQuiet(t)
	s := newStream(t, "none")
	sweeps := q.sweeps(t.Context())
	kubectl(t, "scale", deployment, "--replicas=0")
	awaitPods(t, 0)
	dead := s.counts()
	q.foreignWrite()
	s.more(5 * rate)
	window := s.counts().minus(dead)
	if window.answered != 0 || window.failOpen < float64(5*rate) {
		t.Errorf("without a pod %v reviews were answered, and the API server went on %v times", window.answered, window.failOpen)
	}
	kubectl(t, "scale", deployment, "--replicas=2")
	awaitPods(t, 2)
	kubectl(t, "rollout", "status", deployment, "--timeout=4m")
	stamped(t)
	back := s.counts()
	_, unstamped := s.driver.Answered()
	s.more(5 * rate)
	if after := s.counts().minus(back); after.failOpen != 0 {
		t.Errorf("with two replicas back the API server went on without them %v times", after.failOpen)
	}
	if _, now := s.driver.Answered(); now != unstamped {
		t.Errorf("with two replicas back %d calls came back unstamped", now-unstamped)
	}
	s.finish()
	q.found("changed")
	eventually(t, "a sweep after the window", func(ctx context.Context) (bool, string) {
		n := q.sweeps(ctx)
		return n > sweeps, fmt.Sprint(n)
	})
}
