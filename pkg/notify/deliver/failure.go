// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"syscall"
	"time"
)

// Cause is why an attempt failed, in words that hold no secret.
type Cause string

// The causes.
const (
	CauseSecret          Cause = "the secret cannot be read"
	CauseSecretMalformed Cause = "the secret is not of the form it should have"
	CauseAddressRefused  Cause = "the address is not public and not allowed"
	CauseName            Cause = "the name was not resolved"
	CauseConnection      Cause = "no connection"
	CauseBroken          Cause = "the connection broke"
	CauseTimeout         Cause = "no answer in time"
	CauseCertificate     Cause = "the certificate is not trusted"
	CauseNoTLS           Cause = "the server offers no TLS"
	CauseNoAuth          Cause = "the server offers no login that is supported"
	CauseRefused         Cause = "the receiver refused it"
	CauseUnavailable     Cause = "the receiver is not able to take it now"
	CauseRedirect        Cause = "the receiver redirects, which is not followed"
	CauseRecipients      Cause = "the server takes no recipient"
	CauseMessage         Cause = "the event cannot be rendered"
	CauseExpired         Cause = "its time was over before the first attempt"
)

// Failure is an attempt that failed, as the log tells it. It is no error and wraps
// none, on purpose: what the network and receivers say may hold the URL or the
// password.
type Failure struct {
	Cause Cause
	// Step is what was being done, such as "posting" or "logging in".
	Step string
	// Status is the HTTP status or the SMTP reply code, 0 without one.
	Status int
	// Retry says that the cause may pass.
	Retry bool
	// After is how long the receiver asked to be left alone.
	After time.Duration
}

// String is what the log says.
func (f *Failure) String() string {
	if f.Status != 0 {
		return fmt.Sprintf("%s: %s (%d)", f.Step, f.Cause, f.Status)
	}
	return fmt.Sprintf("%s: %s", f.Step, f.Cause)
}

// errAddressRefused is how the dialer says that Egress does not permit an address.
var errAddressRefused = errors.New("address refused")

// networkFailure reduces an error of a connection to its cause.
func networkFailure(step string, err error) *Failure {
	cause := causeOf(err)
	return &Failure{Step: step, Cause: cause, Retry: cause != CauseAddressRefused}
}

func causeOf(err error) Cause {
	var (
		name        *net.DNSError
		certificate *tls.CertificateVerificationError
		timeout     net.Error
		operation   *net.OpError
	)
	switch {
	case errors.Is(err, errAddressRefused):
		return CauseAddressRefused
	case errors.As(err, &name):
		return CauseName
	case errors.As(err, &certificate):
		return CauseCertificate
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return CauseTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, errTooMuch):
		return CauseBroken
	case errors.As(err, &operation) && operation.Op == "dial":
		return CauseConnection
	default:
		return CauseBroken
	}
}

// mailFailure reads the reply code of RFC 5321 4.2.1: 4yz may pass, 5yz will not.
// Without a code it is the network that failed.
func mailFailure(step string, err error) *Failure {
	var reply *textproto.Error
	if !errors.As(err, &reply) {
		return networkFailure(step, err)
	}
	if reply.Code >= 400 && reply.Code < 500 {
		return &Failure{Step: step, Cause: CauseUnavailable, Status: reply.Code, Retry: true}
	}
	return &Failure{Step: step, Cause: CauseRefused, Status: reply.Code}
}
