// SPDX-License-Identifier: Apache-2.0

// Package sources asks a real Alertmanager and a real Prometheus about the effect of a write, as an
// assessment does: alerts that fire, that are silenced or inhibited, that resolve, and that vanish because
// their sender died; and metrics before a drift, during it, and after the write.
package sources
