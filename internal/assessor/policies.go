// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"cmp"
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/controller/policy"
	"github.com/plumbline-dev/plumbline/internal/notifier"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// planRetention is the default of Setup.PlanRetention.
const planRetention = 7 * 24 * time.Hour

// addPolicies adds what makes plans, what removes old ones, and what looks after requests.
func (p *parts) addPolicies(mgr manager.Manager, setup Setup) error {
	metrics, err := policy.NewMetrics(setup.Registry)
	if err != nil {
		return err
	}
	contradicted, err := policy.NewContradicted(setup.Registry)
	if err != nil {
		return err
	}
	if p.people, err = notifier.New(notifier.Config{
		Settings: setup.Notifications, Namespace: setup.Namespace, Live: mgr.GetAPIReader(), Cached: mgr.GetClient(),
		Registry: setup.Registry, Log: setup.Log.WithName("notifier"),
	}); err != nil {
		return err
	}
	var tells policy.Notifier = p.people
	if setup.Notifier != nil {
		tells = setup.Notifier
	}
	p.source = &planning.FromCache{
		Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Snapshot: p.guards.Snapshot, Objects: p.tracker, Read: p.readObject,
		Rollouts: setup.Rollouts, Effectiveness: setup.Effectiveness.Enabled,
	}
	p.policies = &policy.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: setup.Namespace,
		Source:   p.source,
		Recorder: mgr.GetEventRecorder(lease), Metrics: metrics, Notifier: tells, Clock: setup.time, Skew: setup.time.Skew,
		ResyncPeriod: setup.ResyncPeriod, Executor: setup.Executor, Effectiveness: setup.Effectiveness.Enabled, Log: setup.Log.WithName("policy"),
	}
	p.anchor = &policy.Anchor{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: setup.Namespace, Clock: setup.Clock, Contradicted: contradicted, Log: setup.Log.WithName("anchor"),
	}
	p.retention = &policy.Retention{Client: mgr.GetClient(), Clock: setup.Clock, Keep: keepPlans(&setup)}
	p.requests = &policy.Requests{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: setup.time, Keep: cmp.Or(setup.PlanRetention, planRetention)}
	return nil
}

// keepPlans returns how long a plan stays after its end. Where effects are assessed, it stays while its repairs
// count for a chain.
func keepPlans(setup *Setup) time.Duration {
	keep := cmp.Or(setup.PlanRetention, planRetention)
	if setup.Effectiveness.Enabled {
		keep = max(keep, effect.ChainWindow)
	}
	return keep
}

// lookAtPolicies is told when other guards are in force, and when a kind was listed.
func (p *parts) lookAtPolicies(ctx context.Context) { p.policies.Look(ctx) }
