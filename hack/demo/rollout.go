// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

// rolloutPatch is what a team adds to the release of the split, so that each new version proves itself. The
// stages are short: proxies tell their counts every ten seconds.
const rolloutPatch = `{"spec":{"trafficSplit":{"percentages":{"stable":100,"canary":0}},"rollout":{"strategy":{"healthCheckInterval":"10s","stages":[
{"trafficPercentage":10,"duration":"10s","healthThreshold":97},
{"trafficPercentage":50,"duration":"10s","healthThreshold":97,"requireApproval":"Enabled"},
{"trafficPercentage":100,"duration":"0s"}]}}}}`

// rollOut has a good version go by itself to all requests, with one approval, and a bad one go back.
func (s *story) rollOut(ctx context.Context) error {
	s.heading("A new version proves itself, and a bad one is rolled back")
	s.say("The release gets stages: 10 %%, 50 %% after an approval, 100 %%. The version in\npay-canary is the first run. Proxies count what it answers, and a judge decides.")
	if err := s.runAs(ctx, s.admin, "kubectl patch abrelease pay --patch-file stages.yaml   # 10 %, 50 % with an approval, 100 %",
		[]string{"kubectl", "patch", "abrelease", "pay", "-n", splitNamespace, "--type=merge", "-p", rolloutPatch}); err != nil {
		return err
	}
	for _, step := range [][]string{
		{"watch", "pay", "--run", "1", "--until", "Waiting=Approval", "--timeout", "2m"},
		{"get", "pay"},
		{"approve", "pay"},
		{"watch", "pay", "--run", "1", "--until", "Completed", "--timeout", "2m"},
	} {
		if err := s.run(ctx, s.admin, append(append([]string{"kubectl", "plumbline", "release"}, step...), "-n", splitNamespace)...); err != nil {
			return err
		}
	}
	if err := s.nothingLost(ctx); err != nil {
		return err
	}
	return s.rollBack(ctx)
}

// rollBack deploys a version that fails 5 % of its orders to the variation that has no requests.
func (s *story) rollBack(ctx context.Context) error {
	s.say("\npay-stable has no requests now: the next version goes there. It fails 5 %% of the\norders, and its health check does not notice.")
	if err := s.run(ctx, s.admin, "kubectl", "set", "env", "deployment/pay-stable", "SHOP_VERSION=bad", "SHOP_FAULTS=errors=5", "-n", splitNamespace); err != nil {
		return err
	}
	if err := s.run(ctx, s.admin, "kubectl", "plumbline", "release", "watch", "pay", "--run", "2", "--until", "RolledBack", "--timeout", "3m", "-n", splitNamespace); err != nil {
		return err
	}
	if err := s.awaitRollback(ctx); err != nil {
		return err
	}
	if err := s.run(ctx, s.admin, "kubectl", "plumbline", "release", "why", "pay", "-n", splitNamespace); err != nil {
		return err
	}
	return s.lostOnlyWhatTheBadVersionAnswered(ctx)
}

// awaitRollback waits until proxies have it, and says how long that took.
func (s *story) awaitRollback(ctx context.Context) error {
	var r v1alpha1.ABRelease
	if err := harness.Eventually(ctx, "every proxy sends all orders back", patience, func(ctx context.Context) (bool, string) {
		if err := s.admin.Read(ctx, &r, splitNamespace, "pay"); err != nil {
			return false, err.Error()
		}
		c, in := r.Status.Acknowledged, r.Status.Rollout
		if in == nil || in.Run == nil || in.Run.State != "RolledBack" || c == nil || r.Status.Effective == nil {
			return false, fmt.Sprintf("%+v", r.Status)
		}
		return c.Knowledge == v1alpha1.AcknowledgedProven && c.Sequence == r.Status.Effective.Sequence, fmt.Sprintf("%+v", *c)
	}); err != nil {
		return err
	}
	run := r.Status.Rollout.Run
	if stage := &run.Stages[0]; stage.StartTime != nil && run.CompletionTime != nil {
		s.say("=> run %d: rolled back %s after its first stage began: %s", run.Number, run.CompletionTime.Sub(stage.StartTime.Time).Round(time.Second), run.Message)
	}
	return nil
}

// lostOnlyWhatTheBadVersionAnswered says that no order failed but by the answer of the bad version.
func (s *story) lostOnlyWhatTheBadVersionAnswered(ctx context.Context) error {
	for _, buyer := range buyers {
		seen, err := s.orders(ctx, buyer.mode)
		if err != nil {
			return err
		}
		if seen.Failed > seen.Spoiled || seen.Answered["bad"] == 0 {
			return fmt.Errorf("buyer-%s lost %d of %d orders, and the bad version failed %d and answered %d: %q", buyer.mode, seen.Failed, seen.Started, seen.Spoiled, seen.Answered["bad"], seen.Failures)
		}
		s.say("=> buyer-%s: %d orders in all; the bad version answered %d and failed %d; no other order failed", buyer.mode, seen.Started, seen.Answered["bad"], seen.Spoiled)
	}
	return nil
}
