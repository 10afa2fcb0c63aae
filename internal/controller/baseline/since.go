// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// unserved recognizes that the API server does not know a kind of ours any
// more. It answers 404 as for an absent object, and trying again at once is of
// no use.
func unserved(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return meta.IsNoMatchError(err)
	}
	details := status.Status().Details
	return details != nil && (details.Name == "" || details.Kind == "customresourcedefinitions" ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse))
}
