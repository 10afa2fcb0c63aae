// SPDX-License-Identifier: Apache-2.0

// Package guarddefaults keeps the status of GuardDefaults, and answers which are in force
// now. The package of the same name beside internal/controller has the rule.
package guarddefaults
