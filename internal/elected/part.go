// SPDX-License-Identifier: Apache-2.0

package elected

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Part says what a manager is made of.
type Part struct {
	// Config of the cluster; it is not changed.
	Config *rest.Config
	// Lease is what replicas agree by; its name is part of the chart's RBAC.
	Lease string
	// Namespace is Plumbline's own, which has the lease.
	Namespace string
	// LeaderElect makes it work only while it holds the lease.
	LeaderElect bool
	// LeaseDuration is how long the lease of a leader that died holds the next one
	// up; zero is 15 s.
	LeaseDuration time.Duration
	// Time learns from every answer of the API server.
	Time *servertime.Keeper
	// Cache is what is cached otherwise than usual. A transform of its own drops managedFields itself.
	Cache cache.Options
	// Uncached kinds are read when they are needed, and never watched.
	Uncached []client.Object
	Log      logr.Logger
}

// Kinds are those of Kubernetes and Plumbline's own, made anew at each call: a
// manager adds to its own while others decode by theirs.
func Kinds() (*runtime.Scheme, error) {
	types := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(types), v1alpha1.AddToScheme(types)); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	return types, nil
}

// New makes a manager that is not started yet, and the configuration that its
// clients have, for further ones.
func (p Part) New() (manager.Manager, *rest.Config, error) {
	types, err := Kinds()
	if err != nil {
		return nil, nil, err
	}
	work := rest.CopyConfig(p.Config)
	work.QPS = -1 // the API server's priority and fairness decides
	p.Time.Watch(work)
	// The lease has a client of its own: work that queues up must not cost it.
	election := rest.CopyConfig(p.Config)
	election.QPS, election.Burst = 10, 20
	p.Time.Watch(election) // asks also when nothing else does
	duration := cmp.Or(p.LeaseDuration, 15*time.Second)
	cached := p.Cache
	if cached.DefaultTransform == nil {
		cached.DefaultTransform = cache.TransformStripManagedFields()
	}
	mgr, err := ctrl.NewManager(work, ctrl.Options{
		Scheme: types,
		Logger: p.Log,
		// A guard may name a kind that the API server does not serve.
		MapperProvider: kube.MapperFor,
		// The process serves its own registry and health.
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                p.LeaderElect,
		LeaderElectionID:              p.Lease,
		LeaderElectionNamespace:       p.Namespace,
		LeaderElectionConfig:          election,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &duration,
		RenewDeadline:                 new(duration * 2 / 3),
		RetryPeriod:                   new(duration * 2 / 15),
		Cache:                         cached,
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: p.Uncached}},
		Controller: config.Controller{
			// Two parts, or several of one in a test, are in one process.
			SkipNameValidation: new(true),
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, work, nil
}

// Synced calls ready once the caches are synced, leader or not; ready may be nil.
func Synced(c cache.Cache, ready func()) manager.Runnable { return synced{c, ready} }

type synced struct {
	cache cache.Cache
	ready func()
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (synced) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s synced) Start(ctx context.Context) error {
	if s.cache.WaitForCacheSync(ctx) && s.ready != nil {
		s.ready()
	}
	<-ctx.Done()
	return nil
}

// Gate is a readiness check that opens once.
type Gate struct{ open atomic.Bool }

// Open makes the check pass.
func (g *Gate) Open() { g.open.Store(true) }

// Check says why the gate is closed.
func (g *Gate) Check() error {
	if g.open.Load() {
		return nil
	}
	return errors.New("the caches are not synced yet")
}
