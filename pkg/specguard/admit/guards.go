// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

const (
	// confirmEvery is how often the API server is asked whether it still
	// answers for the guards: a watch that has silently died looks like quiet.
	confirmEvery = 15 * time.Second
	// confirmTimeout bounds one such question.
	confirmTimeout = 5 * time.Second
	// relistEvery is how often the API server is asked for kinds that it did not serve.
	relistEvery = 15 * time.Second
)

// Mapper finds the resources of kinds. Anybody may name kinds, so an unknown kind must
// cost no call of its own.
type Mapper interface {
	meta.RESTMapper
	// FindListed answers like RESTMapping, and never waits for the API server.
	FindListed(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
	// Refresh asks the API server for all kinds, unless it was asked a moment ago, and
	// tells whether the answers of FindListed may have changed.
	Refresh() bool
}

// GuardsConfig is what Guards needs to know.
type GuardsConfig struct {
	// ExcludedNamespaces are never guarded.
	ExcludedNamespaces []string
	System             specguard.System
	// Mapper finds the resource of a guarded kind; asked outside of reviews only.
	Mapper Mapper
	Log    *slog.Logger
}

// Guards follows the guard kinds and the namespaces and keeps the Snapshot.
// While the API server is away the last one stays.
type Guards struct {
	cfg   GuardsConfig
	cache cache.Cache
	// cached reads the cache, and direct reads the API server.
	cached, direct client.Reader
	changed        chan struct{}
	// lacking wakes relist.
	lacking chan struct{}

	snapshot  atomic.Pointer[Snapshot]
	confirmed atomic.Int64 // Unix nanoseconds; 0: never
	// exceptions is set once exceptions are watched.
	exceptions atomic.Bool
	active     atomic.Int64
	inert      atomic.Int64
	compiled   map[guardKey]compiledGuard
	// unknown is how many guarded kinds the last listing of all kinds lacks.
	unknown atomic.Int64
}

// guardKey names one version of one guard.
type guardKey struct {
	uid        types.UID
	generation int64
}

type compiledGuard struct {
	guard *specguard.Guard // nil: it did not compile
}

// NewGuards makes the informers; nothing is read before Run.
func NewGuards(config *rest.Config, cfg GuardsConfig) (*Guards, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	shared := true
	c, err := cache.New(config, cache.Options{
		Scheme:           scheme,
		Mapper:           cfg.Mapper,
		DefaultTransform: cache.TransformStripManagedFields(),
		// A namespace is read once or twice in every review, and nothing that is
		// read here is ever changed.
		DefaultUnsafeDisableDeepCopy: &shared,
	})
	if err != nil {
		return nil, fmt.Errorf("making the guard cache: %w", err)
	}
	direct, err := client.New(config, client.Options{Scheme: scheme, Mapper: cfg.Mapper})
	if err != nil {
		return nil, fmt.Errorf("making the guard client: %w", err)
	}
	return &Guards{
		cfg:      cfg,
		cache:    c,
		cached:   c,
		direct:   direct,
		changed:  make(chan struct{}, 1),
		lacking:  make(chan struct{}, 1),
		compiled: map[guardKey]compiledGuard{},
	}, nil
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return m
}

// Run follows until ctx ends.
func (g *Guards) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.cache.Start(ctx) })
	group.Go(func() error { return g.follow(ctx) })
	return group.Wait()
}

func (g *Guards) follow(ctx context.Context) error {
	namespaces, err := g.cache.GetInformer(ctx, namespaceMetadata(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching namespaces: %w", err)
	}
	for _, kind := range []client.Object{&v1alpha1.SpecGuard{}, &v1alpha1.ClusterSpecGuard{}} {
		if err := g.watch(ctx, kind); err != nil {
			return err
		}
	}
	var exceptions sync.WaitGroup
	defer exceptions.Wait()
	if readable, _ := g.watchExceptions(ctx); !readable {
		exceptions.Go(func() { _ = wait.PollUntilContextCancel(ctx, readableInterval, false, g.watchExceptions) })
	}
	if !g.cache.WaitForCacheSync(ctx) || !toolscache.WaitForCacheSync(ctx.Done(), namespaces.HasSynced) {
		return nil // Only the end of ctx ends the wait.
	}
	return g.keep(ctx)
}

// watch wakes the loop at each change of a kind.
func (g *Guards) watch(ctx context.Context, kind client.Object) error {
	informer, err := g.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { wake(g.changed) },
			UpdateFunc: func(any, any) { wake(g.changed) },
			DeleteFunc: func(any) { wake(g.changed) },
		})
	}
	if err != nil {
		return fmt.Errorf("watching guards: %w", err)
	}
	return nil
}

