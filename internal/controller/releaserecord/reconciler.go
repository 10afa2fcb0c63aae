// SPDX-License-Identifier: Apache-2.0

package releaserecord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/traffic/record"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// again is when a release is looked at again whose records could not be stored, and soon when more records of
// the release are missing than one look writes.
const (
	again = 3 * time.Second
	soon  = time.Millisecond
)

// Chains writes records; *exec.Recorder does.
type Chains interface {
	// Delivered returns the newest records of a chain, and ReadBefore those before a sequence.
	Delivered(ctx context.Context, ledger, chain string) ([]evidence.Record, error)
	ReadBefore(ctx context.Context, chain string, before int64) ([]evidence.Record, error)
	// Note appends a record, and KeepHead keeps the end of the chain.
	Note(ctx context.Context, ledger string, r evidence.Record) (evidence.Head, error)
	KeepHead(ctx context.Context, ledger, chain string) error
	// Keep stores a body, and ReadBody reads one.
	Keep(ctx context.Context, chain string, body []byte) (string, error)
	ReadBody(ctx context.Context, chain, digest string) ([]byte, error)
}

// Config is what a Reconciler needs.
type Config struct {
	// Live must read live: no cache.
	Live client.Reader
	// Chains writes the records.
	Chains Chains
	// Time is the API server's time.
	Time exec.Time
	// Namespace is Plumbline's own. Its uid is that of the chain of releases that belong to no Environment.
	Namespace string
	Log       logr.Logger
}

// Reconciler leaves the records of releases.
type Reconciler struct {
	Config

	// surveyed says that the chains of before were looked for, and own is the uid of Plumbline's namespace. Both
	// are of the one worker.
	surveyed bool
	own      types.UID
	woken    chan event.TypedGenericEvent[*v1alpha1.ReleaseWork]

	mu sync.Mutex
	// known are the chains that this process has met.
	known map[place]*record.State
	// problems tell why the records of a release could not be stored, and last are the last states of releases
	// that are gone.
	problems map[types.NamespacedName]string
	last     map[types.NamespacedName][]*v1alpha1.ABRelease
}

// place is a chain, and where its head is kept.
type place struct{ ledger, chain, environment string }

// maxWoken bounds the works that are to be woken. A work that is not woken is looked at soon all the same.
const maxWoken = 256

// New makes a reconciler that is not registered yet.
func New(c Config) *Reconciler {
	return &Reconciler{
		Config: c, woken: make(chan event.TypedGenericEvent[*v1alpha1.ReleaseWork], maxWoken),
		known: map[place]*record.State{}, problems: map[types.NamespacedName]string{}, last: map[types.NamespacedName][]*v1alpha1.ABRelease{},
	}
}

// Woken tells of works whose intent was recorded.
func (r *Reconciler) Woken() <-chan event.TypedGenericEvent[*v1alpha1.ReleaseWork] { return r.woken }

// Recorded says whether the intent of a work is recorded, as it is stored, and why records of its release
// cannot be stored; empty if they can, as far as it is known.
func (r *Reconciler) Recorded(w *v1alpha1.ReleaseWork) (recorded bool, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, state := range r.known {
		recorded = recorded || state.Cursors.HasIntent(w)
	}
	return recorded, r.problems[types.NamespacedName{Namespace: w.Namespace, Name: w.Spec.ReleaseName}]
}

// HasEnd says whether the end of a work is recorded.
func (r *Reconciler) HasEnd(w *v1alpha1.ReleaseWork) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, state := range r.known {
		if state.Cursors.HasEnd(w) {
			return true
		}
	}
	return false
}

// Reconcile records what is missing of a release. A failure is told in the works that wait for it.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	more, err := r.reconcile(ctx, request.NamespacedName)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.problems[request.NamespacedName] = err.Error()
		r.Log.Error(err, "release.evidence.failed", "namespace", request.Namespace, "release", request.Name)
		return reconcile.Result{RequeueAfter: again}, nil
	}
	delete(r.problems, request.NamespacedName)
	if more {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{}, nil
}

// reconcile records what is missing, up to the bound of one look, and returns whether more is missing.
func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) (more bool, err error) {
	if key == surveyKey || !r.surveyed {
		// A chain that cannot be read keeps no other chain from going on.
		if unread, err := r.survey(ctx); err != nil || key == surveyKey && unread != nil {
			return false, errors.Join(err, unread)
		}
		r.surveyed = true
	}
	if key == surveyKey {
		return r.bury(ctx)
	}
	at, met, err := r.meet(ctx, key)
	if err != nil {
		return false, err
	}
	// The release is read after the cursors: what is read before could be older than what is recorded.
	release, works, err := r.read(ctx, key)
	if err != nil {
		return false, err
	}
	gone := r.lastOf(key)
	if more, err = r.recordGone(ctx, key, at, release, gone); err != nil || more {
		return more, err
	}
	r.forget(key, gone)
	if release == nil || !met {
		return false, nil
	}
	facts := &record.Facts{Chain: at.chain, Environment: at.environment, Release: release, Works: works, Now: r.Time.Now()}
	if more, err = r.write(ctx, at, facts); err != nil {
		return false, err
	}
	r.wake(works, release)
	return more, nil
}

