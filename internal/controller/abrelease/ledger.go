// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// Ledger keeps sequences in a ConfigMap. The leader writes it, and writes it again after
// another writer has removed it, emptied it or restored an older content. It implements [Sequences].
type Ledger struct {
	// Live reads past the cache.
	Live   client.Reader
	Client client.Writer
	// Namespace is Plumbline's own.
	Namespace string
	Clock     clock.PassiveClock
	// Times are those of production unless they are set.
	Times Times
	// Metrics tell how full it is; may be nil.
	Metrics *Metrics

	mu sync.Mutex
	// known are the entries as they were stored when this process looked last.
	known  map[string]release.Entry
	looked time.Time
}

// Hold implements Sequences.
func (l *Ledger) Hold(ctx context.Context, service types.NamespacedName, r *v1alpha1.ABRelease, before uint64) (floor uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, is := l.known[release.EntryKey(service)]; is {
		if same, floor := e.Hold(r.Name, string(r.UID), before); same == e {
			return floor, nil
		}
	}
	if before == 0 {
		if err := l.undecided(ctx, r); err != nil {
			return 0, err
		}
	}
	return l.hold(ctx, service, r, before)
}

// Keep implements Sequences.
func (l *Ledger) Keep(ctx context.Context, service types.NamespacedName, r *v1alpha1.ABRelease, sequence uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.known[release.EntryKey(service)]
	if e.Holder == string(r.UID) && sequence <= e.Ceiling && l.Clock.Since(l.looked) < l.Times.withDefaults().Ledger {
		return nil
	}
	l.looked = l.Clock.Now() // also if it fails: it is not asked again at once
	_, err := l.hold(ctx, service, r, sequence)
	return err
}

func (l *Ledger) hold(ctx context.Context, service types.NamespacedName, r *v1alpha1.ABRelease, before uint64) (floor uint64, err error) {
	key := release.EntryKey(service)
	err = l.change(ctx, func(entries map[string]release.Entry, unread map[string]error) error {
		// A release with a sequence of its own says how far the Service is.
		if unread[key] != nil && before == 0 {
			return fmt.Errorf("%w; correct the entry, or take it out and restart the proxies of its Service", unread[key])
		}
		settle(entries, client.ObjectKeyFromObject(r), string(r.UID))
		e := entries[key]
		if before == 0 {
			e = release.EntryOf(entries, service)
		}
		e, floor = e.Hold(r.Name, string(r.UID), before)
		if before == 0 { // one that has something in force goes on
			if err := release.Admit(entries, service, e); err != nil {
				return err
			}
		}
		entries[key] = e
		return nil
	})
	if errors.As(err, new(*release.FullError)) {
		l.Metrics.refuse()
	}
	return floor, err
}

// undecided is an error unless the stored release is as it was read. The cache is no proof
// that the release has decided no split: a release that has decided, and seems to have lost
// the decision, would tell its Service a sequence below its own.
func (l *Ledger) undecided(ctx context.Context, r *v1alpha1.ABRelease) error {
	var stored v1alpha1.ABRelease
	if err := l.Live.Get(ctx, client.ObjectKeyFromObject(r), &stored); err != nil {
		return fmt.Errorf("reading release %s/%s: %w", r.Namespace, r.Name, err)
	}
	if stored.UID != r.UID || stored.ResourceVersion != r.ResourceVersion {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("abreleases").GroupResource(), r.Name, errors.New("it has changed since it was read"))
	}
	return nil
}

// Settle implements Sequences. The stored release of that name counts, and not the cached
// one: the cache of a former leader may be behind.
func (l *Ledger) Settle(ctx context.Context, name types.NamespacedName) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var stored v1alpha1.ABRelease // with no uid if the name has no release
	if err := l.Live.Get(ctx, name, &stored); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("reading release %s: %w", name, err)
	}
	return l.change(ctx, func(entries map[string]release.Entry, _ map[string]error) error {
		settle(entries, name, string(stored.UID))
		return nil
	})
}

// settle says of the entries that a release of this name holds, but for the one with
// this uid, that their holder is gone.
func settle(entries map[string]release.Entry, name types.NamespacedName, uid string) {
	for key, e := range entries {
		if e.Release == name.Name && e.Holder != uid && strings.HasPrefix(key, name.Namespace+".") {
			entries[key] = e.Settle()
		}
	}
}

// Known are the entries as they were stored when this process looked last, which it does now
// if it never has.
func (l *Ledger) Known(ctx context.Context) (map[string]release.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		if err := l.change(ctx, func(map[string]release.Entry, map[string]error) error { return nil }); err != nil {
			return nil, err
		}
	}
	return maps.Clone(l.known), nil
}

// Sweep marks the entries of Services that are gone, and drops those of these Services.
func (l *Ledger) Sweep(ctx context.Context, look release.Look, drop []types.NamespacedName) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var dropped int
	err := l.change(ctx, func(entries map[string]release.Entry, _ map[string]error) error {
		look.Mark(entries)
		dropped = release.Drop(entries, drop)
		return nil
	})
	if err == nil {
		l.Metrics.drop(dropped)
	}
	return err
}

// change writes entries that differ from the stored ones, and removes entries without a release.
// It reads again after a write of another writer. Unread entries stay as they are, unless they
// change.
func (l *Ledger) change(ctx context.Context, change func(entries map[string]release.Entry, unread map[string]error) error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored := &corev1.ConfigMap{}
		err := l.Live.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: release.LedgerName}, stored)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		entries, unread := l.read(stored.Data)
		if err := change(entries, unread); err != nil {
			return err
		}
		data := maps.Clone(stored.Data)
		if data == nil {
			data = map[string]string{}
		}
		maps.DeleteFunc(data, func(key, _ string) bool {
			_, is := entries[key]
			return !is && unread[key] == nil
		})
		maps.Copy(data, release.FormatEntries(entries))
		if !maps.Equal(stored.Data, data) {
			stored.Data = data
			if err := l.store(ctx, stored, err == nil); err != nil {
				return err
			}
		}
		l.known, l.looked = entries, l.Clock.Now()
		l.Metrics.fill(entries)
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing the sequences into ConfigMap %s/%s: %w", l.Namespace, release.LedgerName, err)
	}
	return nil
}

// read returns the stored entries, none of which is below a known one. Unreadable entries that
// this process does not know are unread.
func (l *Ledger) read(data map[string]string) (entries map[string]release.Entry, unread map[string]error) {
	entries, unread = map[string]release.Entry{}, map[string]error{}
	maps.Copy(entries, l.known)
	for key, text := range data {
		e, err := release.ParseEntry(text)
		known, is := l.known[key]
		switch {
		case err == nil && is:
			entries[key] = e.Restore(known)
		case err == nil:
			entries[key] = e
		case !is:
			unread[key] = fmt.Errorf("%s: %w", key, err)
		}
	}
	return entries, unread
}

func (l *Ledger) store(ctx context.Context, m *corev1.ConfigMap, there bool) error {
	if there {
		return l.Client.Update(ctx, m)
	}
	m.ObjectMeta = metav1.ObjectMeta{Namespace: l.Namespace, Name: release.LedgerName}
	err := l.Client.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		return apierrors.NewConflict(corev1.Resource("configmaps"), m.Name, errors.New("it was made meanwhile"))
	}
	return err
}
