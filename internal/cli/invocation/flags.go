// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// DefaultWait is how long accept waits for the assessor, which answers within a
// second when it runs.
const DefaultWait = 10 * time.Second

// MaxReason is the bound of the API, in characters.
const MaxReason = 256

// AddSystemFlag names where Plumbline itself runs; -n is where the user works.
func AddSystemFlag(cmd *cobra.Command, namespace *string) {
	cmd.Flags().StringVar(namespace, "system-namespace", "", "Namespace in which Plumbline runs; found by its ledgers when left out.")
}

func AddReasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", fmt.Sprintf("Why, for people; at most %d characters.", MaxReason))
}

func CheckReason(cmd *cobra.Command, reason string) error {
	if n := utf8.RuneCountInString(reason); n > MaxReason {
		return UsageErrorf(cmd, "--reason has %d characters, more than %d", n, MaxReason)
	}
	return nil
}

var dryRuns = []string{"none", "client", "server"}

func AddDryRunFlag(cmd *cobra.Command, dryRun *string, usage string) {
	cmd.Flags().StringVar(dryRun, "dry-run", "none", `Must be "none", "server", or "client". `+usage)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "client"
	CompleteValues(cmd, "dry-run", dryRuns...)
}

func CheckDryRun(cmd *cobra.Command, dryRun string) error {
	if !slices.Contains(dryRuns, dryRun) {
		return UsageErrorf(cmd, `invalid dry-run value (%s). Must be "none", "server", or "client"`, dryRun)
	}
	return nil
}

func CheckWait(cmd *cobra.Command, wait time.Duration) error {
	if wait < 0 {
		return UsageErrorf(cmd, "--wait must not be negative, not %s", wait)
	}
	return nil
}
