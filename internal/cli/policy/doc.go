// SPDX-License-Identifier: Apache-2.0

// Package policy is "kubectl plumbline policy": it shows remediation policies, sets their
// mode, and explains why a policy does or does not put a drift back.
package policy
