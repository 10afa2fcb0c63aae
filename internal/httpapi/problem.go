// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// huma has no settings for these three but variables of its package. No other package of Plumbline uses huma.
func init() {
	huma.NewError = validationProblem
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
}

// validationProblem makes a problem of the faults that huma finds in a request, in the order of their locations.
func validationProblem(status int, message string, errs ...error) huma.StatusError {
	fields := []wire.FieldError(nil)
	for _, err := range errs {
		var detailer huma.ErrorDetailer
		switch {
		case err == nil:
		case errors.As(err, &detailer):
			detail := detailer.ErrorDetail()
			fields = append(fields, wire.FieldError{Location: detail.Location, Message: detail.Message})
		default: // a value that the schema lets pass, and its type does not
			fields = append(fields, wire.FieldError{Location: "body", Message: err.Error()})
		}
	}
	slices.SortStableFunc(fields, func(x, y wire.FieldError) int { return cmp.Compare(x.Location, y.Location) })
	return wire.NewProblem(typeOf(status, fields), message, fields...)
}

// typeOf tells faults of a body, which was looked at, from those of the address.
func typeOf(status int, fields []wire.FieldError) wire.ProblemType {
	isOfQuery := func(f wire.FieldError) bool {
		return strings.HasPrefix(f.Location, "query.") || strings.HasPrefix(f.Location, "header.")
	}
	switch status {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		if len(fields) > 0 && !slices.ContainsFunc(fields, func(f wire.FieldError) bool { return !isOfQuery(f) }) {
			return wire.BadRequest
		}
		return wire.Invalid
	case http.StatusRequestTimeout:
		return wire.BadRequest
	case http.StatusRequestEntityTooLarge:
		return wire.TooLarge
	case http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		return wire.Unsupported
	}
	return wire.Internal
}

// problemOf makes a problem of an error. Words of the API server about an object are the caller's to read;
// an error that is no answer of the API server is logged and not told.
func problemOf(log *slog.Logger, err error) error {
	if _, answered := errors.AsType[huma.StatusError](err); answered {
		return err
	}
	if problem := processProblem(log, err); problem != nil {
		return problem
	}
	failed := &requestError{}
	errors.As(err, &failed)
	switch {
	case actions.IsRefusal(err):
		return wire.NewProblem(wire.Refused, rootOf(err).Error())
	case actions.IsGroupsRefusal(err):
		return invalidAt("body.groups", rootOf(err).Error())
	case apierrors.IsUnauthorized(err):
		return wire.NewProblem(wire.Unauthenticated, "the API server does not know the caller")
	case apierrors.IsForbidden(err):
		return forbidden(failed, err)
	case kindIsMissing(err):
		return wire.NewProblem(wire.KindNotInstalled, fmt.Sprintf("the cluster has no kind %s", failed.kind))
	case apierrors.IsNotFound(err):
		return notFound(failed.kind)
	case apierrors.IsTooManyRequests(err):
		seconds, _ := apierrors.SuggestsClientDelay(err)
		return huma.ErrorWithHeaders(wire.NewProblem(wire.TooManyRequests, "the API server asks to wait"),
			http.Header{"Retry-After": {strconv.Itoa(max(1, seconds))}})
	case isUnavailable(err), apierrors.IsResourceExpired(err):
		log.Warn("the API server does not answer", "error", err)
		return wire.NewProblem(wire.Unavailable, "the API server does not answer: try again")
	}
	if problem := refusedWrite(failed, err); problem != nil {
		return problem
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
