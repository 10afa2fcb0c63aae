// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plumbline-dev/plumbline/internal/controller/plan"
	"github.com/plumbline-dev/plumbline/internal/controller/releaserecord"
	"github.com/plumbline-dev/plumbline/internal/controller/releasework"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/figures"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/notifier"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// lease is what replicas agree by; its name is part of the chart's RBAC.
const lease = "plumbline-executor"

// User is the name of the executor's service account in Plumbline's namespace,
// where it has one of its own.
func User(namespace string) string {
	return "system:serviceaccount:" + namespace + ":plumbline-executor"
}

// Setup is what the executor needs from its process.
type Setup struct {
	Config *rest.Config
	// Namespace is Plumbline's own; it has the ledgers and the lease.
	Namespace   string
	LeaderElect bool
	// LeaseDuration is how long the lease of a leader that died holds the next one
	// up; zero is 15 s.
	LeaseDuration time.Duration
	// User is the executor's own name at the API server; [User] if empty.
	User string
	Caps ledger.Caps
	// Evidence is where records go, and with which keys.
	Evidence evidence.Writer
	Builder  evidence.Builder
	// ProbeInterval is how old the answer of the evidence store may be that another
	// probe is not made for; zero is [evidence.ProbeInterval].
	ProbeInterval time.Duration
	// PublicKeys as PEM are published in the ConfigMap plumbline-evidence.
	PublicKeys []byte
	// ReleaseWorks has ReleaseWorks carried out beside plans.
	ReleaseWorks bool
	// Mesh has objects put into quarantine, where proxies of Plumbline send requests.
	Mesh bool
	// AssessesEffects says that an assessor measures the effect of each step.
	AssessesEffects bool
	// Mirror is nil without Redis.
	Mirror *redisguard.Mirror
	// Notifications say how people are told; policies say who, and of what.
	Notifications notifier.Settings
	Registry      prometheus.Registerer
	Log           logr.Logger
	Clock         clock.WithTicker
	// Ready is told once the caches are synced; may be nil.
	Ready func()
}

// Run carries plans out until ctx ends. It returns an error when it cannot start
// or loses the lease; the process must end then.
func Run(ctx context.Context, setup Setup) error {
	if setup.Config == nil || setup.Registry == nil || setup.Clock == nil || setup.Evidence.Store == nil {
		return errors.New("executing: Config, Registry, Clock and Evidence are needed")
	}
	mgr, people, err := wire(setup)
	if err != nil {
		return fmt.Errorf("wiring the executor: %w", err)
	}
	// The lease is given back before it waits for what is still to be told.
	defer people.Close(ctx)
	if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("executing: %w", err)
	}
	return nil
}

// wire makes all parts, and starts none.
func wire(setup Setup) (manager.Manager, *notifier.Notifier, error) {
	keeper := servertime.New(setup.Clock)
	cached := map[client.Object]cache.ByObject{
		&v1alpha1.RemediationLedger{}: {Namespaces: map[string]cache.Config{setup.Namespace: {}}},
	}
	if setup.ReleaseWorks {
		cached[&v1alpha1.ABRelease{}] = cache.ByObject{Transform: releaserecord.Trim}
	}
	mgr, work, err := elected.Part{
		Config: setup.Config, Lease: lease, Namespace: setup.Namespace, LeaderElect: setup.LeaderElect,
		LeaseDuration: setup.LeaseDuration, Time: keeper, Log: setup.Log,
		Cache: cache.Options{ByObject: cached},
	}.New()
	if err != nil {
		return nil, nil, err
	}
	metrics, err := plan.NewMetrics(setup.Registry)
	if err != nil {
		return nil, nil, err
	}
	setup.Evidence.Store = metrics.Monitored(setup.Evidence.Store, cmp.Or(setup.ProbeInterval, evidence.ProbeInterval), setup.Clock)
	executor, err := NewExecutor(work, mgr.GetRESTMapper(), keeper, setup)
	if err != nil {
		return nil, nil, err
	}
	people, err := notifier.New(notifier.Config{
		Settings: setup.Notifications, Namespace: setup.Namespace, Live: mgr.GetAPIReader(), Cached: mgr.GetClient(),
		Registry: setup.Registry, Log: setup.Log.WithName("notifier"),
	})
	if err != nil {
		return nil, nil, err
	}
	return mgr, people, register(mgr, executor, metrics, people, setup)
}

