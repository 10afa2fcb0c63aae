// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// lastAppliedAnnotation is where kubectl apply keeps what it applied. No object keeps that
// in memory: it is as large as the object, and decides only about drift.
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// loadApplied reads the configuration that kubectl apply kept on an object. The stamp moves
// with the configuration, so an equal stamp tells that the configuration is that of the
// observed version. Under any other stamp there is none, and the version of that stamp
// is judged by itself.
func (r *Reconciler) loadApplied(ctx context.Context, s *subject, o specguard.Observation) (specguard.AppliedConfig, error) {
	loaded := specguard.AppliedConfig{Loaded: true}
	present, ok := o.(specguard.Present)
	if !ok {
		return loaded, nil
	}
	var live metav1.PartialObjectMetadata
	live.SetGroupVersionKind(s.key.GroupVersionKind)
	err := r.Live.Get(ctx, s.key.NamespacedName(), &live)
	switch {
	case apierrors.IsNotFound(err):
		return loaded, nil
	case err != nil:
		return specguard.AppliedConfig{}, fmt.Errorf("reading the applied configuration of %s: %w", s.key, err)
	case string(live.UID) == present.UID && specguard.AppliedStamp(live.Annotations) == present.Applied.Stamp:
		loaded.Config = []byte(live.Annotations[lastAppliedAnnotation])
	}
	return loaded, nil
}
