// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// armOf reads an arm of a script. That of a group has the pods that have restarted as well, which are optional.
func (s *story) armOf(t *testing.T, text string) rollout.Arm {
	t.Helper()
	var a rollout.Arm
	if text == "gone" {
		return a
	}
	parts := strings.Split(text, "/")
	a.Revision = rollout.Revision{Hash: "pl1:sha256:" + parts[0], Image: "shop:" + parts[0]}
	a.Images = []string{rollout.ImageOf("proxy", "proxy:1"), rollout.ImageOf("app", a.Revision.Image)}
	numbers := []any{&a.Ready, &a.Targets, &a.Updated}
	if len(parts) > 4 {
		numbers = append(numbers, &a.Restarted)
	}
	if _, err := fmt.Sscan(strings.Join(parts[1:], " "), numbers...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if s.groups != nil {
		a.Replicas = a.Targets
	}
	return a
}

// scale a group as the executor does. Its new pods are not ready yet.
func (s *story) scale(a *rollout.WorkAnswer) {
	arm, is := s.arms[a.Variation]
	if s.groups == nil || !is || a.Phase != rollout.WorkSucceeded {
		return
	}
	arm.Replicas, arm.Targets, arm.Updated = a.Replicas, a.Replicas, a.Replicas
	arm.Ready = min(arm.Ready, a.Replicas)
	s.arms[a.Variation] = arm
}
