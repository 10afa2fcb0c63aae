// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import "testing"

// Between a pod that stops being ready and the proxies' acknowledgment that its variation
// has no share lie a decision and a write. Nobody's request is refused meanwhile, as long
// as the pod answers.
func TestACanaryThatLosesItsLastReadyPodCostsNoRequest(t *testing.T) {
	for name, lose := range map[string]func(*clamping){
		"it is not ready any more": func(c *clamping) { c.ready(c.canary, false) },
		"it is about to end":       (*clamping).end,
	} {
		t.Run(name, func(t *testing.T) {
			c := newClamping(t)
			c.lost(lose)
			c.heard.mu.Lock()
			defer c.heard.mu.Unlock()
			if len(c.heard.failed) > 0 {
				t.Errorf("of %d requests failed %v", c.heard.answers, c.heard.failed)
			}
		})
	}
}
