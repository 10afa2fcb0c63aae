// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

func failure(op, name string, err error) error {
	return &evidence.StoreError{Op: op, Name: name, Reason: reason(err), Err: err}
}

// reasons of the errors that say what to do.
var reasons = map[syscall.Errno]evidence.StoreReason{
	syscall.ENOSPC:     evidence.StoreFull,
	syscall.EDQUOT:     evidence.StoreFull,
	syscall.EFBIG:      evidence.StoreFull,
	syscall.EROFS:      evidence.StoreReadOnly,
	syscall.EACCES:     evidence.StoreDenied,
	syscall.EOPNOTSUPP: evidence.StoreUnsupported,
	syscall.ENOSYS:     evidence.StoreUnsupported,
	syscall.EMLINK:     evidence.StoreUnsupported,
	syscall.ESTALE:     evidence.StoreUnreachable,
	syscall.ETIMEDOUT:  evidence.StoreUnreachable,
	syscall.EHOSTDOWN:  evidence.StoreUnreachable,
	syscall.ENOTCONN:   evidence.StoreUnreachable,
	syscall.EIO:        evidence.StoreUnreachable,
}

func reason(err error) evidence.StoreReason {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno) && errno == syscall.EPERM:
		if _, ok := errors.AsType[*os.LinkError](err); ok { // link(2) says EPERM where there are no hard links
			return evidence.StoreUnsupported
		}
		return evidence.StoreDenied
	case reasons[errno] != "":
		return reasons[errno]
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return evidence.StoreUnreachable
	default:
		return evidence.StoreFailed
	}
}
