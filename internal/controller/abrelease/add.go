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
	"github.com/plumbline-dev/plumbline/internal/gatekeeper"
	"github.com/plumbline-dev/plumbline/internal/revisions"
	"github.com/plumbline-dev/plumbline/internal/secrets"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// recorder is how Events name who made them.
const recorder = "plumbline-xds"

// kindAgain is how often it is asked for the kind while it is not installed.
const kindAgain = 10 * time.Second

// Setup is what the controller needs from its process.
type Setup struct {
	// Window shows the mesh that the process serves.
	Window *discovery.Window
	// Orders reach all replicas without the API server; may be nil.
	Orders Orders
	// Vigil goes on while the API server is away; may be nil.
	Vigil *Vigil
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
	// History keeps the last hour of runs; may be nil.
	History *History
	// Rollouts has the controller carry out spec.rollout.
	Rollouts bool
	// Installation says which gates rollouts can have.
	Installation rollout.Installation
	// Queries asks Prometheus; nil without one.
	Queries gatekeeper.Queries
	// Connectors are the routers of TrafficRouters; nil where the installation has none.
	Connectors Connectors
	// Egress says where webhooks of gates may be.
	Egress deliver.Egress
}

// Add has a manager decide about releases while it leads, and from when the kind is
// installed: what else it does needs no releases.
func Add(mgr ctrl.Manager, setup Setup) error {
	ledger := &Ledger{Live: mgr.GetAPIReader(), Client: mgr.GetClient(), Namespace: setup.Namespace, Clock: setup.Clock, Times: setup.Times, Metrics: setup.Metrics}
	r := &Reconciler{
		Client: mgr.GetClient(), Endpoints: setup.Window, Mesh: setup.Window, Routers: setup.Routers, Sequences: ledger,
		Recorder: mgr.GetEventRecorder(recorder), Clock: setup.Clock, Log: setup.Log.WithName("abrelease"), Times: setup.Times,
		Metrics: setup.RolloutMetrics, History: setup.History, Connectors: setup.Connectors,
	}
	if setup.Rollouts {
		r.Revisions, r.Installation, r.Orders = &revisions.Reader{Live: mgr.GetAPIReader()}, setup.Installation, setup.Orders
		r.Clones = &revisions.CloneReader{Live: mgr.GetAPIReader()}
		r.Groups = &revisions.GroupReader{Live: mgr.GetAPIReader(), Pods: setup.Window}
	}
	sweeper := &Sweeper{
		Ledger: ledger, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Services: setup.Window, Reporters: setup.Reporters,
		Clock: setup.Clock, Log: r.Log, Times: setup.Times,
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if !installed(ctx, mgr, r.Log) {
			return nil
		}
		if setup.Rollouts { // another time of leading asks anew
			r.Gates = gatekeeper.New(ctx, setup.Queries, setup.posts(mgr), setup.Clock, r.Log)
		}
		defer setup.Metrics.lead()()
		defer setup.RolloutMetrics.lead(setup.Clock)()
		defer setup.History.lead(setup.Clock)()
		defer setup.Vigil.lead(r)()
		if err := r.Register(mgr, setup.Window); err != nil {
			return err
		}
		return sweeper.Run(ctx)
	}))
}

// posts makes requests of webhooks; nil where no Secret may be read for them.
func (s *Setup) posts(mgr ctrl.Manager) gatekeeper.Posts {
	if len(s.Installation.GateSecrets) == 0 {
		return nil
	}
	return deliver.NewAsker(secrets.Reader{Live: mgr.GetAPIReader(), Namespace: s.Namespace, Only: s.Installation.GateSecrets}.Resolve, s.Egress, nil)
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
			log.Info("the cluster does not have ABReleases, so requests are not divided; install the chart's kinds")
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
