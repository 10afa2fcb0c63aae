// SPDX-License-Identifier: Apache-2.0

package releaserecord

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/environment"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/traffic/record"
)

// surveyKey stands for all releases that are gone.
var surveyKey = types.NamespacedName{Name: "survey"}

// Recorder writes the chains of releases with the recorder of plans.
type Recorder struct{ *exec.Recorder }

// ReadBody implements Chains. A body that is not there or has another digest is none.
func (r Recorder) ReadBody(ctx context.Context, chain, digest string) ([]byte, error) {
	body, err := evidence.ReadBody(ctx, r.Writer.Store, chain, digest)
	var mismatch *evidence.BodyError
	if errors.Is(err, evidence.ErrNotFound) || errors.As(err, &mismatch) {
		return nil, nil // verifying says so
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cursors of evidence %s: %w", chain, err)
	}
	return body, nil
}

// placeOf finds the chain of the releases of a namespace; false if the namespace is gone.
func (r *Reconciler) placeOf(ctx context.Context, namespace string) (place, bool, error) {
	live := &corev1.Namespace{}
	err := r.Live.Get(ctx, types.NamespacedName{Name: namespace}, live)
	switch {
	case apierrors.IsNotFound(err):
		return place{}, false, nil
	case err != nil:
		return place{}, false, fmt.Errorf("reading Namespace %s: %w", namespace, err)
	}
	environments, err := r.environments(ctx)
	if err != nil {
		return place{}, false, err
	}
	if own := environment.Assign(environments, map[string]labels.Set{namespace: live.Labels}).Of(namespace); own != nil {
		return placeIn(own), true, nil
	}
	rest, err := r.rest(ctx)
	return rest, err == nil, err
}

func placeIn(e *v1alpha1.Environment) place { return place{e.Name, string(e.UID), e.Name} }

// rest is the chain of releases that belong to no Environment.
func (r *Reconciler) rest(ctx context.Context) (place, error) {
	if r.own == "" {
		own := &corev1.Namespace{}
		if err := r.Live.Get(ctx, types.NamespacedName{Name: r.Namespace}, own); err != nil {
			return place{}, fmt.Errorf("reading Namespace %s: %w", r.Namespace, err)
		}
		r.own = own.UID
	}
	return place{ledger: exec.ClusterLedger, chain: string(r.own)}, nil
}

func (r *Reconciler) environments(ctx context.Context) ([]*v1alpha1.Environment, error) {
	var list v1alpha1.EnvironmentList
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing Environments: %w", err)
	}
	all := make([]*v1alpha1.Environment, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

// survey meets the chains of releases that the ledgers know. unread tells of those that cannot be read.
func (r *Reconciler) survey(ctx context.Context) (unread, err error) {
	environments, err := r.environments(ctx)
	if err != nil {
		return nil, err
	}
	rest, err := r.rest(ctx)
	if err != nil {
		return nil, err
	}
	places := map[string]place{rest.chain: rest}
	for _, e := range environments {
		places[string(e.UID)] = placeIn(e)
	}
	var ledgers v1alpha1.RemediationLedgerList
	if err := r.Live.List(ctx, &ledgers, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("listing RemediationLedgers: %w", err)
	}
	for i := range ledgers.Items {
		for _, chain := range ledgers.Items[i].Status.Chains {
			at, is := places[chain.PolicyUID]
			if !is || at.ledger != ledgers.Items[i].Name {
				continue
			}
			_, failed := r.state(ctx, at)
			unread = errors.Join(unread, failed)
		}
	}
	return unread, nil
}

// bury records the end of all releases that are gone since this process or one before it recorded of them, and
// returns whether more records are missing.
func (r *Reconciler) bury(ctx context.Context) (more bool, err error) {
	r.mu.Lock()
	keys := map[types.NamespacedName]bool{}
	for _, state := range r.known {
		for _, cursor := range state.Cursors {
			keys[types.NamespacedName{Namespace: cursor.Namespace, Name: cursor.Name}] = true
		}
	}
	r.mu.Unlock()
	var failed error
	for key := range keys {
		release, _, err := r.read(ctx, key)
		if len(r.lastOf(key)) > 0 {
			continue // this process has seen it go, and looks at it again
		}
		if err == nil {
			var rest bool
			rest, err = r.recordGone(ctx, key, place{}, release, nil)
			more = more || rest
		}
		failed = errors.Join(failed, err)
	}
	return more, failed
}

// stateOf returns what this process knows of a chain; nil if it has not met the chain.
func (r *Reconciler) stateOf(at place) *record.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[at]
}

