// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // policies have time zones

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// World is one simulated cluster.
type World struct {
	Server *apiserver.Server
	// midnight before everything, and when it began.
	midnight, epoch time.Time
	hours           *hours
	rules           specguard.Rules
	s               *schedule.Scheduler
	mutant          Mutant

	policy    *v1alpha1.RemediationPolicy
	policyUID types.UID
	targets   []*target
	plans     known
	writers   writers
	sights    sights
	// authorizedFor is since how long before the beginning targets are authorized.
	authorizedFor time.Duration
	// plansItself says that the plans are made by a planner. Its lives are begun, the last of
	// which is the leader; assessed says that all targets are judged as they are.
	plansItself bool
	leaderMu    sync.Mutex
	leader      *leader
	begun       []beginningOf
	assessed    atomic.Bool

	evidence *storetest.Memory
	// recordings say who stored which record.
	recordings recordings
	keys       keys
	redis      redis
	deadline   time.Duration
	still      int

	// calmSince is since when nothing disturbs.
	calmSince time.Time
	// forgotten are the records that the store has lost.
	forgotten []evidence.Sealed

	// calm says that nothing disturbs any more.
	calm     atomic.Bool
	mu       sync.Mutex
	watchers []watcher
	// denied says that the requester may not write targets, forbidden that the
	// executor may not.
	denied, forbidden atomic.Bool
	// blind is the kind that the executors cannot read; nil is none. broken says that the store
	// of the records is, and webhook that the webhook is at work.
	blind             atomic.Pointer[string]
	broken, webhook   atomic.Bool
	admission         admission
	storeFault        storeFault
	caps, clusterCaps ledger.Caps
	delay             time.Duration
	doze              bool
	// releases says that executors look at releases, and mesh that proxies serve the targets.
	releases, mesh bool
	// standbys says that a standby serves while a target is repaired, and proxiesLack that no proxy is there.
	// standbyNames are those that were ever stored.
	standbys, proxiesLack bool
	standbyNames          known
	// workers are how many plans an executor carries on at the same time; zero is one.
	workers int
	// verdicts says that effects are assessed, and decided has the verdicts by [stepKey].
	verdicts bool
	decided  sync.Map
	// turns of the webhook.
	turnsMu sync.Mutex
	turns   []time.Time
	// counts what people and disturbances did.
	countsMu sync.Mutex
	counts   map[string]int
	// timeless says that the API server admits creations at any time, asleep how many
	// processes doze before one.
	timeless atomic.Bool
	asleep   atomic.Int64
	// carrying counts the plans that executors carry on at this moment: they may be about to learn of something.
	carrying atomic.Int64

	// read are the objects that were read as typed ones.
	readMu sync.Mutex
	read   map[uintptr]read
	// decodedOnce are those that were decoded as the assessor keeps them.
	decodedOnce map[uintptr]decodedObject
	// stalls and wakes count what came of watches.
	stalls, wakes atomic.Int64
	// announced has the phases of the ends that an executor told people of, by plan.
	announced sync.Map
	// dozes counts how often a process stood still before a creation, tooLate how often a
	// creation was refused for its time.
	dozes, tooLate atomic.Int64
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
	log.SetLogger(logr.Discard())
}