// meet finds the chain of a release, and reads its end. A release of which there is nothing to record makes
// no chain begin: false. A release whose namespace is gone has no chain either.
func (r *Reconciler) meet(ctx context.Context, key types.NamespacedName) (place, bool, error) {
	at, is, err := r.placeOf(ctx, key.Namespace)
	if err != nil || !is {
		return at, false, err
	}
	if r.stateOf(at) == nil {
		release, works, err := r.read(ctx, key)
		if err != nil {
			return at, false, err
		}
		begins := release != nil && hasRecords(release, works)
		for _, last := range r.lastOf(key) {
			begins = begins || hasRecords(last, nil)
		}
		if !begins {
			return at, false, nil
		}
	}
	_, err = r.state(ctx, at)
	return at, err == nil, err
}

// hasRecords says whether there is anything to record of a release.
func hasRecords(release *v1alpha1.ABRelease, works []v1alpha1.ReleaseWork) bool {
	return len(record.Next(record.Cursors{}, &record.Facts{Release: release, Works: works})) > 0
}

// recordGone records the end of releases that had the name and do not exist any more, of some of which the last
// state is known. It returns whether more records are missing.
func (r *Reconciler) recordGone(ctx context.Context, key types.NamespacedName, at place, live *v1alpha1.ABRelease, states []*v1alpha1.ABRelease) (more bool, failed error) {
	for _, g := range r.buried(key, at, live, states) {
		facts := &record.Facts{Chain: g.at.chain, Environment: g.at.environment, Release: g.last, Gone: true, Now: r.Time.Now()}
		rest, err := r.write(ctx, g.at, facts)
		more, failed = more || rest, errors.Join(failed, err)
	}
	return more, failed
}

// lastOf returns the last states of releases of a name that are gone.
func (r *Reconciler) lastOf(key types.NamespacedName) []*v1alpha1.ABRelease {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.last[key])
}

// forget drops the last states of releases whose end is recorded.
func (r *Reconciler) forget(key types.NamespacedName, states []*v1alpha1.ABRelease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.last[key], func(one *v1alpha1.ABRelease) bool { return slices.Contains(states, one) })
	if r.last[key] = left; len(left) == 0 {
		delete(r.last, key)
	}
}

// grave is a release that is gone, in one chain, as this process has seen it last.
type grave struct {
	at   place
	last *v1alpha1.ABRelease
}

// buried lists the releases of a name that are gone: those of all chains with a cursor, and those that this
// process saw go before it recorded anything of them.
func (r *Reconciler) buried(key types.NamespacedName, at place, live *v1alpha1.ABRelease, states []*v1alpha1.ABRelease) []grave {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := map[string]*v1alpha1.ABRelease{}
	for _, release := range states {
		last[string(release.UID)] = release
	}
	var gone []grave
	told := map[string]bool{}
	for in, state := range r.known {
		for uid, cursor := range state.Cursors {
			isKey := cursor.Namespace == key.Namespace && cursor.Name == key.Name
			if isKey && (live == nil || string(live.UID) != uid) {
				gone = append(gone, grave{in, cmp.Or(last[uid], record.Unseen(uid, cursor))})
				told[uid] = true
			}
		}
	}
	for uid, release := range last {
		if _, met := r.known[at]; met && !told[uid] && (live == nil || string(live.UID) != uid) {
			gone = append(gone, grave{at, release})
		}
	}
	return gone
}

// read reads a release, and the works of its namespace; nil if it does not exist.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (*v1alpha1.ABRelease, []v1alpha1.ReleaseWork, error) {
	release := &v1alpha1.ABRelease{}
	err := r.Live.Get(ctx, key, release)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("reading ABRelease %s: %w", key, err)
	}
	if err != nil {
		return nil, nil, nil //nolint:nilerr // absent is an answer
	}
	var works v1alpha1.ReleaseWorkList
	if err := r.Live.List(ctx, &works, client.InNamespace(key.Namespace)); err != nil {
		return nil, nil, fmt.Errorf("listing ReleaseWorks of namespace %s: %w", key.Namespace, err)
	}
	return release, works.Items, nil
}

// wake has the works looked at that wait for their record.
func (r *Reconciler) wake(works []v1alpha1.ReleaseWork, release *v1alpha1.ABRelease) {
	for i := range works {
		w := &works[i]
		if w.Spec.ReleaseUID != string(release.UID) || w.Status.Intent == nil || work.Final(w.Status.Phase) {
			continue
		}
		select {
		case r.woken <- event.TypedGenericEvent[*v1alpha1.ReleaseWork]{Object: w}:
		default: // it is looked at soon all the same
		}
	}
}
