// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// A bot that undoes every repair is not fought for ever: after a few changes to
// and fro the object counts as contended, and is left to people.
func TestAFightWithABotEndsAsContended(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	w.bot("web")
	w.policy(func(s *v1alpha1.RemediationPolicySpec) {
		s.Safety.MaxPerHour, s.Safety.MaxPerDay = 100, 100
		s.Health.Stabilization.Duration = 0
		s.Exceptions.ActiveWriter = v1alpha1.Allowed
	})
	records := newEvidence(t)
	startExecutor(t, records)
	w.Until("web", "it is contended", func(b *v1alpha1.Baseline) error {
		if b.Status.Contention == nil {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	var plans []*v1alpha1.RemediationPlan
	w.Eventually("all plans have ended, and no other is made", func() error {
		plans = nil
		for _, p := range w.plans() {
			if !protocol.Final(p.Status.Phase) {
				return fmt.Errorf("plan %s is %s", p.Name, remediation.Describe(&p))
			}
			plans = append(plans, &p)
		}
		return nil
	})
	if effects := len(w.Writes().Writes); effects > 3 {
		t.Errorf("it was written %d times before it was left alone", effects)
	}
	w.proven(records, plans...)
}

// bot puts its own image back whenever somebody has changed it.
func (w *world) bot(name string) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-done })
	bot := w.As("bot")
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			d := w.Named(name)
			if bot.Get(ctx, client.ObjectKeyFromObject(d), d) == nil && imageOf(d) == guarded.Image {
				_ = bot.Patch(ctx, d, guarded.ImagePatch("registry.example/bot:1")) // tried again at the next tick
			}
		}
	}()
}
