// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"time"

	"github.com/spf13/cobra"
)

// defaultTimeout is how long a command waits for an answer, which comes within a second
// when the component runs.
const defaultTimeout = 10 * time.Second

// Wait holds the flags --wait and --timeout, as kubectl has them. The zero value waits for no answer.
type Wait struct {
	enabled bool
	timeout time.Duration
}

// AddFlags adds --wait and --timeout, which [Wait.Check] checks. The event is a clause with its actor, such as
// "the assessor has checked".
func (w *Wait) AddFlags(cmd *cobra.Command, event string) {
	cmd.Flags().BoolVar(&w.enabled, "wait", true, "If true, wait until "+event+".")
	cmd.Flags().DurationVar(&w.timeout, "timeout", defaultTimeout, "How long to wait, for all together, before the command gives up. A request stands after that time.")
}

// Check refuses a timeout that leaves no time.
func (w *Wait) Check(cmd *cobra.Command) error {
	if w.timeout <= 0 {
		return UsageErrorf(cmd, "--timeout must be greater than 0s, not %s; use --wait=false to return at once", w.timeout)
	}
	return nil
}

// Timeout returns how long to wait; 0 means that the command does not wait.
func (w *Wait) Timeout() time.Duration {
	if !w.enabled {
		return 0
	}
	return w.timeout
}
