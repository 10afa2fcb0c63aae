// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"

	"github.com/plumbline-dev/plumbline/internal/stamp"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// stamps says what the stamp of an observed version proves. If it may name who
// wrote that version, the policy is asked for after the version was seen: the
// one that is in force then, and was before, has been in force all the time.
// newest: no later version of the object was seen.
func (r *Reconciler) stamps(ctx context.Context, s *subject, in specguard.Input, newest bool, look observed) (specguard.Stamps, error) {
	if r.Stamps == nil || look.object == nil {
		return specguard.Stamps{}, nil
	}
	now := r.Stamps.Last()
	last := in.State.Observed
	written := string(look.object.FullHash) != last.FullHash || string(look.object.UID) != last.UID
	applied := specguard.AppliedStamp(look.object.Annotations)
	stamped := written && look.object.Writer() != "" || applied != "" && applied != last.Applied
	if stamped && !specguard.Imports(in.State, in.Observation, in.Rules) {
		var err error
		if now, err = r.Stamps.Now(ctx); err != nil {
			return specguard.Stamps{}, err
		}
	}
	version := stamp.Version{ResourceVersion: look.object.ResourceVersion}
	if newest {
		version.Progress = s.view.Progress
	}
	return r.Stamps.Stamps(now, s.key.GroupVersionKind, version), nil
}

// settledStamps names the policy under which the kind has been seen whole: a new
// one is a reason to look at an object that did not change.
func (r *Reconciler) settledStamps(s *subject) string {
	if r.Stamps == nil {
		return ""
	}
	return r.Stamps.Settled(s.key.GroupVersionKind, s.view.Progress)
}
