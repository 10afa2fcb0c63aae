// SPDX-License-Identifier: Apache-2.0

// Package assess is "kubectl plumbline assess": it shows whether remediations helped and are still
// in effect, and lets a policy repair a drift again that earlier repairs did not end.
package assess
