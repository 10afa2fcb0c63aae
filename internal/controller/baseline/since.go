// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// definition is the CustomResourceDefinition of Baselines; the chart lets the
// assessor read this one.
const definition = "baselines.plumbline.dev"

// baselinesSince is when the kind of Baselines was made. Who deletes it deletes
// every Baseline, whatever the policies say, and nothing else remembers that a
// guard had adopted its objects before. It is read live at each import: between
// two imports the kind may have been replaced.
func (r *Reconciler) baselinesSince(ctx context.Context) (time.Time, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := r.Live.Get(ctx, types.NamespacedName{Name: definition}, crd); err != nil {
		return time.Time{}, fmt.Errorf("asking since when there are Baselines: %w", err)
	}
	return crd.CreationTimestamp.Time, nil
}
