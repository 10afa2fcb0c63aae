// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"

	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// reasons of the codes that S3 and its kin answer with.
var reasons = map[string]evidence.StoreReason{
	"AccessDenied":                   evidence.StoreDenied,
	"Forbidden":                      evidence.StoreDenied,
	"InvalidAccessKeyId":             evidence.StoreDenied,
	"SignatureDoesNotMatch":          evidence.StoreDenied,
	"ExpiredToken":                   evidence.StoreDenied,
	"InsufficientCapacity":           evidence.StoreFull,
	"QuotaExceeded":                  evidence.StoreFull,
	"XMinioStorageFull":              evidence.StoreFull,
	"XMinioAdminBucketQuotaExceeded": evidence.StoreFull,
	"NoSuchBucket":                   evidence.StoreUnreachable,
	"SlowDown":                       evidence.StoreUnreachable,
	"ServiceUnavailable":             evidence.StoreUnreachable,
	"InternalError":                  evidence.StoreUnreachable,
	"RequestTimeout":                 evidence.StoreUnreachable,
	"NotImplemented":                 evidence.StoreUnsupported,
	"MethodNotAllowed":               evidence.StoreReadOnly,
	// Two conditional requests for one name at the same time; to be tried again.
	"ConditionalRequestConflict": evidence.StoreUnreachable,
}

func failure(op, name string, err error) error {
	return &evidence.StoreError{Op: op, Name: name, Reason: reason(err), Err: err}
}

// reason by the server's code; an error without one did not come from it.
func reason(err error) evidence.StoreReason {
	if gcerrors.Code(err) == gcerrors.PermissionDenied {
		return evidence.StoreDenied
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return evidence.StoreUnreachable
	}
	if r, ok := reasons[api.ErrorCode()]; ok {
		return r
	}
	if api.ErrorFault() == smithy.FaultServer {
		return evidence.StoreUnreachable
	}
	return evidence.StoreFailed
}

// noBucket tells an absent bucket from an absent object: the first is a store
// that is not there, the second an answer.
func noBucket(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "NoSuchBucket"
}
