// SPDX-License-Identifier: Apache-2.0

// Package remediation reads plans, policies and Environments for the commands, completes
// their names, and has the words in which several commands speak of plans.
package remediation
