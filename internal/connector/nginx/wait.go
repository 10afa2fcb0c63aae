// SPDX-License-Identifier: Apache-2.0

package nginx

import "time"

// EndpointPause is the time between two reloads that change nothing but endpoints.
const EndpointPause = time.Second

// Wait is how long a reload has to wait; 0 is not at all. Only new endpoints wait: each reload starts
// workers, and a rollout of pods changes endpoints many times a second.
func Wait(inForce, next Files, reloaded, now time.Time) time.Duration {
	if inForce.Rules != next.Rules {
		return 0
	}
	return max(0, EndpointPause-max(0, now.Sub(reloaded)))
}
