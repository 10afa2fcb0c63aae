// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"maps"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// copy has the canary be a clone.
func (s *story) copy(t *testing.T, d *datadriven.TestData) {
	if s.clone == nil {
		s.clone = &rollout.Clone{Variation: "canary", Deployment: "web-canary", Baseline: "web", Hash: "b", Change: "image shop:b of container shop"}
	}
	s.release.Spec.Variations[1].Clone = &v1alpha1.VariationClone{}
	if first := v1alpha1.PromotionPolicy(d.CmdArgs[0].Key); first == v1alpha1.PromotionUpdateBaseline || first == v1alpha1.PromotionAwaitBaseline {
		s.promotion = first
	}
	d.MaybeScanArgs(t, "min", &s.clone.MinReplicas)
	d.MaybeScanArgs(t, "change", &s.clone.Hash)
	s.clone.Changed, s.clone.Altered = d.HasArg("changed"), false
}

// edit has the spec ask for another change of the clone, while the clone has the one before.
func (s *story) edit(t *testing.T, d *datadriven.TestData) {
	if s.kept == nil {
		s.kept = &rollout.Kept{Clone: *s.clone, Arm: s.arms["canary"]}
	}
	next := *s.clone
	d.MaybeScanArgs(t, "change", &next.Hash)
	next.Change, next.Changed, next.Altered = "image shop:"+next.Hash+" of container shop", false, false
	s.clone = &next
	s.arms = maps.Clone(s.arms)
	s.arms["canary"] = rollout.Arm{Revision: rollout.Revision{Hash: "pl1:sha256:" + next.Hash, Image: "shop:" + next.Hash}, Targets: s.kept.Arm.Targets}
}
