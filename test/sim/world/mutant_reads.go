// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// blindMutants take out what an executor asks again before it writes, and what it tells the
// ledgers. Each has a world of its own, in which others do what it does not see.
func blindMutants() []Mutant {
	return []Mutant{
		{Name: "the policy is read once", Breaks: "I14", take: reads(once(frozenPolicy)), in: beside(disturber("policy-editor", requester, (*person).editsPolicy))},
		{Name: "a halt of a ledger is not seen", Breaks: "I14", take: reads(func() func(client.Object) { return unhalted }), in: beside(disturber("halter", "alice", (*person).haltsLedger))},
		{Name: "the health of others is not asked", Breaks: "I17", take: reads(func() func(client.Object) { return healthy }), in: beside(disturber("counter", "assessor", (*person).countsHealth))},
		{Name: "Baselines are read once", Breaks: "I15", take: reads(once(frozenBaseline)), in: beside(disturber("acceptor", "alice", (*person).accepts), disturber("authorizer", "assessor", (*person).authorizes))},
		{Name: "fights are not seen", Breaks: "I24", take: reads(func() func(client.Object) { return peaceful }), in: beside(disturber("fight-observer", "assessor", (*person).seesFight))},
		{Name: "mass drifts are not seen", Breaks: "I25", take: func(p *process, _ clock.PassiveClock) { p.executor.Guards = thawed{p.executor.Guards} }, in: beside(disturber("drift-observer", "assessor", (*person).seesMassDrift))},
		{Name: "releases are not seen", Breaks: "I31", take: func(p *process, _ clock.PassiveClock) { p.executor.Rollouts = nil }, in: withReleases},
		{Name: "the mesh is not asked", Breaks: "I34", take: func(p *process, _ clock.PassiveClock) { p.executor.Mesh = willing{} }, in: withQuarantines},
		{Name: "requests are taken for moved", Breaks: "I36", take: func(p *process, _ clock.PassiveClock) { p.executor.Standbys = believed{p.executor.Standbys} }, in: withStandbys, patience: 5000},
		{Name: "no dry run is sent", Breaks: "I19", take: func(p *process, _ clock.PassiveClock) { p.executor.Targets = untried{p.executor.Targets} }, in: withWebhook},
		{Name: "all batches are one", Breaks: "I18", take: reads(func() func(client.Object) { return oneBatch }), in: func(c *scenario) {
			c.batches, c.limits.MaxConcurrent, c.second = [][]int32{{0}, {1}}, 2, ""
		}},
		{Name: "no place is given back", Breaks: "I21", take: storesLedgers(keepsEntries), in: withCaps},
		{Name: "no target is let go of", Breaks: "I21", take: func(p *process, _ clock.PassiveClock) { p.executor.Client = claimsClient{p.executor.Client} }, in: withWaits},
		{Name: "a failure counts as a success", Breaks: "I20", take: storesLedgers(succeeds), in: withFailures},
		{Name: "the breaker counts nothing", Breaks: "I20", take: storesLedgers(forgetsBreakers), in: withFailures},
		{Name: "calls of the store have no deadline", Breaks: "L5", unbounded: true, in: withHangingStore},
	}
}

// beside has nobody interfere but some, each three times.
func beside(people ...disturbance) func(*scenario) {
	return func(c *scenario) {
		c.meddlers = nil
		for _, number := range []string{"", "second-", "third-"} {
			for _, d := range people {
				c.hire(eager(number+d.name, d.user, d.do))
			}
		}
		c.batches, c.messages = [][]int32{{0}, {1}}, 200
	}
}

func withReleases(c *scenario) {
	beside(disturber("releaser", "alice", (*person).releases))(c)
	c.kind, c.releases = &deployments, true
}

// withStandbys has standbys, and people who remove them.
func withStandbys(c *scenario) {
	beside(disturber("standby-eraser", "root", (*person).erasesStandby))(c)
	c.action, c.kind, c.mesh, c.standbys, c.messages = v1alpha1.ActionReconcile, &deployments, true, true, 400
}

// believed takes the requests for those of the standby as soon as there is an ABRelease, until they return.
type believed struct{ exec.Standbys }

// Read implements exec.Standbys.
func (b believed) Read(ctx context.Context, live client.Client, of *exec.StandbyOf) exec.StandbySight {
	sight := b.Standbys.Read(ctx, live, of)
	stored := of.Stored()
	if sight.Release.Exists && (stored.Phase == v1alpha1.StandbyPreparing || stored.Phase == v1alpha1.StandbySwitching || stored.Phase == v1alpha1.StandbyServing) {
		sight.Release.ToStandby, sight.Release.InForce = true, true
	}
	return sight
}

func withQuarantines(c *scenario) {
	beside(disturber("kubelet", "kubelet", (*person).changesEndpoints))(c)
	c.action, c.kind, c.mesh = v1alpha1.ActionQuarantine, &deployments, true
}

// willing is a mesh in which nothing stands against a quarantine.
type willing struct{}

