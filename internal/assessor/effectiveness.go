// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/controller/assessment"
	"github.com/plumbline-dev/plumbline/internal/effectiveness"
	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/alertmanager"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// DefaultMaxConcurrentAssessments is the default of Effectiveness.MaxConcurrent.
const DefaultMaxConcurrentAssessments = 10

// Effectiveness says whether the effect of remediations is assessed.
type Effectiveness struct {
	Enabled bool
	// MaxConcurrent is how many assessments are looked at at once; a default if zero.
	MaxConcurrent int
	// Prometheus and Alertmanager are asked for metrics and alerts; without an address they are not.
	Prometheus, Alertmanager source.Config
	// Watchdog is the name of an alert that always fires; empty for none.
	Watchdog string
}

// addEffectiveness makes what assesses the effect of plans, and of runs where there are rollouts. The source of bodies is that of the policies.
func (p *parts) addEffectiveness(mgr manager.Manager, setup Setup) error {
	metrics, err := assessment.NewMetrics(setup.Registry, setup.time.Now)
	if err != nil {
		return err
	}
	counted, err := effectiveness.NewFigures(setup.Registry)
	if err != nil || !setup.Effectiveness.Enabled {
		return err
	}
	targets, err := exec.NewRESTTargets(mgr.GetConfig(), mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	asked, err := sourcesOf(setup, counted)
	if err != nil {
		return err
	}
	health := &assessment.Health{Live: mgr.GetAPIReader()}
	p.opener = &assessment.Opener{Client: mgr.GetClient()}
	var runs *assessment.Runs
	if setup.Rollouts {
		runs = &assessment.Runs{Live: targets, Cached: mgr.GetClient()}
		p.runOpener = &assessment.RunOpener{Client: mgr.GetClient(), Runs: runs, Time: setup.time}
	}
	p.assessments = &assessment.Reconciler{
		Client: mgr.GetClient(),
		Targets: &assessment.Targets{
			Live: targets, Bodies: p.source, Cached: mgr.GetClient(), Snapshot: p.guards.Snapshot, Clock: setup.Clock,
		},
		Runs:    runs,
		Sources: map[v1alpha1.EffectComponent]assessment.Source{v1alpha1.ComponentHealth: health},
		Unready: p.source.FindUnready,
		Metrics: metrics, Time: setup.time, Log: setup.Log.WithName("effectiveness"), MaxConcurrent: setup.Effectiveness.MaxConcurrent,
	}
	if asked.Alerts != nil {
		p.assessments.Alerts = &assessment.Alerts{Sources: asked, Pods: health}
		p.assessments.Sources[v1alpha1.ComponentAlerts] = p.assessments.Alerts
	}
	if asked.Metrics != nil {
		p.assessments.Sources[v1alpha1.ComponentMetrics] = &assessment.Series{Sources: asked, Time: setup.time}
	}
	return nil
}

// sourcesOf makes the clients of the servers that the installation names.
func sourcesOf(setup Setup, counted *effectiveness.Figures) (_ *effectiveness.Sources, err error) {
	named := &setup.Effectiveness
	asked := &effectiveness.Sources{Watchdog: named.Watchdog, Figures: counted, Log: setup.Log.WithName("effectiveness")}
	if named.Alertmanager.URL != "" {
		if asked.Alerts, err = alertmanager.New(named.Alertmanager); err != nil {
			return nil, err
		}
	}
	if named.Prometheus.URL != "" {
		if asked.Metrics, err = prometheus.New(named.Prometheus, setup.Clock.Now); err != nil {
			return nil, err
		}
	}
	return asked, nil
}

// registerEffectiveness registers it, if the installation assesses effects.
func (p *parts) registerEffectiveness(ctx context.Context, mgr manager.Manager) error {
	if p.assessments == nil {
		return nil
	}
	failed := errors.Join(p.opener.Register(mgr), p.assessments.Register(ctx, mgr))
	if p.runOpener != nil {
		failed = errors.Join(failed, p.runOpener.Register(mgr))
	}
	return failed
}
