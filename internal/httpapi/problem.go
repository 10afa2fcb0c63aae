// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// huma has no settings for these two but variables of its package. No other package of Plumbline uses huma.
func init() {
	huma.NewError = validationProblem
	huma.DefaultArrayNullable = false
}

// validationProblem makes a problem of the faults that huma finds in a request.
func validationProblem(status int, message string, errs ...error) huma.StatusError {
	t, fields := wire.Internal, []wire.FieldError(nil)
	queries := 0
	for _, err := range errs {
		var detailer huma.ErrorDetailer
		switch {
		case err == nil:
		case errors.As(err, &detailer):
			detail := detailer.ErrorDetail()
			fields = append(fields, wire.FieldError{Location: detail.Location, Message: detail.Message})
			if strings.HasPrefix(detail.Location, "query.") {
				queries++
			}
		default:
			fields = append(fields, wire.FieldError{Message: err.Error()})
		}
	}
	switch {
	case status == http.StatusUnprocessableEntity && len(fields) > 0 && queries == len(fields), status == http.StatusBadRequest:
		t = wire.BadRequest
	case status == http.StatusUnprocessableEntity:
		t = wire.Invalid
	case status == http.StatusRequestEntityTooLarge:
		t = wire.TooLarge
	case status == http.StatusUnsupportedMediaType, status == http.StatusNotAcceptable:
		t = wire.Unsupported
	}
	return wire.NewProblem(t, message, fields...)
}

// problemOf makes a problem of an error of a read. Words of the API server about an object are the
// caller's to read; an error that is no answer of the API server is logged and not told.
func problemOf(log *slog.Logger, err error) error {
	if _, answered := errors.AsType[huma.StatusError](err); answered {
		return err
	}
	read := &readError{}
	errors.As(err, &read)
	switch {
	case apierrors.IsUnauthorized(err):
		return wire.NewProblem(wire.Unauthenticated, "the API server does not know the caller")
	case apierrors.IsForbidden(err):
		return forbidden(read)
	case kindIsMissing(err):
		return wire.NewProblem(wire.KindNotInstalled, fmt.Sprintf("the cluster has no kind %s", read.kind))
	case apierrors.IsNotFound(err):
		return notFound(read.kind)
	case apierrors.IsTooManyRequests(err):
		seconds, _ := apierrors.SuggestsClientDelay(err)
		return huma.ErrorWithHeaders(wire.NewProblem(wire.TooManyRequests, "the API server asks to wait"),
			http.Header{"Retry-After": {strconv.Itoa(max(1, seconds))}})
	case isUnavailable(err), apierrors.IsResourceExpired(err):
		log.Warn("the API server does not answer", "error", err)
		return wire.NewProblem(wire.Unavailable, "the API server does not answer: try again")
	}
	log.Error("a request failed", "error", err)
	return wire.NewProblem(wire.Internal, "the log of Plumbline says more")
}

// ProblemOf returns the problem of an error of a read, for callers that answer in another form.
func ProblemOf(log *slog.Logger, err error) *wire.Problem {
	if problem, is := errors.AsType[*wire.Problem](problemOf(log, err)); is {
		return problem
	}
	return wire.NewProblem(wire.Internal, "the log of Plumbline says more")
}

func notFound(kind string) error {
	return wire.NewProblem(wire.NotFound, fmt.Sprintf("no %s has this id or name, or you may not read it", kind))
}

// isNotFound tells whether an error says that there is no such object.
func isNotFound(err error) bool {
	var problem *wire.Problem
	return apierrors.IsNotFound(err) && !kindIsMissing(err) || errors.As(err, &problem) && problem.Status == http.StatusNotFound
}

func forbidden(read *readError) error {
	where := "in the whole cluster"
	if read.namespace != "" {
		where = fmt.Sprintf("in namespace %s", read.namespace)
	}
	p := wire.NewProblem(wire.Forbidden, fmt.Sprintf("you may not %s %s %s", read.verb, read.kind, where))
	p.Right = &wire.MissingRight{Verb: read.verb, Kind: read.kind, Namespace: read.namespace}
	return p
}

// kindIsMissing tells an answer about a kind from one about an object: the API server names the object
// that is not found, and no object in its answer to a path that it does not serve.
func kindIsMissing(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}

func isUnavailable(err error) bool {
	var network net.Error
	var address *url.Error
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.As(err, &network) || errors.As(err, &address)
}
