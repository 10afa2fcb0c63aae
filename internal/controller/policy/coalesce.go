// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// coalesceFor is how long the stored status of a policy may lag behind in counts alone. A
// repair moves the counts several times within that time, and the last values are stored.
const coalesceFor = time.Second

// lags remembers since when the stored statuses of policies lag behind in counts alone. A
// process that dies forgets the lags: the next leader looks at each policy when it starts.
type lags struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// left returns how long the status of a policy may lag behind from now on.
func (l *lags) left(policy string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since == nil {
		l.since = map[string]time.Time{}
	}
	since, lags := l.since[policy]
	if !lags || now.Before(since) { // the clock of the API server may be set back
		l.since[policy], since = now, now
	}
	return coalesceFor - now.Sub(since)
}

func (l *lags) forget(policy string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.since, policy)
}

// sameButCounts says that two statuses of a policy differ in nothing that the executor decides
// by, and in no condition: at most in counts, in the names of plans, and in texts.
func sameButCounts(safety *v1alpha1.RemediationSafety, a, b *v1alpha1.RemediationPolicyStatus) bool {
	if ill(safety, a) != ill(safety, b) {
		return false
	}
	x, y := a.DeepCopy(), b.DeepCopy()
	for _, s := range []*v1alpha1.RemediationPolicyStatus{x, y} {
		s.Targets.Drifted, s.Targets.Eligible, s.Targets.Healthy = 0, 0, 0
		s.LastPlanName, s.WaitingFor, s.NextEvaluationTime = "", "", nil
		for i := range s.Conditions {
			s.Conditions[i].Message = ""
		}
	}
	return equality.Semantic.DeepEqual(x, y)
}

// ill says that too few of the other objects of a policy are healthy for a step to begin.
func ill(safety *v1alpha1.RemediationSafety, s *v1alpha1.RemediationPolicyStatus) bool {
	return planner.Health(safety, int(s.Targets.Healthy), int(s.Targets.Unhealthy)).Reason != ""
}
