// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import "time"

// Restored returns the times at which the router restored its weights within [RestoreWindow], the newest one last.
func (r *Router) Restored() []time.Time { return r.State().Restored }
