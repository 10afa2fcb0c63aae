// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

// shelves are services that are small enough to have many: one operation touches
// a quarter of them at most, and a third at once would be a mass drift.
const shelves = 14

// shelfManifest is one of them.
const shelfManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {app.kubernetes.io/name: NAME}}
spec:
  replicas: 0
  selector: {matchLabels: {app.kubernetes.io/name: NAME}}
  template:
    metadata: {labels: {app.kubernetes.io/name: NAME}}
    spec:
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: app
        image: IMAGE
        env: [{name: SHOP_NAME, value: NAME}]
        resources: {requests: {cpu: 5m, memory: 16Mi}, limits: {memory: 64Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
---
`

// mainPolicy is about the whole shop.
const mainPolicy = "plumbline-demo"

// policyManifest is quicker than a policy of a real production would be, and lets
// three repairs happen in an hour.
const policyManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: RemediationPolicy
metadata: {name: plumbline-demo}
spec:
  environmentName: plumbline-demo
  trigger: Immediate
  minimumSeverity: Low
  action: Reconcile
  strategy: Rolling
  safety: {maxConcurrent: 1, maxPerHour: 3, cooldown: 0s}
  health: {stabilization: 1s, timeout: 2m}
  exceptions: {activeWriter: Allowed}
`

func shelf(i int) string { return fmt.Sprintf("shelf-%02d", i) }

func shelvesManifest(image string) string {
	var b strings.Builder
	for i := range shelves {
		b.WriteString(strings.NewReplacer("NAME", shelf(i), "IMAGE", image, "SHOP_NAME", "SHOP_NAME").Replace(shelfManifest))
	}
	return b.String()
}

func (s *story) observe(ctx context.Context) error {
	s.heading("A policy that only watches")
	s.say("CI deploys %d more services, and two of them are changed by hand. What would a\npolicy do about the four drifts that there are now? It says so and does nothing.", shelves)
	if err := s.runAs(ctx, s.ci, "kubectl apply -f shelves.yaml   # by CI",
		[]string{"kubectl", "apply", "-n", shopNamespace, "-f", "-"}, harness.WithStdin(shelvesManifest(s.image))); err != nil {
		return err
	}
	for i := range shelves {
		if err := s.await(ctx, shelf(i), "in sync", inSync); err != nil {
			return err
		}
	}
	if err := s.asHuman(ctx, human, "set", "image", "deployment/"+shelf(0), "app="+s.otherImage); err != nil {
		return err
	}
	if err := s.asHuman(ctx, otherHuman, "set", "env", "deployment/"+shelf(1), "SHOP_NAME=other"); err != nil {
		return err
	}
	if err := s.awaitFinding(ctx, shelf(0), "/image", human); err != nil {
		return err
	}
	if err := s.awaitFinding(ctx, shelf(1), "SHOP_NAME", otherHuman); err != nil {
		return err
	}
	if err := s.admin.Apply(ctx, policyManifest); err != nil {
		return err
	}
	if err := s.awaitPolicy(ctx, mainPolicy, "four drifts would be put back", func(p *v1alpha1.RemediationPolicyStatus) bool {
		return p.Targets.Drifted == 4 && p.Targets.Eligible == 4
	}); err != nil {
		return err
	}
	if err := s.run(ctx, s.admin, "kubectl", "get", "remediationpolicies"); err != nil {
		return err
	}
	return s.run(ctx, s.admin, "kubectl", "plumbline", "policy", "explain", mainPolicy, "deployment/"+shelf(1), "-n", shopNamespace)
}

func (s *story) remediate(ctx context.Context) (err error) {
	s.heading("The policy is activated: the worst first, three in an hour")
	s.say("Each write is tried before, bound to the very version that was looked at, and\nsigned for afterwards. The next begins when the last one is healthy.")
	desk, err := s.openConsole(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, desk.end()) }()
	events, leave, err := desk.follow(ctx, shopNamespace)
	if err != nil {
		return err
	}
	defer leave()
	if err := s.activate(ctx, desk, mainPolicy); err != nil {
		return err
	}
	plan, err := s.awaitPlan(ctx, "three targets are put back, and the fourth waits for the hourly limit", func(p *v1alpha1.RemediationPlan) bool {
		return p.Status.Counts.Succeeded == 3 && strings.Contains(p.Status.DeferralReason, "MaxPerHour")
	})
	if err != nil {
		return err
	}
	if err := inOrderOfSeverity(plan); err != nil {
		return err
	}
	if err := s.tellEvents(ctx, events, 3); err != nil {
		return err
	}
	if err := s.run(ctx, s.admin, "kubectl", "plumbline", "plan", "show", plan.Name, "-n", shopNamespace); err != nil {
		return err
	}
	if err := s.baselines(ctx); err != nil {
		return err
	}
	if err := s.refuseViewer(ctx, plan.Name); err != nil {
		return err
	}
	if err := s.photograph(ctx, desk, plan.Name); err != nil {
		return err
	}
	return s.run(ctx, s.admin, "kubectl", "plumbline", "plan", "cancel", plan.Name, "--yes", "-n", shopNamespace, "--reason", "the demo goes on")
}

func inOrderOfSeverity(plan *v1alpha1.RemediationPlan) error {
	for i := 1; i < len(plan.Spec.Plan.Targets); i++ {
		if plan.Spec.Plan.Targets[i].Severity.Score > plan.Spec.Plan.Targets[i-1].Severity.Score {
			return fmt.Errorf("plan %s: target %d is worse than the one before it", plan.Name, i)
		}
	}
	return nil
}

func (s *story) freeze(ctx context.Context) error {
	s.heading("So much drifts at once that one cause must be assumed")
	s.say("A third of everything within minutes is no handful of mistakes: it may be an\nupgrade that adds a default. Nothing is put back before a person has looked.")
	if err := s.run(ctx, s.admin, "kubectl", "plumbline", "policy", "activate", mainPolicy, "--yes"); err != nil {
		return err
	}
	for i := 4; i < 10; i++ {
		if _, err := s.admin.Kubectl(ctx, "set", "env", "deployment/"+shelf(i), "FEATURE=on", "-n", shopNamespace, "--as", otherHuman); err != nil {
			return err
		}
	}
	if err := harness.Eventually(ctx, "the guard sees a mass drift", patience, func(ctx context.Context) (bool, string) {
		out, err := s.admin.Kubectl(ctx, "get", "specguard/shop", "-n", shopNamespace, "-o", `jsonpath={.status.conditions[?(@.type=="Degraded")].reason}`)
		return err == nil && out == v1alpha1.ReasonMassDrift, out
	}); err != nil {
		return err
	}
	if err := s.awaitPolicy(ctx, mainPolicy, "nothing is eligible any more", func(p *v1alpha1.RemediationPolicyStatus) bool {
		return p.Targets.Drifted > 4 && p.Targets.Eligible == 0
	}); err != nil {
		return err
	}
	return s.run(ctx, s.admin, "kubectl", "get", "remediationpolicies")
}

func (s *story) prove(ctx context.Context) error {
	s.heading("The evidence of what was done")
	s.say("Every step left a record, signed and chained; how far the chain goes is kept in\netcd. The API server's audit log is a witness that we do not write.")
	args := []string{"kubectl", "plumbline", "evidence", "verify"}
	if s.admin.Kubeconfig == "" { // somebody's cluster: its audit log is out of reach
		return s.run(ctx, s.admin, args...)
	}
	log := filepath.Join(filepath.Dir(s.admin.Kubeconfig), "..", "log", "audit.jsonl")
	return s.runAs(ctx, s.admin, shown(args)+" --audit-log audit.jsonl", append(args, "--audit-log", log))
}

func (s *story) awaitPolicy(ctx context.Context, name, what string, holds func(*v1alpha1.RemediationPolicyStatus) bool) error {
	return harness.Eventually(ctx, "policy "+name+": "+what, patience, func(ctx context.Context) (bool, string) {
		var p v1alpha1.RemediationPolicy
		if err := s.admin.Read(ctx, &p, "", name); err != nil {
			return false, err.Error()
		}
		return holds(&p.Status), fmt.Sprintf("%+v", p.Status)
	})
}

// awaitPlan waits until the one plan that there is is so.
func (s *story) awaitPlan(ctx context.Context, what string, holds func(*v1alpha1.RemediationPlan) bool) (*v1alpha1.RemediationPlan, error) {
	var plans v1alpha1.RemediationPlanList
	began := time.Now()
	err := harness.Eventually(ctx, "plan: "+what, 2*patience, func(ctx context.Context) (bool, string) {
		if err := s.admin.ReadAll(ctx, &plans, shopNamespace); err != nil {
			return false, err.Error()
		}
		if len(plans.Items) != 1 {
			return false, fmt.Sprintf("there are %d plans", len(plans.Items))
		}
		return holds(&plans.Items[0]), fmt.Sprintf("%+v", plans.Items[0].Status)
	})
	if err != nil {
		return nil, err
	}
	s.say("=> after %.1f s: %s", time.Since(began).Seconds(), what)
	return &plans.Items[0], nil
}