// NewExecutor makes an executor that nobody observes yet. Its client has no cache:
// what decides on a write is read live. Of setup it needs Namespace, Caps, Evidence,
// Builder, Mirror, Log and Clock.
func NewExecutor(work *rest.Config, mapper meta.RESTMapper, time exec.Time, setup Setup) (*exec.Executor, error) {
	types, err := elected.Kinds()
	if err != nil {
		return nil, err
	}
	bounded := rest.CopyConfig(work)
	bounded.Timeout = protocol.RequestTimeout
	live, err := client.New(bounded, client.Options{Scheme: types, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	targets, err := exec.NewRESTTargets(work, mapper)
	if err != nil {
		return nil, err
	}
	kinds, err := exec.NewRESTKinds(work, setup.Clock)
	if err != nil {
		return nil, err
	}
	e := &exec.Executor{
		Client: live, Targets: targets, Kinds: kinds, Bodies: plan.Bodies{Client: live},
		Guards: &plan.Guards{
			Mapper: mapper, Excluded: specguard.ExcludedNamespaces(setup.Namespace),
			System: specguard.System{Executor: cmp.Or(setup.User, User(setup.Namespace))}, Clock: setup.Clock,
		},
		Evidence: &exec.Recorder{Writer: setup.Evidence, Builder: setup.Builder, Now: time.Now},
		Time:     time, Namespace: setup.Namespace, Caps: setup.Caps,
		// A name of its own for every start: what the one before stored is not
		// trusted to be all that it did.
		Holder: lease + "-" + string(uuid.NewUUID()),
	}
	e.Evidence.Heads = exec.LedgerHeads{Executor: e}
	if setup.ReleaseWorks {
		e.Rollouts = plan.Rollouts{}
	}
	if setup.Mesh {
		e.Mesh, e.Standbys = plan.Mesh{}, plan.Standbys{Targets: targets}
	}
	if setup.Mirror != nil {
		e.Mirror = mirror{setup.Mirror, time, setup.Log.WithName("mirror")}
	}
	return e, nil
}

func register(mgr manager.Manager, executor *exec.Executor, metrics *plan.Metrics, people *notifier.Notifier, setup Setup) error {
	observer := &plan.Observer{
		Log: setup.Log.WithName("remediation"), Recorder: mgr.GetEventRecorder(lease), Metrics: metrics,
		Policies: mgr.GetClient(), Notify: people.Tell, Time: executor.Time,
	}
	executor.Observer = observer
	leadership := &figures.Leadership{Component: "executor"}
	backlog := &plan.Backlog{Cached: mgr.GetClient(), Time: executor.Time, Active: leadership.Leading}
	if err := errors.Join(setup.Registry.Register(leadership), setup.Registry.Register(backlog)); err != nil {
		return fmt.Errorf("registering the executor's figures: %w", err)
	}
	executor.Cached = guards.NewReader(mgr.GetCache(), mgr.GetAPIReader())
	if setup.AssessesEffects {
		executor.Assessments = mgr.GetCache()
	}
	targets, err := watchTargets(mgr, setup)
	if err != nil {
		return err
	}
	reconciler := &plan.Reconciler{Executor: executor, Targets: targets, Cached: mgr.GetClient(), Time: executor.Time, AssessesEffects: setup.AssessesEffects}
	return errors.Join(
		reconciler.Register(mgr, source.Func(targets.Attach)),
		mgr.Add(targets),
		people.Register(mgr),
		recall(mgr, observer, setup),
		mgr.Add(leadership),
		mgr.Add(&prober{ready: executor.Evidence.Ready, clock: setup.Clock, log: setup.Log}),
		mgr.Add(&sweeper{executor: executor, clock: setup.Clock, log: setup.Log}),
		keepKeys(mgr, executor, setup),
		carryWorks(mgr, executor, leadership, setup),
		mgr.Add(elected.Synced(mgr.GetCache(), setup.Ready)),
	)
}

// carryWorks has ReleaseWorks carried out where the installation has rollouts.
func carryWorks(mgr manager.Manager, executor *exec.Executor, leadership *figures.Leadership, setup Setup) error {
	if !setup.ReleaseWorks {
		return nil
	}
	metrics, err := releasework.NewMetrics(setup.Registry, mgr.GetClient(), executor.Time, leadership.Leading)
	if err != nil {
		return fmt.Errorf("having ReleaseWorks counted: %w", err)
	}
	records := releaserecord.New(releaserecord.Config{
		Live: executor.Client, Chains: releaserecord.Recorder{Recorder: executor.Evidence}, Time: executor.Time, Namespace: setup.Namespace,
		Log: setup.Log.WithName("release"),
	})
	if err := records.Register(mgr); err != nil {
		return fmt.Errorf("having releases recorded: %w", err)
	}
	works := &releasework.Reconciler{
		Live: executor.Client, Targets: executor.Targets, Guards: executor.Guards, Recorder: mgr.GetEventRecorder(lease), Time: executor.Time,
		Namespace: setup.Namespace, Records: records, Metrics: metrics, Log: setup.Log.WithName("release"),
	}
	if err := works.Register(mgr); err != nil {
		return fmt.Errorf("having ReleaseWorks carried out: %w", err)
	}
	return nil
}

// watchTargets makes the watches of targets that plans wait for.
func watchTargets(mgr manager.Manager, setup Setup) (*plan.Targets, error) {
	client, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("making the client that watches targets: %w", err)
	}
	return &plan.Targets{Open: plan.OpenMetadata(client, mgr.GetRESTMapper()), Clock: setup.Clock, Log: setup.Log.WithName("targets")}, nil
}

// keepKeys publishes the keys, and ends the ranges of those of before.
func keepKeys(mgr manager.Manager, executor *exec.Executor, setup Setup) error {
	p := &publisher{
		client: executor.Client, namespace: setup.Namespace, keys: setup.PublicKeys, clock: setup.Clock, log: setup.Log, restored: newRestored(),
	}
	executor.Evidence.Ends = p
	failed := errors.Join(setup.Registry.Register(p.restored), mgr.Add(p))
	if len(setup.Evidence.Keys.IDs()) > 1 {
		failed = errors.Join(failed, mgr.Add(&rotator{executor: executor, clock: setup.Clock, log: setup.Log}))
	}
	return failed
}

// recall has what was perhaps not told told, where it is known what was.
func recall(mgr manager.Manager, observer *plan.Observer, setup Setup) error {
	if setup.Notifications.Seen == nil {
		return nil
	}
	return mgr.Add(&plan.Recall{
		Plans: mgr.GetClient(), Observer: observer, Log: setup.Log,
		// As long as the one before would have tried.
		Since: setup.Notifications.Retry.Completed().Deadline,
	})
}

// sweepEvery is how often ledgers are looked through for entries that nobody
// else ends.
const sweepEvery = time.Minute

type sweeper struct {
	executor *exec.Executor
	clock    clock.WithTicker
	log      logr.Logger
}

// Start implements manager.Runnable; only the leader does.
func (s *sweeper) Start(ctx context.Context) error {
	ticker := s.clock.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := s.executor.ClearLeftovers(ctx); err != nil && ctx.Err() == nil {
			s.log.Error(err, "looking through the ledgers")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}
