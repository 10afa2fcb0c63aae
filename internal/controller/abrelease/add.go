// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/internal/revisions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// recorder is how Events name who made them.
const recorder = "plumbline-xds"

// kindAgain is how often it is asked for the kind while it is not installed.
const kindAgain = 10 * time.Second

// Setup is what the controller needs from its process.
type Setup struct {
	// Window shows the mesh that the process serves.
	Window *discovery.Window
	// Routers carry splits out, and Reporters know of which Services proxies have a route.
	Routers   Routers
	Reporters Reporters
	// Namespace is Plumbline's own.
	Namespace string
	Clock     clock.PassiveClock
	Log       logr.Logger
	// Times are those of production unless a test sets them.
	Times Times
	// Metrics tell how full the ledger is; may be nil.
	Metrics *Metrics
	// RolloutMetrics tell of rollouts; may be nil.
	RolloutMetrics *RolloutMetrics
	// Rollouts has the controller carry out spec.rollout.
	Rollouts bool
}

// Add has a manager decide about releases while it leads, and from when the kind is
// installed: what else it does needs no releases.
func Add(mgr ctrl.Manager, setup Setup) error {
	ledger := &Ledger{Live: mgr.GetAPIReader(), Client: mgr.GetClient(), Namespace: setup.Namespace, Clock: setup.Clock, Times: setup.Times, Metrics: setup.Metrics}
	r := &Reconciler{
		Client: mgr.GetClient(), Endpoints: setup.Window, Mesh: setup.Window, Routers: setup.Routers, Sequences: ledger,
		Recorder: mgr.GetEventRecorder(recorder), Clock: setup.Clock, Log: setup.Log.WithName("abrelease"), Times: setup.Times,
		Metrics: setup.RolloutMetrics,
	}
	if setup.Rollouts {
		r.Revisions = &revisions.Reader{Live: mgr.GetAPIReader()}
	}
	sweeper := &Sweeper{
		Ledger: ledger, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Services: setup.Window, Reporters: setup.Reporters,
		Clock: setup.Clock, Log: r.Log, Times: setup.Times,
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if !installed(ctx, mgr, r.Log) {
			return nil
		}
		defer setup.RolloutMetrics.lead(setup.Clock)()
		if err := r.Register(mgr, setup.Window); err != nil {
			return err
		}
		return sweeper.Run(ctx)
	}))
}

// installed waits for the kind; false when ctx ends before.
func installed(ctx context.Context, mgr ctrl.Manager, log logr.Logger) bool {
	gk := v1alpha1.GroupVersion.WithKind("ABRelease").GroupKind()
	for told := false; ; {
		_, err := mgr.GetRESTMapper().RESTMapping(gk, v1alpha1.GroupVersion.Version)
		if err == nil {
			return true
		}
		if !told && meta.IsNoMatchError(err) {
			told = true
			log.Info("the cluster does not have ABReleases, so nothing is divided; install the chart's kinds")
		}
		timer := time.NewTimer(kindAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}
