// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// Ledger keeps sequences in a ConfigMap, which is written by who leads. It implements
// [Sequences].
type Ledger struct {
	// Live reads past the cache.
	Live   client.Reader
	Client client.Writer
	// Namespace is Plumbline's own.
	Namespace string

	mu sync.Mutex
	// held are entries as this process has written them.
	held map[string]release.Entry
}

// Hold implements Sequences.
func (l *Ledger) Hold(ctx context.Context, service types.NamespacedName, r *v1alpha1.ABRelease, before uint64) (floor uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := release.EntryKey(service)
	if e, is := l.held[key]; is {
		if same, floor := e.Hold(r.Name, string(r.UID), before); same == e {
			return floor, nil
		}
	}
	if before == 0 {
		if err := l.undecided(ctx, r); err != nil {
			return 0, err
		}
	}
	var held release.Entry
	err = l.change(ctx, func(entries map[string]release.Entry) {
		held, floor = entries[key].Hold(r.Name, string(r.UID), before)
		settle(entries, client.ObjectKeyFromObject(r), string(r.UID))
		entries[key] = held
	})
	if err != nil {
		return 0, err
	}
	if l.held == nil {
		l.held = map[string]release.Entry{}
	}
	l.held[key] = held
	return floor, nil
}

// undecided is an error unless the release is as it was read: that it has decided
// nothing is believed of what is stored, and not of a cache. One that has, and seems to
// have lost it, would have its Service told a sequence that it is below itself.
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

// Settle implements Sequences.
func (l *Ledger) Settle(ctx context.Context, name types.NamespacedName) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.change(ctx, func(entries map[string]release.Entry) { settle(entries, name, "") })
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

// change writes entries where they differ. What somebody else wrote meanwhile is read
// again.
func (l *Ledger) change(ctx context.Context, change func(map[string]release.Entry)) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored := &corev1.ConfigMap{}
		err := l.Live.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: release.LedgerName}, stored)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		entries, wrong := release.ParseEntries(stored.Data)
		if wrong != nil {
			return wrong
		}
		was := maps.Clone(entries)
		change(entries)
		if maps.Equal(was, entries) {
			return nil
		}
		stored.Data = release.FormatEntries(entries)
		if err == nil {
			return l.Client.Update(ctx, stored)
		}
		stored.ObjectMeta = metav1.ObjectMeta{Namespace: l.Namespace, Name: release.LedgerName}
		if err := l.Client.Create(ctx, stored); apierrors.IsAlreadyExists(err) {
			return apierrors.NewConflict(corev1.Resource("configmaps"), stored.Name, errors.New("it was made meanwhile"))
		} else if err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing the sequences into ConfigMap %s/%s: %w", l.Namespace, release.LedgerName, err)
	}
	return nil
}
