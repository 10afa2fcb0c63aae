// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"syscall"
)

// Fault says in one word why an answer does not count.
type Fault string

// The faults.
const (
	// Unreachable is a server without an answer: a broken connection, a certificate that is not trusted,
	// an answer that is late, or a file of the client that cannot be read.
	Unreachable Fault = "Unreachable"
	// Refused is a server that does not accept the token, or wants one.
	Refused Fault = "Refused"
	// Failed is a server that answers with an error, or with a redirect.
	Failed Fault = "Failed"
	// TooLarge is an answer beyond a bound.
	TooLarge Fault = "TooLarge"
	// Malformed is an answer that is not of the API.
	Malformed Fault = "Malformed"
)

// Faults are all faults.
func Faults() []Fault { return []Fault{Unreachable, Refused, Failed, TooLarge, Malformed} }

// Error says why an answer does not count.
type Error struct {
	Fault Fault
	// Message is for people: it names no address of the installation.
	Message string
	// Cause is for the log; nil where the message says all.
	Cause error
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

func (e *Error) Unwrap() error { return e.Cause }

// FaultOf returns the fault of an error, and its message for people. An error of another kind is
// Unreachable, and has no message of its own: its text can name addresses.
func FaultOf(err error) (Fault, string) {
	if e, is := errors.AsType[*Error](err); is {
		return e.Fault, e.Message
	}
	return Unreachable, "no answer"
}

// describe says why a connection gave no answer, without addresses.
func describe(err error) string {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[*net.DNSError](err)
	switch {
	case untrusted:
		return "the certificate is not trusted"
	case unknown:
		return "the name is not known"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the server does not speak TLS"
	case errors.Is(err, context.DeadlineExceeded):
		return "the answer is late"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused"
	}
	return "the connection broke"
}
