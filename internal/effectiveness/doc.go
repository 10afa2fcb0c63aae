// SPDX-License-Identifier: Apache-2.0

// Package effectiveness asks the sources of the installation about the effect of one write.
//
//	[Question] ──▶ [Sources] ──▶ Alertmanager, Prometheus
//	                   │
//	answers of pkg/effect, or why there is no answer
//
// The package decides nothing: pkg/effect judges the answers. A source that the installation does not name
// is nil here, and its component is not configured. A source that does not answer is counted by its fault.
package effectiveness
