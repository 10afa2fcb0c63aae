// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// ResultOf says what an error of a write means. Only what the API server itself
// refuses with a code below 500 is certainly not stored; whatever else happened,
// the target will tell.
func ResultOf(err error) protocol.WriteResult {
	if err == nil {
		return protocol.Stored
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return protocol.Lost
	}
	switch code := status.Status().Code; {
	case code == http.StatusConflict:
		// A stale resourceVersion, another uid, or a name that is taken: in all three
		// nothing was stored, and reading the target tells which.
		return protocol.Conflicted
	case code == http.StatusNotFound:
		return goneOrLost(err)
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		return protocol.Forbidden
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return protocol.Lost
	case code >= http.StatusBadRequest && code < http.StatusInternalServerError:
		return protocol.Refused
	}
	return protocol.Lost
}

// goneOrLost tells an object that is not there from a path that is not served,
// which says nothing about the object.
func goneOrLost(err error) protocol.WriteResult {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonNotFound && status.Status().Details != nil && status.Status().Details.Name != "" {
		return protocol.Gone
	}
	return protocol.Lost
}
