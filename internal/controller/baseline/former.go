// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// maxFormerBytes bounds the former bodies that are held at once, as JSON. A body
// that does not fit vouches for no undo.
const maxFormerBytes = 2 * kube.MaxBodySize

// loadFormer loads the authorized bodies before the present one, newest first: those of
// this decision, those that are kept, and the one last seen ready. A revision that is
// gone or damaged vouches for nothing. Each other failure is an error, for the revision
// may vouch.
func (r *Reconciler) loadFormer(ctx context.Context, s *subject, state specguard.State, pending []specguard.AuthorizeRevision) (specguard.Former, error) {
	former := specguard.Former{Loaded: true}
	left := maxFormerBytes
	for _, name := range listFormer(s, state) {
		body, err := r.findFormer(ctx, s, name, pending)
		switch {
		case err != nil:
			return specguard.Former{}, err
		case body == nil:
		case len(body) > left:
			return former, nil
		default:
			former.Bodies = append(former.Bodies, body)
			left -= len(body)
		}
	}
	return former, nil
}

// listFormer names the revisions of a Baseline that may be kept, but for the body that
// is in force.
func listFormer(s *subject, state specguard.State) []string {
	var names []string
	newest := state.Authorized
	if newest == nil {
		return nil
	}
	first := newest.Number - 1
	if state.Oversized != nil { // a body that is not kept is in force
		first = newest.Number
	}
	for number := first; number > max(0, newest.Number-maxRevisions); number-- {
		names = append(names, specguard.RevisionName(state.Name, number))
	}
	if s.baseline == nil || s.baseline.Status.LastReady == nil {
		return names
	}
	if ready := s.baseline.Status.LastReady.Revision; ready != newest.Revision && !slices.Contains(names, ready) {
		names = append(names, ready)
	}
	return names
}

// findFormer finds the body of a revision; nil when there is none that can be read.
func (r *Reconciler) findFormer(ctx context.Context, s *subject, name string, pending []specguard.AuthorizeRevision) ([]byte, error) {
	for i := range pending {
		if specguard.RevisionName(s.name(), pending[i].Number) == name {
			return pending[i].Body, nil
		}
	}
	if s.baseline == nil {
		return nil, nil
	}
	return r.readKept(ctx, s.baseline, name)
}

// readKept reads the body of a revision of a Baseline; nil when the revision is gone, is of an
// earlier Baseline of the name, or is damaged: trying again does not help.
func (r *Reconciler) readKept(ctx context.Context, b *v1alpha1.Baseline, name string) ([]byte, error) {
	_, body, err := r.readKeptRevision(ctx, b, name)
	return body, err
}

// readKeptRevision reads a revision as readKept does, with its body.
func (r *Reconciler) readKeptRevision(ctx context.Context, b *v1alpha1.Baseline, name string) (*v1alpha1.BaselineRevisionSpec, []byte, error) {
	var revision v1alpha1.BaselineRevision
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: b.Namespace, Name: name}, &revision)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading kept revision %s: %w", name, err)
	case !owned(&revision, b):
		return nil, nil, nil
	}
	body, err := kube.Decompress(revision.Spec.Body)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // a damaged body vouches for nothing
	}
	return &revision.Spec, body, nil
}
