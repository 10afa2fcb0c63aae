// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/controller/assessment"
	"github.com/plumbline-dev/plumbline/internal/controller/baseline"
	"github.com/plumbline-dev/plumbline/internal/controller/environment"
	"github.com/plumbline-dev/plumbline/internal/controller/guard"
	"github.com/plumbline-dev/plumbline/internal/controller/guarddefaults"
	"github.com/plumbline-dev/plumbline/internal/controller/policy"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/notifier"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/internal/stamp"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/report"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

const (
	// lease is what replicas agree by; its name is part of the chart's RBAC.
	lease = "plumbline-assessor"
	// objectCacheBytes is the default of Setup.ObjectCacheBytes: less than a third of the
	// chart's limit of 512 MiB, as requests, Baselines and garbage take memory as well.
	objectCacheBytes = 160 << 20
	// unreadableAfter is the default of Setup.UnreadableAfter.
	unreadableAfter = time.Minute
)

// Setup is what the assessor needs from its process.
type Setup struct {
	Config *rest.Config
	// Namespace is Plumbline's own; it is never guarded, and holds the lease.
	Namespace   string
	LeaderElect bool
	Retention   time.Duration
	// UnreadableAfter is how long the watch of a kind may fail before the state
	// of its objects is told to be Unknown; a minute if zero.
	UnreadableAfter time.Duration
	// StampedGroups are the groups that the installation stamps.
	StampedGroups []string
	// Registered are the resources that the installation registers.
	Registered []schema.GroupVersionResource
	// Executor is the user name of Plumbline's own executor, whose writes authorize
	// nothing; empty when there is none.
	Executor string
	// PlanRetention is how long a plan stays after its end; seven days if zero.
	PlanRetention time.Duration
	// Notifications say how people are told; policies say who, and of what.
	Notifications notifier.Settings
	// GroupWait is how long a drift waits for others before people are told; a default if zero.
	GroupWait time.Duration
	// Rollouts says that the installation has rollouts: people are told about them by the channels of
	// Environments, what the executor leaves for them is authorized, and plans wait for them.
	Rollouts bool
	// Effectiveness says whether the effect of remediations is assessed.
	Effectiveness Effectiveness
	// Reports are the formats in which it reports on namespaces, and ReportInterval is how old a report
	// is at most; a default if zero.
	Reports        []report.Format
	ReportInterval time.Duration
	// Notifier takes the place of the one that Notifications make; may be nil.
	Notifier policy.Notifier
	// Rules of pkg/specguard. Without a Key one is made that lives as long as
	// the process.
	Rules specguard.Config
	// StampPolicy says that a policy stamps beside the webhook, where Rules.Stamp names
	// the webhook.
	StampPolicy bool
	// Records are the webhook's records of writes, nil without Redis.
	Records  baseline.RecordReader
	Registry prometheus.Registerer
	Log      logr.Logger
	Clock    clock.WithTicker
	// APIServerMetrics is how often the API server's own count of calls that it
	// went on without is read; zero: never.
	APIServerMetrics time.Duration
	// ResyncPeriod is the time between two scheduled checks of an object where
	// nothing else says one; nil says nothing either, 0 says never.
	ResyncPeriod *time.Duration
	// DriftInterval is the time between two scheduled checks of an object that asks for
	// them by annotation, where nothing else says one; a default if zero.
	DriftInterval time.Duration
	// DriftThreshold is the share of all guarded objects that may be checked or repaired
	// at once where no GuardDefaults say one; a default if zero.
	DriftThreshold resync.Percent
	// MaxConcurrentChecks bounds the checks that go on at once; a default if zero.
	MaxConcurrentChecks int
	// ObjectCacheBytes bounds the memory that the kept versions of objects take; a default
	// if zero.
	ObjectCacheBytes int64
	// Ready is told once the caches are synced; may be nil.
	Ready func()

	// time is the API server's, by which policies act.
	time *servertime.Keeper
}

// Run assesses until ctx ends. It returns an error when it cannot start or loses
// the lease; the process must end then.
func Run(ctx context.Context, setup Setup) error {
	asked := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := setup.complete(); err != nil {
		return err
	}
	mgr, err := newManager(setup)
	if err != nil {
		return err
	}
	p, err := register(ctx, mgr, setup)
	if err != nil {
		return err
	}
	err = mgr.Start(ctx)
	cancel()
	p.tracker.Wait()
	p.people.Close(ctx)
	if err != nil && asked.Err() == nil { // being told to stop while starting is no failure
		return fmt.Errorf("assessing: %w", err)
	}
	return nil
}