// Obstacle implements exec.Mesh.
func (willing) Obstacle(context.Context, client.Reader, string, *v1alpha1.PlanTarget) (string, error) {
	return "", nil
}

func withWebhook(c *scenario) {
	beside(disturber("webhook-owner", "root", (*person).turnsAdmission))(c)
	c.action, c.admission = v1alpha1.ActionReconcile, changing
}

func withCaps(c *scenario) {
	beside(disturber("pauser", "alice", (*person).pausesLong), disturber("counter", "assessor", (*person).countsHealth))(c)
	c.caps = ledger.Caps{Concurrent: new(int32(1))}
	c.limits.MaxConcurrent = 2
}

func withWaits(c *scenario) {
	beside(disturber("pauser", "alice", (*person).pausesLong), disturber("counter", "assessor", (*person).countsHealth))(c)
}

func withFailures(c *scenario) {
	withWriters(c)
	c.limits.CircuitBreaker.FailureThreshold = 2
}

func withHangingStore(c *scenario) {
	beside(disturber("store-breaker", "root", (*person).breaksStore), disturber("canceler", "alice", (*person).cancels))(c)
	c.store = storeHangs
}

// reader changes what was read.
type reader struct {
	client.Client
	change func(client.Object)
}

// Get implements client.Client.
func (r reader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if err := r.Client.Get(ctx, key, o, opts...); err != nil {
		return err //nolint:wrapcheck // it stands for the client
	}
	r.change(o)
	return nil
}

// reads has each process change what it reads, in a way of its own.
func reads(of func() func(client.Object)) func(*process, clock.PassiveClock) {
	return func(p *process, _ clock.PassiveClock) { p.executor.Client = reader{p.executor.Client, of()} }
}

// once has a process see of some objects what it saw first; freeze gives an object what an
// earlier one of its name had, and says whether it is of that sort.
func once(freeze func(now, first client.Object) bool) func() func(client.Object) {
	return func() func(client.Object) {
		seen := map[string]client.Object{}
		return func(o client.Object) {
			first := seen[o.GetName()]
			if first == nil {
				first = o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it is a copy
			}
			if freeze(o, first) {
				seen[o.GetName()] = first
			}
		}
	}
}

func frozenPolicy(now, first client.Object) bool {
	policy, ok := now.(*v1alpha1.RemediationPolicy)
	if ok {
		policy.Spec = *first.(*v1alpha1.RemediationPolicy).Spec.DeepCopy() //nolint:forcetypeassert // of one name
	}
	return ok
}

func healthy(o client.Object) {
	if policy, ok := o.(*v1alpha1.RemediationPolicy); ok {
		policy.Status.Targets.Unhealthy = 0
	}
}

func frozenBaseline(now, first client.Object) bool {
	b, ok := now.(*v1alpha1.Baseline)
	if ok {
		b.Spec = *first.(*v1alpha1.Baseline).Spec.DeepCopy() //nolint:forcetypeassert // of one name
	}
	return ok
}

func unhalted(o client.Object) {
	if l, ok := o.(*v1alpha1.RemediationLedger); ok {
		l.Spec.Halt = nil
	}
}

// oneBatch takes the order of the steps out of a plan.
func oneBatch(o client.Object) {
	p, ok := o.(*v1alpha1.RemediationPlan)
	if !ok {
		return
	}
	all := v1alpha1.PlanBatch{RequiresHealthCheck: v1alpha1.Enabled}
	for _, b := range p.Spec.Plan.Batches {
		all.Steps = append(all.Steps, b.Steps...)
	}
	p.Spec.Plan.Batches = []v1alpha1.PlanBatch{all}
}

// untried says that a dry run leads where its request does.
type untried struct{ exec.Targets }

// Put implements exec.Targets.
func (u untried) Put(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	if dryRun {
		return body, nil
	}
	return u.Targets.Put(ctx, ref, body, dryRun) //nolint:wrapcheck // it stands for them
}

// keepsEntries stores no ledger without an entry that it had.
func keepsEntries(l, now *v1alpha1.RemediationLedger) bool {
	return len(l.Status.Entries) >= len(now.Status.Entries)
}

func succeeds(l, _ *v1alpha1.RemediationLedger) bool {
	for i := range l.Status.Entries {
		if e := &l.Status.Entries[i]; e.Outcome == v1alpha1.LedgerFailed {
			e.Outcome = v1alpha1.LedgerSucceeded
		}
	}
	return true
}

func forgetsBreakers(l, _ *v1alpha1.RemediationLedger) bool {
	l.Status.Breakers = nil
	return true
}

// claimsClient lets go of no target.
type claimsClient struct{ client.Client }

// Status implements client.Client.
func (c claimsClient) Status() client.SubResourceWriter { return claimsWriter{c.Client.Status()} }

type claimsWriter struct{ client.SubResourceWriter }

// Update implements client.SubResourceWriter.
func (w claimsWriter) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	if b, ok := o.(*v1alpha1.Baseline); ok && b.Status.PlanName == "" {
		return nil
	}
	return w.SubResourceWriter.Update(ctx, o, opts...) //nolint:wrapcheck // it stands for the writer
}
