// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

// longRollouts are told in the long run alone.
var longRollouts = map[string]func(*testing.T){
	"the next change of a clone waits until its run has ended":             queuedChange,
	"another version is refused while all of Plumbline is dead":            rejectedVersion,
	"workers go over in groups":                                            workersGoOver,
	"workers that crash go back":                                           workersGoBack,
	"orders and workers go over together":                                  ordersAndWorkers,
	"a target is repaired while its standby answers, and no order is lost": repairedBehindStandby,
	"a workload in quarantine gets no order, until it is as authorized":    quarantinedWorkload,
}

const queuedClone = `{name: canary, clone: {env: [{name: SHOP_VERSION, value: canary}], podLabels: {track: canary}}}`

func queuedChange(t *testing.T) {
	r := newRollout(t, "queue", "stable")
	r.begin(staged{canary: queuedClone, promotion: "UpdateBaseline", supersede: "Queue"})
	r.waits(1, "Approval")
	r.kubectl("patch", "abrelease", "pay", "--type=json", "--as", "platform", "-p", `[{"op": "replace", "path": "/spec/variations/1/clone/env/0/value", "value": "third"}]`)
	r.untilRun("at run 1, with the next change queued", func(run *v1alpha1.RolloutRun, in *v1alpha1.RolloutStatus) bool {
		return run.Number == 1 && run.Clone != nil && run.Clone.QueuedTime != nil && in.Waiting != nil && in.Waiting.Reason == "Approval"
	})
	r.approve()
	r.waits(2, "Approval")
	if version := r.templateVersion("pay-stable"); version != "canary" {
		t.Errorf("run 1 has left version %q", version)
	}
	r.approve()
	r.completed(2)
	if version := r.templateVersion("pay-stable"); version != "third" {
		t.Errorf("run 2 has left version %q", version)
	}
	r.unharmed(r.clients...)
}

// rejectedVersion deletes the pods of Plumbline, and deploys while none of them is back.
func rejectedVersion(t *testing.T) {
	r := newRollout(t, "reject", "stable", "canary")
	r.begin(staged{supersede: "Reject"})
	r.waits(1, "Approval")
	r.kubectl("delete", "pods", "-n", systemNamespace, "-l", "app.kubernetes.io/component in (xds, assessor, executor)", "--grace-period=0", "--force")
	for _, deployment := range []string{"pay-stable", "pay-canary"} {
		_, err := cluster.Kubectl(t.Context(), "set", "env", "deployment/"+deployment, "SHOP_VERSION=third", "-n", r.namespace, "--as", "platform")
		if err == nil || !strings.Contains(err.Error(), "spec.rollout.supersede is Reject") {
			t.Errorf("another version of %s is answered with %v", deployment, err)
		}
	}
	r.serversReady()
	r.approve()
	r.completed(1)
	r.kubectl("set", "env", "deployment/pay-stable", "SHOP_VERSION=third", "--as", "platform")
	r.waits(2, "Approval")
	r.unharmed(r.clients...)
}

// groupsManifest is a release of workers. Both Deployments begin with two pods.
const groupsManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: ABRelease
metadata: {name: pay, namespace: NS}
spec:
  SERVICE
  stable: stable
  variations:
  - {name: stable, WORKLOAD-STABLE group: {kind: Deployment, name: pay-worker}}
  - {name: canary, WORKLOAD-CANARY group: {kind: Deployment, name: pay-worker-next}}
  trafficSplit: {type: Percentage, percentages: {stable: 100, canary: 0}}
  rollout:
    model: MODEL
    requestedBy: platform
    strategy:
      healthCheckInterval: 10s
      stages:
      - {trafficPercentage: 50, duration: 10s, healthThreshold: 95, requireApproval: Enabled}
      - {trafficPercentage: 100, duration: 10s, healthThreshold: 95}
