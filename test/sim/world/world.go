// SPDX-License-Identifier: Apache-2.0

package world

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence/storetest"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// World is one simulated cluster.
type World struct {
	Server *apiserver.Server
	epoch  time.Time
	rules  specguard.Rules
	s      *schedule.Scheduler
	mutant Mutant

	policy    *v1alpha1.RemediationPolicy
	policyUID types.UID
	targets   []*target
	plans     []*v1alpha1.RemediationPlan

	evidence *storetest.Memory
	keys     keys
	redis    redis
	deadline time.Duration

	// calm says that nothing disturbs any more.
	calm     atomic.Bool
	mu       sync.Mutex
	watchers []watcher
	// denied says that the requester may not write targets, forbidden that the
	// executor may not.
	denied, forbidden atomic.Bool
}

// watcher is told of the writes that it wants to know of.
type watcher struct {
	wants func(apiserver.Commit) bool
	told  chan struct{}
}

// keys that sign records. They are the same in every run.
type keys struct {
	signer *evidence.PrivateKey
	ring   *evidence.Keyring
}

var signing = sync.OnceValue(func() keys {
	private, public, err := evidence.GenerateKey()
	if err != nil {
		panic(err)
	}
	signer, err := evidence.ParsePrivateKey(private)
	if err != nil {
		panic(err)
	}
	ring, err := evidence.ParseKeyring(public)
	if err != nil {
		panic(err)
	}
	return keys{signer, ring}
})

// Prepare makes what all worlds share and what must not belong to the bubble of
// one of them. Call it before the first one.
func Prepare() {
	signing()
	if _, err := kube.Decompress(kube.Compress([]byte("{}"))); err != nil {
		panic(err)
	}
	scheme()
}

// scenario is what is to be done in a world.
type scenario struct {
	action  v1alpha1.RemediationAction
	batches [][]int32
	gone    bool
	// second says what another plan of the same policy does: nothing, something
	// else, or the same.
	second string
	limits v1alpha1.RemediationSafety
	// deadline after which no step begins.
	deadline time.Duration
	redis    redis
	// ahead is by how much the clock of an executor is wrong.
	ahead time.Duration
	// meddlers are who else takes part.
	meddlers []disturbance
	chances  schedule.Chances
	// messages until everything is calm.
	messages int
}

// pick draws one of some.
func pick[T any](rng *rand.Rand, some ...T) T { return some[rng.IntN(len(some))] }

func draw(rng *rand.Rand) scenario {
	c := scenario{
		action:  pick(rng, v1alpha1.ActionReconcile, v1alpha1.ActionReconcile, v1alpha1.ActionReconcile, v1alpha1.ActionRestart, v1alpha1.ActionScale),
		batches: pick(rng, [][]int32{{0}, {1}}, [][]int32{{0}, {1}}, [][]int32{{0, 1}}, [][]int32{{0}}),
		second:  pick(rng, "", "", "other", "same"),
	}
	c.gone = c.action == v1alpha1.ActionReconcile && rng.IntN(5) == 0
	c.limits = v1alpha1.RemediationSafety{
		MaxConcurrent: pick[int32](rng, 1, 1, 2), MaxPerHour: 10, MaxPerDay: 20, MaxTargets: 10,
		MaxTargetPercent: 25, MinHealthyPercent: 75,
		Cooldown: &metav1.Duration{Duration: pick(rng, 0, 0, time.Minute)},
		CircuitBreaker: v1alpha1.CircuitBreakerSettings{
			FailureThreshold: pick[int32](rng, 1, 2, 3), OpenDuration: &metav1.Duration{Duration: pick(rng, time.Minute, 5*time.Minute)},
		},
	}
	if rng.IntN(25) == 0 { // a run that waits an hour has thousands of messages
		c.limits.MaxPerHour = pick[int32](rng, 1, 2)
	}
	c.redis = pick(rng, absent, flushed, liar)
	c.ahead = pick(rng, 0, 0, 0, time.Hour, -time.Hour)
	c.deadline = 4 * time.Hour
	for _, d := range disturbances() {
		if rng.IntN(4) == 0 {
			c.meddlers = append(c.meddlers, d)
		}
	}
	for _, d := range rare() {
		if rng.IntN(40) == 0 {
			c.meddlers = append(c.meddlers, d)
			c.deadline = 20 * time.Minute // a ledger that is made anew grants nothing for a day
		}
	}
	level := pick(rng, 0, 5, 10, 20)
	chance := func() int { return rng.IntN(level + 1) }
	c.chances = schedule.Chances{
		Lost: chance(), Unanswered: chance(), Late: chance(), Doubled: chance(), Busy: chance(), Crash: chance(), Sleep: chance() / 2, Critical: pick(rng, 1, 10, 20),
	}
	c.messages = 50 + rng.IntN(350)
	return c
}

