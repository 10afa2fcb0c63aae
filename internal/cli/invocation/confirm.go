// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// Question is asked before something that is not undone by asking again.
type Question struct {
	Ask string
	// Otherwise is the answer to a user that does not agree.
	Otherwise string
	// What names the act that needs an answer, for a user that cannot give one.
	What string
}

// Confirm asks, unless yes says that it need not.
func (inv *Invocation) Confirm(ctx context.Context, yes bool, q Question) error {
	if yes {
		return nil
	}
	if !inv.IsInteractive() {
		return fmt.Errorf("%s: %s needs a confirmation, and standard input is no terminal; use --yes", q.Otherwise, q.What)
	}
	fmt.Fprintf(inv.ErrOut, "%s (y/N): ", Printable(q.Ask))
	agreed, err := agrees(ctx, inv.In)
	if err == nil && !agreed {
		return errors.New(q.Otherwise)
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
