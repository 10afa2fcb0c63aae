// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// MaxReason is the bound of the API for a reason, in characters.
const MaxReason = 256

// AddSystemFlag adds --system-namespace, which names where Plumbline itself runs; -n is where the user works.
func AddSystemFlag(cmd *cobra.Command, namespace *string) {
	cmd.Flags().StringVar(namespace, "system-namespace", "", "Namespace in which Plumbline runs; found by its ledgers or Deployments when left out.")
}

// AddReasonFlag adds --reason, which [CheckReason] checks.
func AddReasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", fmt.Sprintf("Why, for people; at most %d characters.", MaxReason))
}

// CheckReason refuses a reason that is longer than [MaxReason].
func CheckReason(cmd *cobra.Command, reason string) error {
	if n := utf8.RuneCountInString(reason); n > MaxReason {
		return UsageErrorf(cmd, "--reason has %d characters, more than %d", n, MaxReason)
	}
	return nil
}

var dryRuns = []string{"none", "client", "server"}

// AddDryRunFlag adds --dry-run as kubectl has it, which [CheckDryRun] checks.
func AddDryRunFlag(cmd *cobra.Command, dryRun *string, usage string) {
	cmd.Flags().StringVar(dryRun, "dry-run", "none", `Must be "none", "server", or "client". `+usage)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "client"
	CompleteValues(cmd, "dry-run", dryRuns...)
}

// CheckDryRun refuses a value that --dry-run does not take.
func CheckDryRun(cmd *cobra.Command, dryRun string) error {
	if !slices.Contains(dryRuns, dryRun) {
		return UsageErrorf(cmd, `invalid dry-run value (%s). Must be "none", "server", or "client"`, dryRun)
	}
	return nil
}