// state returns what is known of a chain. A chain that this process has not met is read from its end.
func (r *Reconciler) state(ctx context.Context, at place) (*record.State, error) {
	state := r.stateOf(at)
	if state != nil {
		return state, nil
	}
	newest, err := r.Chains.Delivered(ctx, at.ledger, at.chain)
	if err != nil {
		return nil, fmt.Errorf("reading the end of evidence %s: %w", at.chain, err)
	}
	state, err = record.Fold(newest, func(digest string) ([]byte, error) { return r.Chains.ReadBody(ctx, at.chain, digest) })
	if err != nil {
		return nil, err
	}
	if state == nil { // the snapshot is lost
		before, err := r.Chains.ReadBefore(ctx, at.chain, newest[0].Chain.Sequence)
		if err != nil {
			return nil, fmt.Errorf("reading evidence %s from its start: %w", at.chain, err)
		}
		state = record.FoldAll(append(before, newest...))
	}
	r.mu.Lock()
	r.known[at] = state
	r.mu.Unlock()
	return state, nil
}

// maxRecords bounds the records of one release that are written in a row. All releases share one worker, and
// those of other namespaces have their turn in between.
const maxRecords = 16

// write appends the records that are missing of a release, up to maxRecords, and keeps the end of the chain. It
// returns whether more are missing. After a failure it is not known what the chain has, so it is read again.
func (r *Reconciler) write(ctx context.Context, at place, f *record.Facts) (more bool, err error) {
	state, err := r.state(ctx, at)
	if err != nil {
		return false, err
	}
	records := record.Next(state.Cursors, f) // the one worker alone changes them
	more = len(records) > maxRecords
	for i := range records[:min(len(records), maxRecords)] {
		if err := r.append(ctx, at, state, &records[i]); err != nil {
			r.mu.Lock()
			delete(r.known, at)
			r.mu.Unlock()
			return false, err
		}
	}
	if err := r.Chains.KeepHead(ctx, at.ledger, at.chain); err != nil {
		return false, fmt.Errorf("keeping the end of the records of releases: %w", err)
	}
	return more, nil
}

func (r *Reconciler) append(ctx context.Context, at place, state *record.State, one *evidence.Record) (err error) {
	if state.IsSnapshotDue() {
		if one.Bodies, err = r.snapshot(ctx, at, state); err != nil {
			return err
		}
	}
	if _, err := r.Chains.Note(ctx, at.ledger, *one); err != nil {
		return fmt.Errorf("recording a release: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	state.Apply(one)
	return nil
}

// snapshot stores the cursors beside the chain. Cursors that are too large for a body have none: the chain is
// read from further back then.
func (r *Reconciler) snapshot(ctx context.Context, at place, state *record.State) ([]evidence.Body, error) {
	body, err := state.Cursors.Encode()
	if err != nil {
		return nil, err
	}
	if len(body) > evidence.MaxBody {
		r.Log.Info("release.evidence.snapshot_too_large", "chain", at.chain, "bytes", len(body))
		return nil, nil
	}
	digest, err := r.Chains.Keep(ctx, at.chain, body)
	if err != nil {
		return nil, fmt.Errorf("storing the cursors of releases: %w", err)
	}
	return []evidence.Body{{Of: evidence.BodyCursors, Digest: digest}}, nil
}
