// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness"
)

const (
	// botWrites is how often the bot writes at most: a demo must not leave one
	// running that nothing stops.
	botWrites = 10
	// botLooks is how often it looks.
	botLooks = 300 * time.Millisecond
	// botVariable is what it fights for.
	botVariable, botValue = "LOG_LEVEL", "debug"
	botPath               = "/spec/template/spec/containers/[name=app]/env/[name=" + botVariable + "]"
)

// fightPolicy is about one service, and may do more in an hour than the bot does.
const fightPolicy = "plumbline-demo-web"

const fightPolicyManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: RemediationPolicy
metadata: {name: plumbline-demo-web}
spec:
  environmentName: plumbline-demo
  selector: {matchLabels: {app.kubernetes.io/name: web}}
  trigger: Immediate
  minimumSeverity: Low
  action: Reconcile
  safety: {cooldown: 0s}
  health: {stabilization: 0s, timeout: 1m}
  exceptions: {activeWriter: Allowed}
`

func (s *story) fight(ctx context.Context) error {
	s.heading("A bot that undoes every repair is not fought for ever")
	s.say("A service account that may edit turns a variable on again as soon as anybody has\nremoved it. A policy of its own looks after web, without the limit of before.")
	if err := s.run(ctx, s.admin, "kubectl", "plumbline", "policy", "deactivate", mainPolicy); err != nil {
		return err
	}
	if err := s.admin.Apply(ctx, fightPolicyManifest); err != nil {
		return err
	}
	if err := s.run(ctx, s.admin, "kubectl", "plumbline", "policy", "activate", fightPolicy, "--yes"); err != nil {
		return err
	}
	began := time.Now()
	stop := s.startBot(ctx)
	fought := s.awaitTruce(ctx)
	wrote, err := stop()
	if err := errors.Join(fought, err); err != nil {
		return err
	}
	s.say("=> after %.1f s and %d writes of the bot: contended, and the policy lets go", time.Since(began).Seconds(), wrote)
	get := []string{"kubectl", "get", "baseline", baselineOf("web"), "-n", shopNamespace, "-o"}
	if err := s.runAs(ctx, s.admin, shown(get)+" jsonpath={.status.reversals…}   # those of the variable",
		append(get, `jsonpath={range .status.reversals[?(@.places[0].path=="`+botPath+`")]}{.observedTime} `+botVariable+` by {.places[0].by}{"\n"}{end}`)); err != nil {
		return err
	}
	return s.run(ctx, s.admin, "kubectl", "plumbline", "policy", "explain", fightPolicy, "deployment/web", "-n", shopNamespace)
}

// awaitTruce waits until the policy has let go: the fight is seen and is what holds
// the policy back, what it had begun has ended, and the bot has its way.
func (s *story) awaitTruce(ctx context.Context) error {
	if err := s.await(ctx, "web", "contended, and as the bot wants it", func(b *v1alpha1.Baseline) bool {
		return b.Status.State == v1alpha1.StateDrifted && b.Status.Contention != nil && b.Status.PlanName == ""
	}); err != nil {
		return err
	}
	if err := s.awaitPolicy(ctx, fightPolicy, "the fight holds it back", func(p *v1alpha1.RemediationPolicyStatus) bool {
		return p.Targets.Drifted == 1 && p.Targets.Eligible == 0 && strings.Contains(p.WaitingFor, string(planner.ReasonContended))
	}); err != nil {
		return err
	}
	return harness.Eventually(ctx, "its plans have ended", patience, func(ctx context.Context) (bool, string) {
		var plans v1alpha1.RemediationPlanList
		if err := s.admin.ReadAll(ctx, &plans, shopNamespace); err != nil {
			return false, err.Error()
		}
		for i := range plans.Items {
			if p := &plans.Items[i]; p.Spec.Plan.Policy.Name == fightPolicy && !protocol.Final(p.Status.Phase) {
				return false, fmt.Sprintf("plan %s is %s", p.Name, p.Status.Phase)
			}
		}
		return true, ""
	})
}

// startBot has the bot set its variable whenever it is not there, until it is
// stopped; then it tells how often it wrote.
func (s *story) startBot(ctx context.Context) (stop func() (int, error)) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	wrote := 0
	go func() {
		done <- s.botLoop(ctx, &wrote)
	}()
	return func() (int, error) {
		cancel()
		err := <-done
		return wrote, err
	}
}

func (s *story) botLoop(ctx context.Context, wrote *int) error {
	tick := time.NewTicker(botLooks)
	defer tick.Stop()
	for *wrote < botWrites {
		found, err := s.bot.Kubectl(ctx, "get", "deployment/web", "-n", shopNamespace,
			"-o", `jsonpath={.spec.template.spec.containers[0].env[?(@.name=="`+botVariable+`")].value}`)
		if err == nil && found != botValue {
			_, err = s.bot.Kubectl(ctx, "set", "env", "deployment/web", "-c", "app", botVariable+"="+botValue, "-n", shopNamespace)
			*wrote++
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return fmt.Errorf("the bot wrote %d times, and was not left alone", botWrites)
}