// watchExceptions watches exceptions as soon as they can be read, which they cannot beside the
// kinds or the rights of a former release.
func (g *Guards) watchExceptions(ctx context.Context) (readable bool, _ error) {
	err := g.direct.List(ctx, &v1alpha1.SpecGuardExceptionList{}, client.Limit(1)) // a cache would wait for ever
	if err == nil {
		err = g.watch(ctx, &v1alpha1.SpecGuardException{})
	}
	if err != nil {
		g.cfg.Log.Info("guard.exceptions.unwatched", "error", err.Error())
		return false, nil
	}
	g.exceptions.Store(true)
	wake(g.changed)
	return true, nil
}

// readableInterval is the time between two attempts to read exceptions.
const readableInterval = 10 * time.Second

// wake has a loop go round once more, at the next chance.
func wake(loop chan<- struct{}) {
	select {
	case loop <- struct{}{}:
	default:
	}
}

// keep keeps the snapshot until ctx ends. Only relist and confirm wait for the API
// server, so that an API server that is slow to answer them delays no guard.
func (g *Guards) keep(ctx context.Context) error {
	if err := g.rebuild(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.followGuards(ctx) })
	group.Go(func() error { every(ctx, confirmEvery, nil, g.confirm); return nil })
	group.Go(func() error { every(ctx, relistEvery, g.lacking, g.relist); return nil })
	return group.Wait()
}

// followGuards rebuilds the snapshot whenever a guard or the listing of kinds changed.
func (g *Guards) followGuards(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.changed:
			if err := g.rebuild(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// every calls a function at once, after each interval, and when it is woken.
func every(ctx context.Context, interval time.Duration, woken <-chan struct{}, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		do(ctx)
		select {
		case <-ctx.Done():
			return
		case <-woken:
		case <-tick.C:
		}
	}
}

// relist lists all kinds anew while guards name kinds that the last listing lacks.
func (g *Guards) relist(context.Context) {
	if g.unknown.Load() > 0 && g.cfg.Mapper.Refresh() {
		wake(g.changed)
	}
}

// confirm asks the API server past the cache.
func (g *Guards) confirm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	if err := g.direct.List(ctx, &v1alpha1.ClusterSpecGuardList{}, client.Limit(1)); err == nil {
		g.confirmed.Store(time.Now().UnixNano())
	}
}

// rebuild compiles what is in the cache. A guard that does not compile is
// inert, and the others are not affected.
func (g *Guards) rebuild(ctx context.Context) error {
	var guards v1alpha1.SpecGuardList
	var clusterGuards v1alpha1.ClusterSpecGuardList
	var exceptions v1alpha1.SpecGuardExceptionList
	err := errors.Join(g.cached.List(ctx, &guards), g.cached.List(ctx, &clusterGuards))
	if g.exceptions.Load() { // others excuse nothing
		err = errors.Join(err, g.cached.List(ctx, &exceptions))
	}
	if err != nil {
		return fmt.Errorf("reading guards: %w", err)
	}
	made := make(map[specguard.GuardRef]time.Time, len(guards.Items))
	for i := range guards.Items {
		made[refOf(&guards.Items[i].ObjectMeta)] = guards.Items[i].CreationTimestamp.Time
	}
	excess := specguard.FindExcessGuards(made)
	compiled := map[guardKey]compiledGuard{}
	for i := range guards.Items {
		o := &guards.Items[i]
		if !excess[refOf(&o.ObjectMeta)] {
			g.compile(compiled, &o.ObjectMeta, v1alpha1.ClusterGuardSpec{GuardSpec: o.Spec})
		}
	}
	for i := range clusterGuards.Items {
		o := &clusterGuards.Items[i]
		g.compile(compiled, &o.ObjectMeta, o.Spec)
	}
	g.compiled = compiled
	var usable []*specguard.Guard
	for _, c := range compiled {
		if c.guard != nil {
			usable = append(usable, c.guard)
		}
	}
	set := specguard.NewGuardSet(usable, g.cfg.ExcludedNamespaces, g.cfg.System).WithExceptions(g.compileExceptions(exceptions.Items))
	parents, unknown := g.parents(set.Resources())
	if before := g.unknown.Swap(unknown); unknown > 0 {
		if unknown != before {
			g.cfg.Log.Info("guard.kinds.unknown", "kinds", unknown)
		}
		wake(g.lacking)
	}
	g.snapshot.Store(&Snapshot{Guards: set, Parents: parents, NamespaceLabels: g.namespaceLabels})
	g.active.Store(int64(len(usable)))
	g.inert.Store(int64(len(compiled) - len(usable)))
	return nil
}

