// SPDX-License-Identifier: Apache-2.0

package certs

import (
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

// Config names the objects of one installation.
type Config struct {
	// Namespace holds the Secret and the Lease.
	Namespace  string
	SecretName string
	LeaseName  string
	// ConfigurationName is that of the mutating and the validating webhook configuration.
	ConfigurationName string
	// DeploymentName is the webhook's own Deployment; it owns a Secret that had
	// to be made again. Without such a Deployment the Secret has no owner.
	DeploymentName string
	// Names are the DNS names and IP addresses of the serving certificate.
	Names []string
	// Identity is this replica's name in the lease; unique.
	Identity string
}

// retryAfter is the wait after a failed write or a lost race.
const retryAfter = time.Second

// Keeper serves the certificate to all and, holding the lease, keeps it.
type Keeper struct {
	client kubernetes.Interface
	cfg    Config
	log    *slog.Logger
	now    func() time.Time
	watch  *watch

	// changed wakes the lease holder; one signal stands for any number.
	changed chan struct{}
	current atomic.Pointer[Material]
	leading atomic.Bool

	mu      sync.Mutex
	lastErr error
}

// NewKeeper returns a keeper; nothing happens before Run.
func NewKeeper(client kubernetes.Interface, cfg Config, log *slog.Logger) *Keeper {
	k := &Keeper{client: client, cfg: cfg, log: log, now: time.Now, changed: make(chan struct{}, 1)}
	k.watch = newWatch(client, cfg, k.observe)
	return k
}

// Run watches, serves and competes for the lease until ctx ends. The
// certificate can still be served afterwards.
func (k *Keeper) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.watch.run(ctx) })
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
			next = k.now().Add(retryAfter)
			k.log.Warn("certs.keep.failed", "error", err.Error())
		}
		k.setError(err)
		timer := time.NewTimer(next.Sub(k.now()))
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
	secret, err := k.readSecret(ctx)
	if err != nil {
		return time.Time{}, err
	}
	state := State{Remembered: k.current.Load(), Published: k.watch.bundles(), Names: k.cfg.Names}
	if secret != nil {
		// What cannot be read is like nothing: it is made again.
		state.Stored, _ = ParseMaterial(secret.Data)
	}
	now := k.now()
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
	if err := k.publish(ctx, Bundle(material.Authorities)); err != nil {
		return time.Time{}, err
	}
	return plan.Next, nil
}

// observe is called by the watch for every change; it loads and wakes.
func (k *Keeper) observe() {
	if data, ok := k.watch.secretData(); ok {
		k.load(data)
	}
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// load takes a new certificate into service. What cannot be served leaves the
// present one where it is.
func (k *Keeper) load(data map[string][]byte) {
	material, err := ParseMaterial(data)
	switch {
	case errors.Is(err, ErrNoMaterial):
		return
	case err == nil && material.Leaf == nil:
		err = errors.New("the serving certificate does not fit its key")
	}
	if err != nil {
		k.log.Warn("certs.load.failed", "error", err.Error())
		return
	}
	if old := k.current.Swap(material); old == nil || !old.Leaf.Leaf.Equal(material.Leaf.Leaf) {
		k.log.Info("certs.loaded", "not_after", material.Leaf.Leaf.NotAfter, "serial", material.Leaf.Leaf.SerialNumber.Text(16))
	}
}

// errNotLoaded is what a caller gets before the first certificate is there.
var errNotLoaded = errors.New("no serving certificate yet")

// GetCertificate is for tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	m := k.current.Load()
	if m == nil {
		return nil, errNotLoaded
	}
	return m.Leaf, nil
}

// Ready says why the API server cannot call us yet: no certificate, or a
// configuration whose bundle does not vouch for it.
func (k *Keeper) Ready() error {
	m := k.current.Load()
	if m == nil {
		return errors.Join(errNotLoaded, k.lastError())
	}
	bundles := k.watch.bundles()
	if len(bundles) == 0 {
		return fmt.Errorf("no webhook configuration %q", k.cfg.ConfigurationName)
	}
	for _, b := range bundles {
		authorities, err := parseBundle(b)
		if err != nil || !trusted(m.Leaf.Leaf, authorities, k.cfg.Names, k.now()) {
			return fmt.Errorf("a caBundle of webhook configuration %q does not vouch for the serving certificate", k.cfg.ConfigurationName)
		}
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

func (k *Keeper) setError(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastErr = err
}

func (k *Keeper) lastError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lastErr
}
