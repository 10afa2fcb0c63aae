// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsOlder reports whether resource version a was written before b, both of one resource.
// They are comparable as integers (KEP-5504); a version that is none is not called older.
func IsOlder(a, b string) bool {
	va, errA := strconv.ParseUint(a, 10, 64)
	vb, errB := strconv.ParseUint(b, 10, 64)
	return errA == nil && errB == nil && va < vb
}

// IsUnserved reports whether an error says that the API server does not serve a kind. The
// server answers 404 as for an absent object, and a retry at once is of no use.
func IsUnserved(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return meta.IsNoMatchError(err)
	}
	details := status.Status().Details
	return details != nil && (details.Name == "" || details.Kind == "customresourcedefinitions" ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse))
}