// compileExceptions compiles the exceptions that are in force. Of the others the assessor tells
// the reason.
func (g *Guards) compileExceptions(all []v1alpha1.SpecGuardException) []*specguard.Exception {
	excess := specguard.FindExcessExceptions(all)
	compiled := make([]*specguard.Exception, 0, len(all))
	for i := range all {
		if exception, errs := specguard.CompileException(&all[i]); len(errs) == 0 && !excess[i] {
			compiled = append(compiled, exception)
		}
	}
	return compiled
}

func refOf(m *metav1.ObjectMeta) specguard.GuardRef {
	return specguard.GuardRef{Namespace: m.Namespace, Name: m.Name}
}

func (g *Guards) compile(into map[guardKey]compiledGuard, m *metav1.ObjectMeta, spec v1alpha1.ClusterGuardSpec) {
	key := guardKey{m.UID, m.Generation}
	if known, ok := g.compiled[key]; ok {
		into[key] = known
		return
	}
	ref := refOf(m)
	guard, errs := specguard.Compile(ref, spec.GuardSpec, spec.NamespaceSelector, m.CreationTimestamp.Time)
	if len(errs) > 0 {
		g.cfg.Log.Warn("guard.inert", "guard", ref.String(), "namespace", m.Namespace, "error", errs.ToAggregate().Error())
		into[key] = compiledGuard{}
		return
	}
	into[key] = compiledGuard{guard: guard.WithTenantExceptions(spec.Exceptions)}
}

// builtInParents are known without asking.
var builtInParents = map[GroupResource]canon.GVK{
	{"apps", "deployments"}:        {Group: "apps", Version: "v1", Kind: "Deployment"},
	{"apps", "statefulsets"}:       {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{"apps", "replicasets"}:        {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{"", "replicationcontrollers"}: {Version: "v1", Kind: "ReplicationController"},
}

// parents maps the resources of all guarded kinds to these kinds. A kind that the API
// server does not serve has no writes either; unknown counts those, which relist looks
// for.
func (g *Guards) parents(kinds []canon.GVK) (parents map[GroupResource]canon.GVK, unknown int64) {
	parents = make(map[GroupResource]canon.GVK, len(kinds)+len(builtInParents))
	maps.Copy(parents, builtInParents)
	for _, kind := range kinds {
		if isBuiltInParent(kind) {
			continue
		}
		mapping, err := g.cfg.Mapper.FindListed(schemaGroupKind(kind), kind.Version)
		if err != nil {
			unknown++
			g.cfg.Log.Debug("guard.kind.unknown", "kind", kind.Kind, "group", kind.Group, "error", err.Error())
			continue
		}
		parents[GroupResource{mapping.Resource.Group, mapping.Resource.Resource}] = kind
	}
	return parents, unknown
}

func (g *Guards) namespaceLabels(namespace string) map[string]string {
	m := namespaceMetadata()
	// A cached read; it cannot block, the cache is synced before the first snapshot.
	if err := g.cached.Get(context.Background(), client.ObjectKey{Name: namespace}, m); err != nil {
		return nil
	}
	return m.Labels
}

// Snapshot is the present one; nil before the first.
func (g *Guards) Snapshot() *Snapshot { return g.snapshot.Load() }

// Ready says that there is no snapshot yet.
func (g *Guards) Ready() error {
	if g.snapshot.Load() == nil {
		return errors.New("the guards are not read yet")
	}
	return nil
}
