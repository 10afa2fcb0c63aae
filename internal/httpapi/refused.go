// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// missingRight is how the API server's authorizers name a right that the user lacks. Admission has words
// of its own.
var missingRight = regexp.MustCompile(`cannot (\S+) resource "([^"]+)"(?: in API group "[^"]*")?(?: in the namespace "([^"]*)")?`)

// forbidden tells a right that the caller lacks from a policy of the cluster that denies a write.
func forbidden(failed *requestError, err error) error {
	if failed.verb != "get" && failed.verb != "list" && !missingRight.MatchString(statusOf(err).Message) {
		return wire.NewProblem(wire.Forbidden, denialOf(err))
	}
	return lacking(wire.MissingRight{Verb: failed.verb, Kind: failed.kind, Namespace: failed.namespace})
}

// lacking is the problem of a caller who lacks a right.
func lacking(right wire.MissingRight) error {
	where := "in the whole cluster"
	if right.Namespace != "" {
		where = fmt.Sprintf("in namespace %s", right.Namespace)
	}
	p := wire.NewProblem(wire.Forbidden, fmt.Sprintf("you may not %s %s %s", right.Verb, right.Kind, where))
	p.Right = &right
	return p
}

// ofAny names a request to the API server, of the several that an action sends, in the words of the answer.
func ofAny(scheme *runtime.Scheme, err error) error {
	said := missingRight.FindStringSubmatch(statusOf(err).Message)
	if said == nil {
		return &requestError{err: err}
	}
	failed := &requestError{verb: said[1], kind: said[2], namespace: said[3], err: err}
	for kind := range scheme.AllKnownTypes() {
		if resource, _ := meta.UnsafeGuessKindToResource(kind); resource.Resource == failed.kind {
			failed.kind = kind.Kind
			break
		}
	}
	return failed
}

// denialOf returns the words of the admission policies that deny a write, without those about them.
func denialOf(err error) string {
	status := statusOf(err)
	var words []string
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Message != "" {
				words = append(words, cause.Message)
			}
		}
	}
	if len(words) == 0 {
		return status.Message
	}
	return strings.Join(words, "; ")
}

// refusedWrite makes a problem of an object that the API server does not take; nil for all other errors.
func refusedWrite(failed *requestError, err error) error {
	switch {
	case apierrors.IsAlreadyExists(err):
		return wire.NewProblem(wire.Refused, fmt.Sprintf("there is a %s with this name", failed.kind))
	case apierrors.IsConflict(err):
		return wire.NewProblem(wire.Refused, "another user wrote the object at the same time: try again")
	case apierrors.IsRequestEntityTooLargeError(err):
		return wire.NewProblem(wire.TooLarge, "the API server takes no object of this size")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return wire.NewProblem(wire.Invalid, statusOf(err).Message, faultsOf(failed, err)...)
	}
	return nil
}

// faultsOf names the fields that the API server refuses, in the spelling of the caller.
func faultsOf(failed *requestError, err error) (faults []wire.FieldError) {
	status := statusOf(err)
	if status.Details == nil {
		return nil
	}
	for _, cause := range status.Details.Causes {
		location := "body"
		if failed.locate != nil {
			location = failed.locate(cause.Field)
		}
		faults = append(faults, wire.FieldError{Location: location, Message: cause.Message})
	}
	return faults
}

// statusOf returns the answer of the API server; an empty one for an error that is none.
func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status()
	}
	return metav1.Status{}
}

// rootOf returns the error that a request to the API server failed with.
func rootOf(err error) error {
	if failed, found := errors.AsType[*requestError](err); found {
		return failed.err
	}
	return err
}

// invalidAt is the problem of one value of a request.
func invalidAt(location, message string) error {
	return wire.NewProblem(wire.Invalid, "", wire.FieldError{Location: location, Message: message})
}
