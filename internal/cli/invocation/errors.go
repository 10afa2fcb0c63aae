// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Exit codes. Commands that answer a question by exit code keep 1 for the
// answer and use 2 for failures, as kubectl diff does.
const (
	ExitOK        = 0
	ExitFailure   = 1
	ExitDifferent = 1
	ExitTrouble   = 2
	// ExitOpenEnd: evidence verify found no fault, and does not know the end of a chain.
	ExitOpenEnd = 3
	// ExitInterrupted is the code of a shell for a command that a user has interrupted.
	ExitInterrupted = 130
)

// TroubleAnnotation marks commands whose exit code 1 is an answer.
const TroubleAnnotation = "plumbline.dev/exit-code-on-error"

// ExitError carries an exit code. A nil err prints no text: the command has printed
// all of it already.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// usageError is a mistake in the command line, answered with a hint.
type usageError struct {
	command string
	message string
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%s\nSee '%s -h' for help and examples", e.message, e.command)
}

// UsageErrorf returns an error about the command line of cmd, whose message ends with the hint
// at its help.
func UsageErrorf(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: displayPath(cmd), message: fmt.Sprintf(format, args...)}
}

// Report prints err as kubectl would and returns the exit code.
func Report(cmd *cobra.Command, err error, stderr io.Writer) int {
	if err == nil {
		return ExitOK
	}
	code := ExitFailure
	if cmd != nil && cmd.Annotations[TroubleAnnotation] != "" {
		code = ExitTrouble
	}
	if carried, ok := errors.AsType[*ExitError](err); ok {
		if code = carried.Code; carried.Err == nil {
			return code
		}
	}
	fmt.Fprintln(stderr, printableText(Message(err)))
	return code
}

// Message words err as kubectl words it, so that scripts which know kubectl's
// errors know ours.
func Message(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // the outermost alone: one line for each part
		lines := make([]string, 0, len(joined.Unwrap()))
		for _, e := range joined.Unwrap() {
			lines = append(lines, Message(e))
		}
		return strings.Join(lines, "\n")
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return serverMessage(err, status)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return connectionMessage(failed)
	}
	if missing, ok := errors.AsType[*meta.NoKindMatchError](err); ok && missing.GroupKind.Group == v1alpha1.GroupVersion.Group {
		resource, _ := meta.UnsafeGuessKindToResource(missing.GroupKind.WithVersion(""))
		return fmt.Sprintf("error: the server doesn't have the resource type %q: is Plumbline installed in this cluster? \"%s doctor\" tells more", resource.Resource, DisplayName)
	}
	if usage, ok := errors.AsType[*usageError](err); ok {
		return prefixed(usage.Error()) // of several lines
	}
	return prefixed(Printable(err.Error())) // it may have texts of other users
}

func serverMessage(err error, status *apierrors.StatusError) string {
	if status.ErrStatus.Reason == "" {
		return prefixed(err.Error())
	}
	text := status.ErrStatus.Message
	if op, ok := strings.CutSuffix(err.Error(), status.Error()); ok {
		text = Printable(op) + text // the operation that the server refused
	}
	return fmt.Sprintf("Error from server (%s): %s", status.ErrStatus.Reason, text)
}

// connectionMessage gives the two sentences kubectl has for a server that
// cannot be reached.
func connectionMessage(failed *url.Error) string {
	if _, ok := errors.AsType[*net.OpError](failed); ok && strings.Contains(failed.Err.Error(), "connection refused") {
		host := failed.URL
		if u, err := url.Parse(failed.URL); err == nil {
			host = u.Host
		}
		return fmt.Sprintf("The connection to the server %s was refused - did you specify the right host or port?", host)
	}
	return fmt.Sprintf("Unable to connect to the server: %v", failed.Err)
}

func prefixed(text string) string {
	if strings.HasPrefix(text, "error: ") {
		return text
	}
	return "error: " + text
}

// FirstError is the first error that is one.
func FirstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
