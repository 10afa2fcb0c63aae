// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// sweep deletes the works that a release has no more use for. It runs when a work has ended, since only then
// there is one more. A work stays until the next one ends if its end is not recorded, or if it has changed since it
// was read.
func (r *Reconciler) sweep(ctx context.Context, facts *work.Facts) error {
	w, release := facts.Work, facts.Release
	if release == nil || string(release.UID) != w.Spec.ReleaseUID {
		return nil // its works go with it
	}
	var works v1alpha1.ReleaseWorkList
	if err := r.Live.List(ctx, &works, client.InNamespace(w.Namespace)); err != nil {
		return fmt.Errorf("listing the ReleaseWorks of ABRelease %s/%s: %w", w.Namespace, release.Name, err)
	}
	for _, old := range work.Removable(release, works.Items) {
		if !r.Records.HasEnd(old) {
			continue // the end of the next work tries again
		}
		asRead := client.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion}
		if err := r.Live.Delete(ctx, old, asRead); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting ReleaseWork %s/%s: %w", old.Namespace, old.Name, err)
		}
	}
	return nil
}
