// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"os"

	"github.com/coder/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The codes with which a stream ends beside those of RFC 6455.
const (
	// closeUnauthenticated says that the API server does not know the caller any more.
	closeUnauthenticated websocket.StatusCode = 4401
	// closeForbidden says that the caller may watch no kind any more.
	closeForbidden websocket.StatusCode = 4403
)

// The reasons of ends, as the metric has them.
const (
	endServer = "server"
	endToken  = "token"
	endRights = "rights"
	endCaller = "caller"
	endSlow   = "slow"
	endFailed = "failed"
)

// sinkError is that of a connection: the caller is gone, or does not read.
type sinkError struct{ error }

func (e *sinkError) Unwrap() error { return e.error }

// streamEnd is why a stream ends. Without a code, the connection takes no more.
type streamEnd struct {
	reason, status, message string
	code                    websocket.StatusCode
}

// endOf tells why a stream ends.
func endOf(err error) streamEnd {
	_, ofSink := errors.AsType[*sinkError](err)
	switch {
	case errors.Is(err, errEnded):
		return streamEnd{endServer, "going_away", "the server ends", websocket.StatusGoingAway}
	case ofSink && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)):
		return streamEnd{reason: endSlow}
	case ofSink, errors.Is(err, context.Canceled):
		return streamEnd{reason: endCaller}
	case apierrors.IsUnauthorized(err):
		return streamEnd{endToken, "unauthenticated", "the API server does not know the caller", closeUnauthenticated}
	case apierrors.IsForbidden(err), kindIsMissing(err):
		return streamEnd{endRights, "forbidden", "you may not watch any of the kinds", closeForbidden}
	}
	return streamEnd{reason: endFailed}
}
