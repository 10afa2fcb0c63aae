// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// Only a refusal that the API server itself sends proves that a write is not stored.
func TestWhatAnErrorSaysAboutAWrite(t *testing.T) {
	code := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: "Odd"}}
	}
	notServed := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}}
	noName := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{}}}
	proxy := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: "Odd", Details: &metav1.StatusDetails{Name: "web"}}}
	tests := map[string]struct {
		err  error
		want protocol.WriteResult
	}{
		"no error":                                 {nil, protocol.Stored},
		"a connection that broke":                  {errNetwork, protocol.Lost},
		"a stale version":                          {apierrors.NewConflict(deploymentsGR, "web", errNetwork), protocol.Conflicted},
		"a name that is taken":                     {apierrors.NewAlreadyExists(deploymentsGR, "web"), protocol.Conflicted},
		"an object that is not there":              {apierrors.NewNotFound(deploymentsGR, "web"), protocol.Gone},
		"a path that is not served":                {notServed, protocol.Lost},
		"a path that is not served, with no name":  {noName, protocol.Lost},
		"a proxy that knows no such path":          {proxy, protocol.Lost},
		"a right that is missing":                  {apierrors.NewForbidden(deploymentsGR, "web", errNetwork), protocol.Forbidden},
		"a token that is over":                     {apierrors.NewUnauthorized("expired"), protocol.Forbidden},
		"a webhook that denies":                    {code(http.StatusTeapot), protocol.Refused},
		"a body that is no object":                 {apierrors.NewBadRequest("no"), protocol.Refused},
		"an object that is not valid":              {code(http.StatusUnprocessableEntity), protocol.Refused},
		"the last code of a client's mistake":      {code(499), protocol.Refused},
		"an API server that is busy":               {apierrors.NewTooManyRequests("later", 1), protocol.Lost},
		"a request that took too long":             {code(http.StatusRequestTimeout), protocol.Lost},
		"an API server that failed":                {code(http.StatusInternalServerError), protocol.Lost},
		"an API server that timed out":             {apierrors.NewTimeoutError("slow", 1), protocol.Lost},
		"a redirect":                               {code(399), protocol.Lost},
		"a refusal that was wrapped by the client": {fmt.Errorf("putting: %w", apierrors.NewNotFound(deploymentsGR, "web")), protocol.Gone},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ResultOf(test.err); got != test.want {
				t.Errorf("%v means %s, want %s", test.err, got, test.want)
			}
		})
	}
}
