// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// question is asked before something that is not undone by asking again.
type question struct {
	ask string
	// otherwise is what the user hears who does not agree.
	otherwise string
	// what needs an answer, for whoever cannot give one.
	what string
}

// confirm asks, unless yes says that it need not.
func (a *app) confirm(ctx context.Context, yes bool, q question) error {
	if yes {
		return nil
	}
	if !a.interactive() {
		return fmt.Errorf("%s: %s needs a confirmation, and standard input is no terminal; use --yes", q.otherwise, q.what)
	}
	fmt.Fprintf(a.ErrOut, "%s (y/N): ", printable(q.ask))
	agreed, err := agrees(ctx, a.In)
	if err == nil && !agreed {
		return errors.New(q.otherwise)
	}
	return err
}

// agrees reads one answer; anything but yes is no.
func agrees(ctx context.Context, in io.Reader) (bool, error) {
	answer := make(chan string, 1)
	go func() { // ends with the answer or the process: a read cannot be canceled
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case said := <-answer:
		return said == "y" || said == "yes", nil
	}
}

func isInteractive(in io.Reader) func() bool {
	return func() bool { return printers.IsTerminal(in) }
}
