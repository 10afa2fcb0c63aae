// SPDX-License-Identifier: Apache-2.0

// Package plan is "kubectl plumbline plan": it shows and previews remediation plans, and asks
// the executor to begin, pause, resume or end them.
package plan