func (s *Setup) complete() error {
	if s.Config == nil || s.Registry == nil || s.Clock == nil {
		return errors.New("assessing: Config, Registry and Clock are needed")
	}
	s.time = servertime.New(s.Clock)
	s.UnreadableAfter = cmp.Or(s.UnreadableAfter, unreadableAfter)
	s.DriftThreshold = cmp.Or(s.DriftThreshold, resync.DefaultThreshold)
	s.MaxConcurrentChecks = cmp.Or(s.MaxConcurrentChecks, checks.DefaultMaxConcurrent)
	s.Effectiveness.MaxConcurrent = cmp.Or(s.Effectiveness.MaxConcurrent, DefaultMaxConcurrentAssessments)
	s.ObjectCacheBytes = cmp.Or(s.ObjectCacheBytes, objectCacheBytes)
	if len(s.Rules.Key) == 0 {
		s.Rules.Key = make([]byte, 32)
		if _, err := rand.Read(s.Rules.Key); err != nil {
			return fmt.Errorf("making a digest key: %w", err)
		}
		s.Log.Info("no digest key is given: digests of values change at every start")
	}
	return nil
}

func newManager(setup Setup) (manager.Manager, error) {
	mgr, _, err := elected.Part{
		Config: setup.Config, Lease: lease, Namespace: setup.Namespace, LeaderElect: setup.LeaderElect, Time: setup.time, Log: setup.Log,
		// Bodies are read when needed and never watched.
		Uncached: []client.Object{&v1alpha1.BaselineRevision{}},
		Cache:    cache.Options{DefaultTransform: (&baseline.Sharer{}).Transform},
	}.New()
	return mgr, err
}

// parts are the controllers, made and not yet registered.
type parts struct {
	// excluded namespaces are never guarded.
	excluded     []string
	live         *checks.LiveObjects
	tracker      *kube.Tracker
	ahead        *checks.Ahead // the tracker, with what checks have read
	guards       *guard.Controller
	status       *guard.Status
	environments *environment.Controller
	defaults     *guarddefaults.Controller
	baselines    *baseline.Reconciler
	trigger      *baseline.Trigger
	vigil        *baseline.Vigil
	checks       *checks.Scheduler
	figures      *figuresOf
	stamps       *stamp.Policy // nil where the webhook stamps
	source       *planning.FromCache
	policies     *policy.Reconciler
	people       *notifier.Notifier
	retention    *policy.Retention
	requests     *policy.Requests
	anchor       *policy.Anchor
	opener       *assessment.Opener    // nil where effects are not assessed, as assessments
	runOpener    *assessment.RunOpener // nil also where there are no rollouts
	assessments  *assessment.Reconciler
	synced       func(schema.GroupVersionKind)
}

func register(ctx context.Context, mgr manager.Manager, setup Setup) (*parts, error) {
	p, err := newParts(mgr, setup)
	if err != nil {
		return nil, err
	}
	p.connect(ctx, mgr.GetClient(), setup.Log)
	err = errors.Join(
		p.figures.register(ctx, mgr, p, setup),
		p.baselines.Register(mgr, p.trigger),
		p.guards.Register(ctx, mgr),
		p.status.Register(mgr),
		p.environments.Register(mgr),
		p.defaults.Register(mgr),
		p.policies.Register(mgr),
		p.people.Register(mgr),
		p.retention.Register(mgr),
		p.requests.Register(mgr),
		p.registerEffectiveness(ctx, mgr),
		registerReports(mgr, setup),
		mgr.Add(p.vigil),
		mgr.Add(&kube.SchemaWatch{Tracker: p.tracker, Clock: setup.Clock}),
		mgr.Add(p.checks),
		mgr.Add(elected.Synced(mgr.GetCache(), setup.Ready)),
	)
	drifts := &notifier.Drifts{People: p.people, Environments: p.environments, Clock: setup.Clock, GroupWait: setup.GroupWait}
	err = errors.Join(err, drifts.Register(mgr))
	if setup.Rollouts {
		releases := &notifier.Releases{People: p.people, Environments: p.environments, Clock: setup.Clock}
		err = errors.Join(err, releases.Register(mgr))
	}
	if setup.Executor != "" { // without an executor there is no evidence
		err = errors.Join(err, p.anchor.Register(mgr))
	}
	if setup.Records != nil {
		err = errors.Join(err, mgr.Add(&baseline.Ingest{
			Reader: setup.Records, Reconciler: p.baselines, Trigger: p.trigger, Clock: setup.Clock, Log: setup.Log,
		}))
	}
	if err != nil {
		return nil, fmt.Errorf("wiring the assessor: %w", err)
	}
	return p, nil
}

