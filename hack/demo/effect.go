// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/test/harness"
)

// assess shows what became of the repairs. They were measured while the bot fought and everything drifted.
func (s *story) assess(ctx context.Context) error {
	s.heading("Did the repairs help?")
	s.say("A plan says that its targets were written. An assessment says whether that helped\nand is still in effect: it watches the hash for %s, and asks for the health of the\npods then. Alerts and metrics count where their servers are named; here none is.", measuredFor)
	helped, err := s.awaitVerdicts(ctx)
	if err != nil {
		return err
	}
	for _, command := range [][]string{
		{"list"}, {"show", helped}, {"history", "deployment/web"},
	} {
		if err := s.run(ctx, s.admin, append(append([]string{"kubectl", "plumbline", "assess"}, command...), "-n", shopNamespace)...); err != nil {
			return err
		}
	}
	return nil
}

// measuredFor is what a policy without a cooldown has.
const measuredFor = "30 s"

// awaitVerdicts waits until each assessment has ended. One repair with pods helped, which is returned, and the
// bot undid one.
func (s *story) awaitVerdicts(ctx context.Context) (helped string, err error) {
	err = harness.Eventually(ctx, "one repair helped, one was undone, and none is measured any more", patience, func(ctx context.Context) (bool, string) {
		var all v1alpha1.EffectivenessAssessmentList
		if err := s.admin.ReadAll(ctx, &all, shopNamespace); err != nil {
			return false, err.Error()
		}
		measured, verdicts := 0, map[v1alpha1.EffectVerdict]int{}
		for i := range all.Items {
			a := &all.Items[i]
			if !effect.Phase(a.Status.Phase).Ended() {
				measured++
			}
			verdicts[a.Status.Verdict]++
			if a.Status.Verdict == v1alpha1.VerdictEffective && a.Status.Score != nil {
				helped = a.Name
			}
		}
		return measured == 0 && helped != "" && verdicts[v1alpha1.VerdictInvalidated] > 0, fmt.Sprintf("%d are measured, the others are %v", measured, verdicts)
	})
	return helped, err
}
