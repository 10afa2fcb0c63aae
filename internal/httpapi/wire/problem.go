// SPDX-License-Identifier: Apache-2.0

package wire

import "net/http"

// ProblemType is the stable name of a sort of problem. The URI of RFC 9457 ends in it.
type ProblemType string

// The types of problems.
const (
	Unauthenticated      ProblemType = "unauthenticated"
	Forbidden            ProblemType = "forbidden"
	TokenAudience        ProblemType = "token-audience"
	NotFound             ProblemType = "not-found"
	KindNotInstalled     ProblemType = "kind-not-installed"
	Refused              ProblemType = "refused"
	PreconditionFailed   ProblemType = "precondition-failed"
	TooLarge             ProblemType = "too-large"
	Unsupported          ProblemType = "unsupported"
	Misdirected          ProblemType = "misdirected"
	Invalid              ProblemType = "invalid"
	PreconditionRequired ProblemType = "precondition-required"
	TooManyRequests      ProblemType = "too-many-requests"
	Unavailable          ProblemType = "unavailable"
	// BadRequest is for queries and headers that the operation does not take, and CrossOrigin for requests of a
	// page elsewhere.
	BadRequest  ProblemType = "bad-request"
	CrossOrigin ProblemType = "cross-origin"
	// Internal is a defect of Plumbline.
	Internal ProblemType = "internal"
)

// ProblemBase is before the type in the URI of a problem.
const ProblemBase = "https://plumbline.dev/problems/"

// problems has the status and the title of each type.
var problems = map[ProblemType]struct {
	status int
	title  string
}{
	Unauthenticated:      {http.StatusUnauthorized, "The caller is not known."},
	Forbidden:            {http.StatusForbidden, "You may not do this."},
	TokenAudience:        {http.StatusForbidden, "The token can read, and cannot write."},
	NotFound:             {http.StatusNotFound, "There is no such object."},
	KindNotInstalled:     {http.StatusNotFound, "The cluster lacks the kind."},
	Refused:              {http.StatusConflict, "The object is in a state that does not allow this."},
	PreconditionFailed:   {http.StatusPreconditionFailed, "The object has changed."},
	TooLarge:             {http.StatusRequestEntityTooLarge, "The body is too large."},
	Unsupported:          {http.StatusUnsupportedMediaType, "The body is no JSON."},
	Misdirected:          {http.StatusMisdirectedRequest, "The host is not served."},
	Invalid:              {http.StatusUnprocessableEntity, "The request has a value that is not valid."},
	PreconditionRequired: {http.StatusPreconditionRequired, "Name the version that you have seen, by If-Match."},
	TooManyRequests:      {http.StatusTooManyRequests, "There are too many requests."},
	Unavailable:          {http.StatusServiceUnavailable, "The API server, or a process of Plumbline, does not answer."},
	BadRequest:           {http.StatusBadRequest, "The request has a query or a header that is not valid."},
	CrossOrigin:          {http.StatusForbidden, "The request comes from a page of another origin."},
	Internal:             {http.StatusInternalServerError, "Plumbline has a defect."},
}

// Problem is an error as RFC 9457 has it.
type Problem struct { //nolint:errname // RFC 9457 calls it a problem
	Type   string        `json:"type" format:"uri" doc:"The URI of the type. It never changes."`
	Title  string        `json:"title"`
	Status int           `json:"status"`
	Detail string        `json:"detail,omitempty"`
	Errors []FieldError  `json:"errors,omitempty"`
	Right  *MissingRight `json:"right,omitempty"`
}

// FieldError names one value that is not valid.
type FieldError struct {
	Location string `json:"location" doc:"Such as body.trigger or query.limit."`
	Message  string `json:"message"`
}

// MissingRight is the right that the caller lacks.
type MissingRight struct {
	Verb      string `json:"verb"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty" doc:"Empty for the whole cluster."`
}

// NewProblem makes a problem of a type.
func NewProblem(t ProblemType, detail string, errors ...FieldError) *Problem {
	known := problems[t]
	return &Problem{Type: ProblemBase + string(t), Title: known.title, Status: known.status, Detail: detail, Errors: errors}
}

// ProblemTypes returns all types with their statuses.
func ProblemTypes() map[ProblemType]int {
	types := map[ProblemType]int{}
	for t, known := range problems {
		types[t] = known.status
	}
	return types
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// GetStatus returns the status code of the answer, as huma asks for it.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of RFC 9457 in place of that of JSON.
func (p *Problem) ContentType(string) string { return "application/problem+json" }
