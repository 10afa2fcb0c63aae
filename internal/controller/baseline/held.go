// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

func isAutoscaler(s *subject) bool {
	return s.key.Group == "autoscaling" && s.key.Kind == string(v1alpha1.WorkTargetAutoscaler)
}

// readHeld reads what a run may have left in an autoscaler: the minimum that the run holds, or what was authorized
// before the run. It is nil if neither is known. All of it is read live, since it decides on what is authorized.
func (r *Reconciler) readHeld(ctx context.Context, s *subject, state *specguard.State, look observed, uid types.UID) (*specguard.Released, error) {
	if s.baseline == nil || state.Authorized == nil {
		return nil, nil
	}
	mark, err := r.readMark(ctx, s, &work.Mark{UID: uid, Autoscaler: string(look.object.UID)})
	if err != nil {
		return nil, err
	}
	last, by := mark.Last(), state.Authorized.Release
	if holds := last != nil && !work.PutsBack(&last.Spec); holds {
		return r.readHold(ctx, s, mark.Release, last)
	}
	if by == nil {
		return nil, nil // no run has changed what is authorized
	}
	before, content, err := r.readBefore(ctx, s, by.Name)
	if err != nil || before == nil {
		return nil, err
	}
	return &specguard.Released{
		Requester: specguard.Identity{User: before.By}, Release: *by, Returns: true, Bodies: func([]byte) [][]byte { return [][]byte{content} },
	}, nil
}

// readHold reads what a work that holds the minimum may have left.
func (r *Reconciler) readHold(ctx context.Context, s *subject, release *v1alpha1.ABRelease, last *v1alpha1.ReleaseWork) (*specguard.Released, error) {
	in := release.Spec.Rollout
	if in == nil || in.RequestedBy == "" {
		return nil, nil
	}
	before, content, err := r.readBefore(ctx, s, release.Name)
	if err != nil || before == nil {
		return nil, err
	}
	if next := s.baseline.Spec.Authorized.Number + 1; next-before.Number >= maxRevisions {
		return nil, nil // the state of before would not be kept, to which the run has to return
	}
	return &specguard.Released{
		Requester: specguard.Identity{User: in.RequestedBy, Groups: in.RequestedByGroups},
		Release:   v1alpha1.AuthorizedRelease{Name: release.Name, Run: last.Spec.Run, WorkName: last.Name},
		Bodies: func(authorized []byte) [][]byte {
			left, err := work.LeftMinimum(last, content, authorized)
			if err != nil || left == nil {
				return nil // a body that cannot be read leaves nothing
			}
			return [][]byte{left}
		},
	}, nil
}

// readBefore reads the newest authorized state that no run of a release of this name has left. It returns nil if a
// newer state, which may be another writer's, is not kept.
func (r *Reconciler) readBefore(ctx context.Context, s *subject, release string) (*v1alpha1.BaselineRevisionSpec, []byte, error) {
	newest := s.baseline.Spec.Authorized
	if newest == nil {
		return nil, nil, nil
	}
	for number := newest.Number; number > max(0, newest.Number-maxRevisions); number-- {
		revision, content, err := r.readKeptRevision(ctx, s.baseline, specguard.RevisionName(s.baseline.Name, number))
		if err != nil || revision == nil {
			return nil, nil, err
		}
		if of := cmp.Or(revision.Release, &v1alpha1.AuthorizedRelease{}); of.Name != release {
			return revision, content, nil
		}
	}
	return nil, nil, nil
}