// roughen makes a scenario one in which every protection is needed.
func (c *scenario) roughen() {
	c.redis, c.ahead, c.second = flushed, 0, "other"
	c.gone = false
	c.limits.MaxConcurrent, c.limits.MaxPerHour, c.limits.Cooldown = 1, 10, nil
	c.meddlers = disturbances()
	c.chances = schedule.Chances{Late: 15, Unanswered: 4, Crash: 4, Lost: 4, Doubled: 4, Critical: 30}
	c.messages = 500
}

// newWorld is a world whose Deployments have drifted, with plans to put them back.
func newWorld(s *schedule.Scheduler, c scenario, mutant Mutant) *World {
	w := &World{
		deadline: c.deadline, redis: c.redis,
		Server: apiserver.New(time.Now, kinds()...), epoch: time.Now(), s: s, mutant: mutant,
		evidence: &storetest.Memory{}, keys: signing(),
	}
	w.rules = rules(w.epoch)
	w.Server.Watch(w.wake)
	w.Server.Authorise(w.may)
	w.Server.Review(func(apiserver.Attributes) bool { return !w.denied.Load() })
	w.Server.Stale(w.replica)
	for _, name := range []string{namespace, namespaceOfPlumbline} {
		w.store("", "v1", "namespaces", "", apiserver.Object{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": name}})
	}
	w.storeOwn("clusterspecguards", "", guard())
	w.storeOwn("environments", "", &v1alpha1.Environment{
		TypeMeta: typeMeta("Environment"), ObjectMeta: metav1.ObjectMeta{Name: environment},
		Spec: v1alpha1.EnvironmentSpec{Criticality: v1alpha1.CriticalityProduction},
	})
	w.policy = &v1alpha1.RemediationPolicy{
		TypeMeta: typeMeta("RemediationPolicy"), ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: v1alpha1.RemediationPolicySpec{
			Environment: environment, Mode: v1alpha1.PolicyModeActive, RequestedBy: requester,
			Trigger: v1alpha1.TriggerImmediate, MinimumSeverity: v1alpha1.SeverityHigh, Action: c.action, Strategy: v1alpha1.StrategyRolling, Safety: c.limits,
			Health: v1alpha1.RemediationHealth{Stabilisation: &metav1.Duration{Duration: 10 * time.Second}, Timeout: &metav1.Duration{Duration: 10 * time.Minute}},
		},
	}
	w.policyUID = w.storeOwn("remediationpolicies", "", w.policy)
	w.addPlans(c)
	return w
}

func (w *World) addPlans(c scenario) {
	drifted := deploymentSpec(imageDrifted, 2)
	switch c.action {
	case v1alpha1.ActionScale:
		drifted = deploymentSpec(imageDesired, 5)
	case v1alpha1.ActionRestart:
		drifted = deploymentSpec(imageDesired, 2)
	default:
	}
	steps := 0
	for _, b := range c.batches {
		steps += len(b)
	}
	for i := range steps {
		w.targets = append(w.targets, w.addTarget([]string{"web", "api"}[i], drifted, c.gone))
	}
	w.plans = append(w.plans, w.addPlan("first", c.action, c.batches, w.targets))
	switch c.second {
	case "other":
		other := w.addTarget("worker", drifted, c.gone)
		w.targets = append(w.targets, other)
		w.plans = append(w.plans, w.addPlan("second", c.action, [][]int32{{0}}, []*target{other}))
	case "same":
		w.plans = append(w.plans, w.addPlan("second", c.action, [][]int32{{0}}, w.targets[:1]))
	}
}

// may is what the API server allows: everything, but to the executors at times
// no write of a target.
func (w *World) may(a apiserver.Attributes) bool {
	return !w.forbidden.Load() || a.User != Executor || a.Group != "apps" || a.Verb == "get"
}

// wake tells everybody who waits that something was stored.
func (w *World) wake(c apiserver.Commit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, watcher := range w.watchers {
		if !watcher.wants(c) {
			continue
		}
		select {
		case watcher.told <- struct{}{}:
		default:
		}
	}
}

// watch is told of writes from now on.
func (w *World) watch(wants func(apiserver.Commit) bool) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := make(chan struct{}, 1)
	w.watchers = append(w.watchers, watcher{wants, told})
	return told
}

// ended says that every plan has, and that nothing is left in the ledgers.
func (w *World) ended() bool {
	for _, p := range w.plans {
		now := w.Server.Look(group, "remediationplans", namespace, p.Name)
		if now != nil && !final(now) {
			return false
		}
	}
	for _, name := range ledgerNames {
		l := w.Server.Look(group, "remediationledgers", namespaceOfPlumbline, name)
		status, _ := l["status"].(map[string]any)
		entries, _ := status["entries"].([]any)
		for _, e := range entries {
			if e.(map[string]any)["settledAt"] == nil {
				return false
			}
		}
	}
	return w.s.Quiet()
}

func final(plan apiserver.Object) bool {
	status, _ := plan["status"].(map[string]any)
	switch status["phase"] {
	case "Succeeded", "PartialSuccess", "Failed", "Cancelled", "Superseded":
		return true
	}
	return false
}
