// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

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

// employ has the groups of a release that divides requests as well.
func (s *story) employ(t *testing.T, d *datadriven.TestData) {
	for _, arg := range d.CmdArgs {
		if arg.Vals[0] == "unread" {
			delete(s.groups.Arms, arg.Key)
			continue
		}
		s.groups.Arms[arg.Key] = s.armOf(t, arg.Vals[0])
	}
}

// joinGroups does with the groups what the controller does.
func (s *story) joinGroups(f *rollout.Facts) {
	switch {
	case s.groups == nil:
		return
	case !s.groups.Routed:
		f.Health = rollout.GroupHealthOf(f.Before, s.arms, s.now)
		return
	}
	f.Arms = maps.Clone(s.arms)
	f.JoinGroups()
	f.Health = f.JoinHealth(f.Health)
}

// scale a group as the executor does. Its new pods are not ready yet.
func (s *story) scale(a *rollout.WorkAnswer) {
	arms := s.arms
	if s.groups != nil && s.groups.Routed {
		arms = s.groups.Arms
	}
	arm, is := arms[a.Variation]
	if s.groups == nil || !is || a.Phase != rollout.WorkSucceeded {
		return
	}
	arm.Replicas, arm.Targets, arm.Updated = a.Replicas, a.Replicas, a.Replicas
	arm.Ready = min(arm.Ready, a.Replicas)
	arms[a.Variation] = arm
}
