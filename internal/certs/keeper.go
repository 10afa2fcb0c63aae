// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Mode names the writer of the certificates.
type Mode string

// The modes.
const (
	// ModeSelfManaged: the holder of the lease makes authority and leaf, and
	// publishes the bundle.
	ModeSelfManaged Mode = "SelfManaged"
	// ModeCertManager: cert-manager writes the Secret, and its CA injector writes the
	// bundles of webhooks. The keeper only reads. A ConfigMap has no injector, so the
	// holder of the lease writes the bundle of a ConfigMap.
	ModeCertManager Mode = "CertManager"
)

// Config names the objects of one installation.
type Config struct {
	Mode Mode
	// Namespace holds the Secret and the Lease.
	Namespace  string
	SecretName string
	LeaseName  string
	// ConfigurationName is that of the mutating and the validating webhook
	// configuration that the bundle is published in.
	ConfigurationName string
	// InjectionName is the name of one more mutating webhook configuration; empty without one.
	InjectionName string
	// ConfigMapName is that of the ConfigMap in Namespace that the bundle is
	// published in, in place of webhook configurations; empty: in those.
	ConfigMapName string
	// DeploymentName is our own Deployment; it owns a Secret that had to be made
	// again. Without such a Deployment the Secret has no owner.
	DeploymentName string
	// FieldManager owns the written fields.
	FieldManager string
	// Names are the DNS names and IP addresses of the serving certificate. The API server
	// calls the first name. A certificate of another issuer needs the first name alone.
	Names []string
	// Settle is how long a bundle has been published before a certificate relies on it.
	Settle time.Duration
	// Identity is this replica's name in the lease; unique.
	Identity string
}

// where is the place of the bundle, for messages.
func (c *Config) where() string {
	if c.ConfigMapName != "" {
		return fmt.Sprintf("ConfigMap %q", c.ConfigMapName)
	}
	return fmt.Sprintf("webhook configuration %q", c.ConfigurationName)
}

// retryAfter is the wait after a failed write or a lost race.
const retryAfter = time.Second

// Keeper serves the certificate to all and, holding the lease, keeps it.
type Keeper struct {
	client kubernetes.Interface
	cfg    Config
	log    *slog.Logger
	clock  *Clock
	watch  *watch

	// changed wakes the lease holder; one signal stands for any number.
	changed chan struct{}
	// settling are the authorities of another issuer.
	settling settling
	// observing has one change loaded after the other. Informers and a timer tell of changes
	// at once, and the older reading must not be the last.
	observing sync.Mutex
	current   atomic.Pointer[Material]
	leading   atomic.Bool

	// published is the bundle that all places were last seen to have, and
	// since when; only the lease holder's loop uses it.
	published      []byte
	publishedSince time.Time

	mu      sync.Mutex
	loadErr error // of the present content of the Secret
	keepErr error // of the last attempt to put things right
}

// NewKeeper returns a keeper, which is idle before Run. The clock should listen to the
// answers to the client.
func NewKeeper(client kubernetes.Interface, cfg Config, clock *Clock, log *slog.Logger) *Keeper {
	k := &Keeper{client: client, cfg: cfg, log: log, clock: clock, changed: make(chan struct{}, 1)}
	k.watch = newWatch(client, cfg, newPublisher(client, cfg), k.observe)
	return k
}

// Run watches, serves and, if the certificates are ours to write, competes for
// the lease until ctx ends. The certificate can still be served afterwards.
func (k *Keeper) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer k.settling.stop()
		return k.watch.run(ctx)
	})
	if !k.cfg.publishes() {
		return group.Wait()
	}
	group.Go(func() error {
		if !k.watch.waitSynced(ctx) {
			return nil // Only the end of ctx ends the wait.
		}
		return k.compete(ctx)
	})
	return group.Wait()
}

// compete holds the lease or waits for it, again and again until ctx ends.
func (k *Keeper) compete(ctx context.Context) error {
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: k.cfg.Namespace, Name: k.cfg.LeaseName},
				Client:     k.client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: k.cfg.Identity},
			},
			LeaseDuration:   15 * time.Second,
			RenewDeadline:   10 * time.Second,
			RetryPeriod:     2 * time.Second,
			ReleaseOnCancel: true,
			Name:            k.cfg.LeaseName,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: k.lead,
				OnStoppedLeading: func() { k.leading.Store(false) },
			},
		})
		if err != nil {
			return fmt.Errorf("competing for lease %s: %w", k.cfg.LeaseName, err)
		}
		elector.Run(ctx)
	}
	return nil
}