`

// groups is a release of the workers alone, and pairs one of workers beside the two versions of the Service.
var (
	groups = strings.NewReplacer("SERVICE", "", "WORKLOAD-STABLE ", "", "WORKLOAD-CANARY ", "", "MODEL", "TargetGroup").Replace(groupsManifest)
	pairs  = strings.NewReplacer("SERVICE", "serviceName: pay", "WORKLOAD-STABLE", "workload: {kind: Deployment, name: pay-stable},",
		"WORKLOAD-CANARY", "workload: {kind: Deployment, name: pay-canary},", "MODEL", "Hybrid").Replace(groupsManifest)
)

// newWorkers has two Deployments of workers, beside further ones.
func newWorkers(t *testing.T, name string, tracks ...string) *rollout {
	t.Helper()
	m := newMeshOf(t, "rollout-"+name, append(tracks, "worker", "worker-next"))
	m.apply(rolloutRights)
	return &rollout{mesh: m}
}

func (r *rollout) divide(manifest string) {
	r.Helper()
	r.must(cluster.Apply(r.Context(), strings.ReplaceAll(manifest, "NS", r.namespace), "--as", "platform"))
}

// replicated waits until both groups have these replicas, all of them ready.
func (r *rollout) replicated(stable, canary int) {
	r.Helper()
	want := fmt.Sprintf("%d %d", stable, canary)
	r.must(harness.Eventually(r.Context(), "the workers are "+want, patience, func(context.Context) (bool, string) {
		var seen []string
		for _, name := range []string{"pay-worker", "pay-worker-next"} {
			ready := strings.TrimSpace(r.kubectl("get", "deployment", name, "-o", "jsonpath={.spec.replicas}/{.status.readyReplicas}")) //nolint:contextcheck // that of the test ends both
			asked, are, _ := strings.Cut(ready, "/")
			if are == "" {
				are = "0"
			}
			if asked != are {
				asked += " with " + are + " ready"
			}
			seen = append(seen, asked)
		}
		return strings.Join(seen, " ") == want, strings.Join(seen, " ")
	}))
}

func (r *rollout) ended(number int64, state v1alpha1.RunState) *v1alpha1.ABRelease {
	r.Helper()
	return r.untilRun(fmt.Sprintf("%s by run %d", state, number), func(run *v1alpha1.RolloutRun, _ *v1alpha1.RolloutStatus) bool {
		return run.Number == number && run.State == state
	})
}

func workersGoOver(t *testing.T) {
	r := newWorkers(t, "workers")
	r.divide(groups)
	r.waits(1, "Approval")
	r.replicated(2, 2)
	r.approve()
	if release := r.ended(1, "Completed"); release.Status.ActiveVariation != "canary" {
		t.Errorf("active is %q", release.Status.ActiveVariation)
	}
	r.replicated(0, 4)
}

// workersGoBack has workers that crash some time after their start.
func workersGoBack(t *testing.T) {
	r := newWorkers(t, "crashing")
	r.kubectl("set", "env", "deployment/pay-worker-next", "SHOP_FAULTS=crash=40s")
	r.rolledOut("pay-worker-next")
	r.divide(groups)
	release := r.ended(1, "RolledBack")
	if reason := release.Status.Rollout.Run.Reason; reason != "StageFailed" {
		t.Errorf("the run ended as %s: %s", reason, release.Status.Rollout.Run.Message)
	}
	r.replicated(4, 0)
}

func ordersAndWorkers(t *testing.T) {
	r := newRollout(t, "hybrid", "stable", "canary", "worker", "worker-next")
	r.divide(pairs)
	r.waits(1, "Approval")
	r.replicated(2, 2)
	for c, seen := range r.countedAll(470, r.clients...) {
		r.shares(c, seen, 50)
	}
	r.approve()
	r.completed(1)
	r.replicated(0, 4)
	r.unharmed(r.clients...)
}

// guardManifest makes the namespace an Environment, with a guard that trusts platform. alice may edit, and the
// executor may make standbys.
const guardManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: Environment
metadata: {name: NS}
spec:
  criticality: Production
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
---
apiVersion: plumbline.dev/v1alpha1
kind: SpecGuard
metadata: {name: workloads, namespace: NS}
spec:
  resources: [{apiVersion: apps/v1, kind: Deployment}]
  trustedWriters: {users: [platform]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: alice, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: plumbline-executor-standbys, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plumbline-executor-standbys}
subjects: [{kind: ServiceAccount, name: plumbline-executor, namespace: plumbline-system}]
---
`

