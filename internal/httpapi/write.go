// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

const ifMatch = "If-Match"

// Path names an object to write.
type Path struct {
	ID string `path:"id" maxLength:"317" doc:"The uid, the name of an object of the whole cluster, or NAMESPACE.NAME."`
}

// Waiting has how long a caller waits until a request is carried out.
type Waiting struct {
	Prefer string `header:"Prefer" maxLength:"256" doc:"wait=N has the answer wait up to N seconds, at most 20, until the request is carried out." example:"wait=10"`
	wait   time.Duration
}

// maxWait bounds a wait. Together with patience it is below the time that a connection has.
const maxWait = 20 * time.Second

// Resolve reads the header.
func (w *Waiting) Resolve(huma.Context) []error {
	seconds, found := waitOf(w.Prefer)
	if found && (seconds < 0 || seconds > int(maxWait/time.Second)) {
		return []error{&huma.ErrorDetail{Location: "header.Prefer", Message: "wait is 0 to " + strconv.Itoa(int(maxWait/time.Second)) + " seconds", Value: w.Prefer}}
	}
	w.wait = time.Duration(seconds) * time.Second
	return nil
}

// waitOf returns the seconds of the preference "wait" of RFC 7240, section 4.3; -1 for those that are no
// number. The first of several counts, and other preferences are left alone.
func waitOf(prefer string) (seconds int, found bool) {
	for preference := range strings.SplitSeq(prefer, ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		seconds, err := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
		if err != nil || seconds < 0 {
			return -1, true
		}
		return seconds, true
	}
	return 0, false
}

// written is the answer to a write about one object.
type written[W any] struct {
	Status   int    `json:"-"`
	ETag     string `header:"ETag" doc:"The strong ETag of the representation."`
	Location string `header:"Location" doc:"The path of an object that was created."`
	Body     W
}

// tagged makes the answer, with the ETag that a GET of the object has.
func tagged[W any](status int, body W) (*written[W], error) {
	tag, err := tagOf(body)
	return &written[W]{Status: status, ETag: tag, Body: body}, err
}

// outcome is what became of a request within the wait of its caller.
type outcome[T client.Object] struct {
	progress actions.Progress
	// refusal is why the request was not carried out.
	refusal string
	last    T
}

// settle waits as long as the caller wants until a request is carried out. The request stands whatever
// becomes of the wait, so an error of it is no error of the request.
func settle[T client.Object](ctx context.Context, s *server, w *Waiting, stored T, await func(context.Context) (outcome[T], error)) (int, T, error) {
	if w.wait == 0 {
		return http.StatusAccepted, stored, nil
	}
	bounded, cancel := context.WithTimeout(ctx, w.wait)
	defer cancel()
	result, err := await(bounded)
	if err != nil {
		if bounded.Err() == nil {
			s.log.Warn("a request was sent, and its end is not known", "error", err)
		}
		return http.StatusAccepted, stored, nil
	}
	switch result.progress {
	case actions.Taken:
		return http.StatusOK, result.last, nil
	case actions.Refused:
		return 0, stored, wire.NewProblem(wire.Refused, result.refusal)
	case actions.Pending:
		return http.StatusAccepted, result.last, nil
	}
	return http.StatusAccepted, stored, nil
}

// isListed tells whether a list of ETags has one by the strong comparison of RFC 9110, section 8.8.3.2.
func isListed(list, tag string) bool {
	for candidate := range strings.SplitSeq(list, ",") {
		if candidate = strings.TrimSpace(candidate); candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}