// lead keeps the certificates until ctx, the time of the lease, ends.
func (k *Keeper) lead(ctx context.Context) {
	k.leading.Store(true)
	k.log.Info("certs.leading", "identity", k.cfg.Identity)
	for ctx.Err() == nil {
		next, err := k.keep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			next = k.clock.Now().Add(retryAfter)
			k.log.Warn("certs.keep.failed", "error", err.Error())
		}
		k.setError(&k.keepErr, err)
		timer := time.NewTimer(next.Sub(k.clock.Now()))
		select {
		case <-ctx.Done():
		case <-k.changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// keep brings Secret and configurations to where they should be, and says when
// to look again.
func (k *Keeper) keep(ctx context.Context) (time.Time, error) {
	if k.cfg.Mode == ModeCertManager {
		return k.keepIssued(ctx)
	}
	secret, err := k.readSecret(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now := k.clock.Now() // After the read, which told us the API server's time.
	state := State{Remembered: k.current.Load(), Published: k.watch.bundles(), Names: k.cfg.Names, Settle: k.cfg.Settle}
	if secret != nil {
		// Unreadable content counts as absent: the keeper makes it again.
		state.Stored, _ = ParseMaterial(secret.Data)
	}
	if state.Stored != nil {
		state.PublishedSince = k.seePublished(Bundle(state.Stored.Authorities), state.Published, now)
	}
	plan := Decide(state, now)
	material := state.Stored
	if plan.Writes() {
		if material, err = Carry(plan, state, now); err != nil {
			return time.Time{}, err
		}
		if err := k.writeSecret(ctx, secret, material); err != nil {
			return time.Time{}, err
		}
		k.log.Info("certs.written", "new_authority", plan.NewAuthority, "new_leaf", plan.NewLeaf, "dropped_old", plan.DropOld)
	}
	if err := k.watch.publisher.Publish(ctx, Bundle(material.Authorities)); err != nil {
		return time.Time{}, fmt.Errorf("publishing the bundle: %w", err)
	}
	return plan.Next, nil
}

// seePublished notes since when each place has a bundle; zero while a place lacks it.
func (k *Keeper) seePublished(want []byte, have [][]byte, now time.Time) time.Time {
	switch {
	case !published(have, want):
		k.published, k.publishedSince = nil, time.Time{}
	case !bytes.Equal(k.published, want) || k.publishedSince.After(now): // After: the clock was put right.
		k.published, k.publishedSince = want, now
	}
	return k.publishedSince
}

// observe is called by the watch for every change; it loads and wakes.
func (k *Keeper) observe() {
	k.observing.Lock()
	if data, ok := k.watch.secretData(); ok {
		k.load(data)
	}
	k.observing.Unlock()
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// load takes a new certificate into service. Content that cannot be served leaves the
// present certificate in service.
func (k *Keeper) load(data map[string][]byte) {
	stored, err := k.parse(data)
	k.setError(&k.loadErr, err)
	switch {
	case errors.Is(err, ErrNoMaterial):
		return
	case err != nil:
		k.log.Warn("certs.load.failed", "error", err.Error())
		return
	}
	serving := k.current.Load()
	next := pick(serving, stored, k.settled(), k.names(), k.clock.Now())
	if next == serving {
		k.log.Info("certs.load.postponed", "reason", "the published certificates do not vouch for the new certificate yet")
		return
	}
	k.current.Store(next)
	if serving == nil || !serving.Leaf.Leaf.Equal(next.Leaf.Leaf) {
		k.log.Info("certs.loaded", "not_after", next.Leaf.Leaf.NotAfter, "serial", next.Leaf.Leaf.SerialNumber.Text(16))
	}
}

// settled are the bundles that a certificate may rely on. The keeper's own issuer waits
// before it relies on a bundle. A bundle of another issuer waits here.
func (k *Keeper) settled() [][]byte {
	bundles := k.watch.bundles()
	if k.cfg.Mode == ModeSelfManaged || !k.cfg.publishes() || len(bundles) == 0 {
		return bundles
	}
	return [][]byte{Bundle(k.settling.settled(bundles, k.cfg.Settle, k.clock.Now(), k.observe))}
}

// errNoFit says that certificate and key of the Secret are not a pair.
var errNoFit = errors.New("the serving certificate does not fit its key")

func (k *Keeper) parse(data map[string][]byte) (*Material, error) {
	if k.cfg.Mode == ModeCertManager {
		return ParseServing(data)
	}
	m, err := ParseMaterial(data)
	if err == nil && m.Leaf == nil {
		return nil, errNoFit
	}
	return m, err
}

// names are those that the certificate must have.
func (k *Keeper) names() []string {
	if k.cfg.Mode == ModeCertManager {
		return k.cfg.Names[:1]
	}
	return k.cfg.Names
}

// errNotLoaded is the error of a call before the first certificate.
var errNotLoaded = errors.New("no serving certificate yet")

// GetCertificate is for tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	m := k.current.Load()
	if m == nil {
		return nil, errNotLoaded
	}
	return m.Leaf, nil
}

// Loaded says why there is no certificate to serve yet.
func (k *Keeper) Loaded() error {
	if k.current.Load() == nil {
		return errors.Join(errNotLoaded, k.error(&k.loadErr), k.error(&k.keepErr))
	}
	return nil
}

// Ready returns the reason for which clients cannot call yet: there is no certificate, or
// the bundle of a place does not vouch for the certificate.
func (k *Keeper) Ready() error {
	if err := k.Loaded(); err != nil {
		return err
	}
	m := k.current.Load()
	bundles := k.watch.bundles()
	if len(bundles) == 0 {
		return errors.Join(fmt.Errorf("no %s", k.cfg.where()), k.error(&k.keepErr))
	}
	if err := verifyAll(m.Leaf, bundles, k.names(), k.clock.Now()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", k.cfg.where(), err), k.error(&k.loadErr), k.error(&k.keepErr))
	}
	return nil
}

// NotAfter is when the certificate in service expires; zero before there is one.
func (k *Keeper) NotAfter() time.Time {
	if m := k.current.Load(); m != nil {
		return m.Leaf.Leaf.NotAfter
	}
	return time.Time{}
}

// Leading says that this replica holds the lease.
func (k *Keeper) Leading() bool { return k.leading.Load() }

func (k *Keeper) setError(which *error, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	*which = err
}

func (k *Keeper) error(which *error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return *which
}