// guard has a policy of platform act on drift, and waits until the Deployment of a version is authorized.
func (r *rollout) guard(spec, track string) {
	r.Helper()
	r.must(cluster.Apply(r.Context(), platformManifest))
	r.apply(guardManifest)
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), removal)
		defer cancel()
		keepState(ctx, r.T, r.namespace+"-plans", []string{"get", "remediationpolicies/" + r.namespace, "remediationplans", "baselines", "-n", r.namespace, "-o", "yaml"})
		for _, kind := range []string{"remediationpolicy", "environment"} {
			if _, err := cluster.Kubectl(ctx, "delete", kind, r.namespace, "--ignore-not-found"); err != nil {
				r.Errorf("removing the %s: %v", kind, err)
			}
		}
	})
	r.must(cluster.Apply(r.Context(), strings.NewReplacer("NS", r.namespace, "SPEC", spec).Replace(policyManifest), "--as", "platform"))
	r.kubectl("wait", "--for=create", "baseline/deployments.apps.pay-"+track, "--timeout=60s")
	r.kubectl("wait", "--for=jsonpath={.status.state}=InSync", "baseline/deployments.apps.pay-"+track, "--timeout=60s")
}

// planned waits until the only plan of the namespace has succeeded.
func (r *rollout) planned() {
	r.Helper()
	var all v1alpha1.RemediationPlanList
	r.must(harness.Eventually(r.Context(), "the plan has succeeded", 2*planPatience, func(ctx context.Context) (bool, string) {
		if err := cluster.ReadAll(ctx, &all, r.namespace); err != nil {
			return false, err.Error()
		}
		if len(all.Items) != 1 {
			return false, fmt.Sprintf("there are %d plans", len(all.Items))
		}
		return all.Items[0].Status.Phase == v1alpha1.PlanSucceeded, fmt.Sprintf("%+v", all.Items[0].Status)
	}))
}

// repairedBehindStandby has alice deploy another version of pay. The standby answers orders while the version that
// platform has deployed comes back.
func repairedBehindStandby(t *testing.T) {
	r := newRollout(t, "standby", "stable")
	r.guard("action: Reconcile\n  strategy: BlueGreen\n  standby: {podLabels: {track: standby}}\n  "+patiently, "stable")
	r.kubectl("set", "env", "deployment/pay-stable", "SHOP_VERSION=evil", "--as", "alice")
	r.planned()
	for c, seen := range r.countedAll(200, r.clients...) {
		if seen.Answered["stable"] != seen.answered() {
			t.Errorf("%s: after the repair answered %v", c, seen.Answered)
		}
	}
	if left := r.kubectl("get", "abreleases", "-o", "name"); left != "" {
		t.Errorf("after the repair there is %s", left)
	}
	r.kubectl("wait", "--for=delete", "deployment", "-l", v1alpha1.LabelStandby, "--timeout=90s")
	r.unharmed(r.clients...)
}

// quarantinedWorkload has two versions behind the Service, of which alice changes one.
func quarantinedWorkload(t *testing.T) {
	r := newRollout(t, "quarantine", "stable", "canary")
	r.kubectl("patch", "service", "pay", "--type=merge", "-p", `{"spec":{"selector":{"track":null}}}`)
	r.answeredBy("canary", true)
	r.guard("action: Quarantine\n  "+patiently, "canary")
	r.kubectl("set", "env", "deployment/pay-canary", "SHOP_VERSION=evil", "--as", "alice")
	r.planned()
	r.kubectl("wait", "--for=jsonpath={.status.quarantine.by}", "baseline/deployments.apps.pay-canary", "--timeout=30s")
	r.answeredBy("evil", false)
	r.kubectl("set", "env", "deployment/pay-canary", "SHOP_VERSION=canary", "--as", "platform")
	r.answeredBy("canary", true)
	r.unharmed(r.clients...)
}

// answeredBy waits until a version answers each client, or none of them.
func (r *rollout) answeredBy(version string, answers bool) {
	r.Helper()
	r.must(harness.Eventually(r.Context(), fmt.Sprintf("%s answers: %t", version, answers), patience, func(context.Context) (bool, string) {
		counts := map[string]uint64{}
		for c, seen := range r.countedAll(100, r.clients...) { //nolint:contextcheck // that of the test ends both
			counts[c] = seen.Answered[version]
		}
		for _, n := range counts {
			if (n > 0) != answers {
				return false, fmt.Sprint(counts)
			}
		}
		return true, ""
	}))
}