// newWorld is a world whose Deployments have drifted, with plans to put them back.
func newWorld(s *schedule.Scheduler, c scenario, mutant Mutant) *World {
	midnight := time.Now()
	<-time.After(c.late)
	w := &World{
		deadline: c.deadline, redis: c.redis, hours: c.hours, still: c.still,
		midnight: midnight, epoch: time.Now(), s: s, mutant: mutant,
		evidence: &storetest.Memory{}, keys: signing(), read: map[uintptr]read{}, decodedOnce: map[uintptr]decodedObject{},
		plansItself: c.planner, authorizedFor: c.authorizedFor,
		rules:     c.kind.rules(midnight),
		admission: c.admission, storeFault: c.store, caps: c.caps, clusterCaps: c.clusterCaps, delay: c.delay, doze: c.dozes, workers: c.workers, verdicts: c.verdicts, releases: c.releases, mesh: c.mesh, standbys: c.standbys, proxiesLack: c.proxiesLack, counts: map[string]int{},
	}
	w.Server = apiserver.New(time.Now, w.watchedByWebhook(kinds())...)
	for _, aim := range c.aims {
		w.count("world of " + aim)
	}
	w.Server.Watch(w.plans.note)
	w.Server.Watch(w.writers.note)
	w.Server.Watch(w.noteStandby)
	w.Server.Watch(w.wake)
	w.Server.Authorize(w.may)
	w.Server.Admit(w.admits)
	w.Server.Review(func(apiserver.Attributes) bool { return !w.denied.Load() })
	w.Server.Stale(w.replica)
	for _, name := range []string{namespace, namespaceOfPlumbline} {
		w.store("", "v1", "namespaces", "", apiserver.Object{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": name, "labels": map[string]any{"environment": environment}}})
	}
	w.storeOwn("clusterspecguards", "", guard())
	w.storeOwn("environments", "", &v1alpha1.Environment{
		TypeMeta: typeMeta("Environment"), ObjectMeta: metav1.ObjectMeta{Name: environment},
		Spec: v1alpha1.EnvironmentSpec{Criticality: v1alpha1.CriticalityProduction, NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"environment": environment}}, Caps: v1alpha1.EnvironmentCaps{
			MaxConcurrent: c.caps.Concurrent, MaxPerHour: c.caps.PerHour,
		}},
	})
	w.policy = &v1alpha1.RemediationPolicy{
		TypeMeta: typeMeta("RemediationPolicy"), ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: v1alpha1.RemediationPolicySpec{
			EnvironmentName: environment, Mode: v1alpha1.PolicyModeActive, RequestedBy: requester,
			Trigger: v1alpha1.TriggerImmediate, MinimumSeverity: v1alpha1.SeverityHigh, Action: c.action, Strategy: v1alpha1.StrategyRolling, Safety: c.limits,
			Health: v1alpha1.RemediationHealth{Stabilization: &metav1.Duration{Duration: cmp.Or(c.stabilization, 10*time.Second)}, Timeout: &metav1.Duration{Duration: 10 * time.Minute}},
		},
	}
	if c.hours != nil {
		w.policy.Spec.Schedule = c.hours.schedule(midnight)
	}
	if c.planner {
		w.policy.Spec.MinimumSeverity = v1alpha1.SeverityLow
		w.policy.Spec.Exceptions.Recreate = v1alpha1.Allowed
	}
	if c.standbys {
		w.policy.Spec.Strategy = v1alpha1.StrategyBlueGreen
		w.policy.Spec.Standby = &v1alpha1.StandbyTemplate{PodLabels: map[string]v1alpha1.LabelValue{"app": "standby"}}
	}
	if c.verdicts {
		w.assessesSoon()
	}
	w.policyUID = w.storeOwn("remediationpolicies", "", w.policy)
	if c.breaks {
		w.opens()
	}
	if c.planner {
		w.addTargets(c)
	} else {
		w.addPlans(c)
	}
	if w.quarantines() {
		w.addMesh()
	}
	if c.standbys {
		w.addFronts()
	}
	if c.releases {
		w.addReleases()
	}
	return w
}

// addTargets stores the targets of a world with a planner: some have drifted, and others have not.
func (w *World) addTargets(c scenario) {
	shape := c.kind.shape(c.action)
	shape.gone = c.gone
	if c.action == v1alpha1.ActionRestart {
		shape.drifted = c.kind.bad()
	}
	for _, name := range []string{"web", "api", "worker"}[:c.drifted] {
		w.targets = append(w.targets, w.addTarget(name, c.kind, shape))
	}
	shape.gone, shape.inSync = false, true
	for i := range c.peers {
		w.targets = append(w.targets, w.addTarget(fmt.Sprintf("peer-%d", i), c.kind, shape))
	}
}