func newParts(mgr manager.Manager, setup Setup) (*parts, error) {
	metrics, err := baseline.NewMetrics(setup.Registry, setup.Clock)
	if err != nil {
		return nil, err
	}
	p := &parts{trigger: &baseline.Trigger{}, excluded: specguard.ExcludedNamespaces(setup.Namespace)}
	if err := p.addObjects(setup, metrics); err != nil {
		return nil, err
	}
	tracker := p.tracker
	p.guards = &guard.Controller{
		Client: mgr.GetClient(), Guards: guards.NewReader(mgr.GetClient(), mgr.GetAPIReader()), Clock: setup.Clock, Watcher: tracker,
		Excluded: p.excluded, System: specguard.System{Executor: setup.Executor}, Registered: setup.Registered,
	}
	enforcement, err := guard.NewEnforcementMetrics(setup.Registry)
	if err != nil {
		return nil, err
	}
	massDrift, err := guard.NewMassDriftMetrics(setup.Registry)
	if err != nil {
		return nil, err
	}
	exceptions, err := guard.NewExceptionMetrics(setup.Registry)
	if err != nil {
		return nil, err
	}
	p.status = &guard.Status{
		Client: mgr.GetClient(), Informers: mgr.GetCache(), Clock: setup.Clock, Guards: p.guards, Kinds: tracker, StampedGroups: setup.StampedGroups,
		Recorder: mgr.GetEventRecorder(lease), Metrics: massDrift, ExceptionMetrics: exceptions,
		Enforcement: &guard.Enforcement{
			Prober: guard.DryRun{Client: mgr.GetClient(), Live: mgr.GetAPIReader()},
			Clock:  setup.Clock, Recorder: mgr.GetEventRecorder(lease), Metrics: enforcement,
		},
	}
	p.environments = &environment.Controller{Client: mgr.GetClient(), Clock: setup.Clock}
	p.defaults = &guarddefaults.Controller{Client: mgr.GetClient(), Clock: setup.Clock}
	kinds, ok := mgr.GetRESTMapper().(*kube.Mapper)
	if !ok {
		return nil, fmt.Errorf("wiring the assessor: the manager's mapper is a %T, which does not tell about /scale", mgr.GetRESTMapper())
	}
	p.baselines = &baseline.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Contents: p.live,
		Objects: p.ahead, Agenda: checks.NewAgenda(), Guards: p.guards, Defaults: p.defaults, Environments: p.environments, Kinds: kinds,
		Records: baseline.NewRecords(), Recorder: mgr.GetEventRecorder(lease), Metrics: metrics, Clock: setup.Clock,
		Config: baseline.Config{Rules: setup.Rules, Retention: setup.Retention, UnreadableAfter: setup.UnreadableAfter, ResyncPeriod: setup.ResyncPeriod, DriftInterval: setup.DriftInterval},
	}
	p.baselines.Config.Executor = setup.Executor
	if setup.Rollouts {
		p.baselines.Config.ReleaseExecutor = setup.Executor
	}
	p.baselines.Prepare()
	if err := p.addStamps(mgr, setup); err != nil {
		return nil, err
	}
	if err := p.addPolicies(mgr, setup); err != nil {
		return nil, err
	}
	if err := p.addEffectiveness(mgr, setup); err != nil {
		return nil, err
	}
	if p.figures, err = newFigures(mgr.GetCache(), tracker, setup); err != nil {
		return nil, err
	}
	p.vigil = &baseline.Vigil{Reconciler: p.baselines, Trigger: p.trigger, Clock: setup.Clock}
	if err := p.addChecks(mgr.GetClient(), setup); err != nil {
		return nil, err
	}
	return p, nil
}

// connect makes news of one part reach the others.
func (p *parts) connect(ctx context.Context, reader client.Reader, log logr.Logger) {
	lookAt := func(concerns func(kube.Key) bool) {
		look := func(key kube.Key) {
			if concerns(key) {
				p.trigger.LookLater(key)
			}
		}
		p.tracker.Each(look)
		var baselines v1alpha1.BaselineList
		if err := reader.List(ctx, &baselines, client.UnsafeDisableDeepCopy); err != nil {
			log.Error(err, "listing baselines to look at all of them")
			return
		}
		for i := range baselines.Items {
			look(baseline.KeyOf(&baselines.Items[i]))
		}
	}
	lookAtAll := func() { lookAt(func(kube.Key) bool { return true }) }
	p.tracker.Subscribe(func(key kube.Key) {
		p.figures.writes.Note(key, p.tracker.View(key).Current)
		p.trigger.Look(key)
	})
	p.guards.Changed = func(changed guards.Scopes) {
		p.tracker.ReleaseContent()
		lookAt(changed.ContainObject)
		p.status.Count()
		p.lookAtPolicies(ctx)
	}
	p.defaults.Changed = lookAtAll
	p.environments.Changed = func() {
		p.defaults.EnvironmentsAssigned()
		lookAtAll()
	}
	p.synced = func(gvk schema.GroupVersionKind) {
		if err := p.vigil.LookAtKind(ctx, gvk); err != nil {
			log.Error(err, "looking for objects that were gone before their kind was listed")
		}
		p.lookAtPolicies(ctx) // known drift is no event, and they may have looked before the list
	}
}
