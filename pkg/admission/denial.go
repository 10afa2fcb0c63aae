// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Denial refuses a write.
type Denial struct {
	// Code of HTTP that the writer gets.
	Code int32
	// Message is for the writer.
	Message string
}

// retryAfterSeconds is told with what may be different in a moment. The clients of
// Kubernetes then try again by themselves, ten times.
const retryAfterSeconds = 1

// status is what the API server passes on to the writer.
func (d *Denial) status() *metav1.Status {
	s := &metav1.Status{Status: metav1.StatusFailure, Code: d.Code, Message: d.Message, Reason: metav1.StatusReasonInternalError}
	switch d.Code {
	case http.StatusServiceUnavailable:
		s.Reason = metav1.StatusReasonServiceUnavailable
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
	case http.StatusRequestEntityTooLarge:
		s.Reason = metav1.StatusReasonRequestEntityTooLarge
	default:
	}
	return s
}

// denied is the answer of a handler that lets nothing pass unjudged.
func denied(unassessed *Answer) Answer {
	return Answer{
		Verdict: VerdictDenied,
		Reason:  unassessed.Reason,
		Err:     unassessed.Err,
		Audit:   map[string]string{"verdict": string(VerdictDenied), "reason": string(unassessed.Reason)},
		Denial:  denialOf(unassessed.Reason),
	}
}

func denialOf(reason Reason) *Denial {
	switch reason {
	case ReasonShed:
		return &Denial{http.StatusServiceUnavailable, "plumbline has too much to do at the moment; try again"}
	case ReasonNoSnapshot, ReasonReadFailed:
		return &Denial{http.StatusServiceUnavailable, "plumbline could not read the request; try again"}
	case ReasonNamespace:
		return &Denial{http.StatusServiceUnavailable, "plumbline could not read the labels of the namespace; try again"}
	case ReasonTooLarge:
		return &Denial{http.StatusRequestEntityTooLarge, "plumbline reads no request of this size"}
	default:
		return &Denial{http.StatusInternalServerError, "plumbline could not judge the request (" + string(reason) + "); its log says why"}
	}
}