func (w *World) addPlans(c scenario) {
	shape := c.kind.shape(c.action)
	shape.gone = c.gone
	steps := 0
	for _, b := range c.batches {
		steps += len(b)
	}
	for i := range steps {
		w.targets = append(w.targets, w.addTarget([]string{"web", "api"}[i], c.kind, shape))
	}
	w.addPlan("first", c.action, c.batches, w.targets, c.beginning(w.epoch))
	switch c.second {
	case "other":
		other := w.addTarget("worker", c.kind, shape)
		w.targets = append(w.targets, other)
		w.addPlan("second", c.action, [][]int32{{0}}, []*target{other}, atOnce)
	case "same":
		w.addPlan("second", c.action, [][]int32{{0}}, w.targets[:1], atOnce)
	}
}

// target by its name; nil if there is none.
func (w *World) target(name string) *target {
	for _, t := range w.targets {
		if t.name == name {
			return t
		}
	}
	return nil
}

// may is what the API server allows: everything, but to the executors at times
// no write of a target.
func (w *World) may(a apiserver.Attributes) bool {
	if kind := w.blind.Load(); kind != nil && a.User == Executor && a.Verb == "get" && a.Resource == *kind && a.Subresource == "" {
		return false
	}
	return !w.forbidden.Load() || a.User != Executor || a.Verb == "get" || kindOf(a.Group, a.Resource) == nil
}

// count notes that something happened.
func (w *World) count(what string) {
	w.countsMu.Lock()
	defer w.countsMu.Unlock()
	w.counts[what]++
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

// ended says that every plan has, that nothing is left in the ledgers, and that nobody is
// about to send a creation.
func (w *World) ended() bool {
	if w.asleep.Load() > 0 {
		return false
	}
	if w.stands() {
		return true
	}
	if w.carrying.Load() > 0 {
		return false
	}
	for _, name := range w.plans.names() {
		now := w.Server.Look(group, "remediationplans", namespace, name)
		if now != nil && (!final(now) || !announced(typedOf[v1alpha1.RemediationPlan](w, now))) {
			return false
		}
	}
	return w.areLedgersSettled() && w.s.Quiet() && !w.standbyLeft() && w.withdrawn() && (!w.verdicts || w.copied()) && (!w.plansItself || w.rests()) && w.isAssessed()
}

// areLedgersSettled says that each entry of each ledger has ended.
func (w *World) areLedgersSettled() bool {
	for _, name := range ledgerNames {
		l := w.Server.Look(group, "remediationledgers", namespaceOfPlumbline, name)
		status, _ := l["status"].(map[string]any)
		entries, _ := status["entries"].([]any)
		for _, e := range entries {
			if e.(map[string]any)["completionTime"] == nil {
				return false
			}
		}
	}
	return true
}

// isAssessed says that the assessor that judges targets, where there is one, has judged all. In a
// namespace that is being deleted it can store no revision.
func (w *World) isAssessed() bool {
	return !w.plansItself && !w.quarantines() || w.assessed.Load() || w.quarantines() && w.terminating()
}

func final(plan apiserver.Object) bool {
	status, _ := plan["status"].(map[string]any)
	switch status["phase"] {
	case "Succeeded", "PartialSuccess", "Failed", "Canceled", "Superseded", "Skipped":
		return true
	}
	return false
}

// announced says whether a plan says that people were told of its end.
func announced(plan *v1alpha1.RemediationPlan) bool {
	return meta.IsStatusConditionTrue(plan.Status.Conditions, v1alpha1.ConditionAnnounced)
}

// replica is how far one of the API servers is behind: some writes, or none.
func (w *World) replica(_ string, now int64) int64 {
	return max(1, now-w.s.Rand().Int64N(behind))
}
