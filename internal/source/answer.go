// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Answer is what a server has answered.
type Answer struct {
	name   string
	Status int
	// Type is the header Content-Type.
	Type string
	// Time is when the server answered, by its own clock; zero if it does not say so.
	Time time.Time
	// Body has at most one byte more than [MaxAnswer].
	Body []byte
}

// NewAnswer returns an answer of the named program, for decoders that are asked without a server.
func NewAnswer(name string, status int, contentType string, body []byte) Answer {
	return Answer{name: name, Status: status, Type: contentType, Body: body}
}

// Decode reads the JSON of an answer with the status 200. Each error is an [Error].
func (a *Answer) Decode(into any) error {
	if err := a.Check(); err != nil {
		return err
	}
	if a.Status != http.StatusOK {
		return a.Errorf(Failed, "%s answers %d", a.name, a.Status)
	}
	return a.Unmarshal(into)
}

// Check refuses an answer that is no JSON of the API, whatever the status says about the question.
func (a *Answer) Check() error {
	switch {
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
		return a.Errorf(Refused, "%s refuses the request: it answers %d", a.name, a.Status)
	case a.Status >= 300 && a.Status < 400:
		return a.Errorf(Failed, "%s answers %d, and no redirect is followed", a.name, a.Status)
	case len(a.Body) > MaxAnswer:
		return a.Errorf(TooLarge, "the answer of %s has more than %d bytes", a.name, MaxAnswer)
	case a.Status == http.StatusOK && strings.HasPrefix(a.Type, "text/html"):
		return a.Errorf(Malformed, "%s answers with a page, as a login does", a.name)
	}
	return nil
}

// Unmarshal reads the JSON of an answer that [Answer.Check] accepts.
func (a *Answer) Unmarshal(into any) error {
	if err := json.Unmarshal(a.Body, into); err != nil {
		return &Error{Malformed, fmt.Sprintf("the answer of %s is not the JSON of its API", a.name), err}
	}
	return nil
}

// Errorf returns an error whose message is for people.
func (a *Answer) Errorf(fault Fault, format string, args ...any) error {
	return &Error{Fault: fault, Message: fmt.Sprintf(format, args...)}
}
