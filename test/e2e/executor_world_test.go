// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness"
)

const (
	goodImage  = "docker.io/plumbline/shop:dev"
	otherImage = "docker.io/plumbline/shop:hotfix"
	// brokenImage is one that no node has and no registry serves.
	brokenImage = "docker.io/plumbline/shop:no-such"
	autoscaler  = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
	// planPatience bounds a whole plan: rollouts of several targets, beside the
	// tests that run at the same time.
	planPatience = 3 * time.Minute
)

// chains are the uids of the policies that made plans, by namespace: each must
// have a chain of evidence when everything has run.
var chains = struct {
	sync.Mutex
	of map[string]string
}{of: map[string]string{}}

// platformManifest lets platform write policies, and oncall halt.
const platformManifest = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-policies}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plumbline-policy-author}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: platform}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: e2e-halts, namespace: plumbline-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plumbline-ledger-operator}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: oncall}]
`

// worldManifest makes a namespace an Environment of its own, in which the executor
// may write with the right of platform, and oncall may steer plans.
const worldManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: Environment
metadata: {name: NS}
spec:
  criticality: Production
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: plumbline-executor-targets, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plumbline-executor-targets}
subjects: [{kind: ServiceAccount, name: plumbline-executor, namespace: plumbline-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: platform, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: platform}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: oncall, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: oncall}]
`

// fillerManifest is a service without pods: one operation touches a quarter of a
// policy's objects, and a third at once would be a mass drift.
const fillerManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {app: NAME}}
spec:
  replicas: 0
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: app, image: docker.io/plumbline/shop:dev}]}
---
`

// policyManifest acts at once; SPEC is what a test is about.
const policyManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: RemediationPolicy
metadata: {name: NS}
spec:
  environmentName: NS
  mode: Active
  requestedBy: platform
  trigger: Immediate
  minimumSeverity: Info
  # CI has deployed a moment ago, and what is gone is to be made again.
  exceptions: {activeWriter: Allowed, recreate: Allowed}
  SPEC
`

const (
	// patiently waits for pods as long as a test may take.
	patiently = "safety: {cooldown: 0s}\n  health: {stabilization: 1s, timeout: 10m}"
	// briefly takes pods that are not ready soon for broken, and one failure for
	// enough.
	briefly = "safety: {cooldown: 0s, circuitBreaker: {failureThreshold: 1}}\n  health: {stabilization: 1s, timeout: 10s}"
)

// world is a scope in which drift is put back.
type world struct{ *scope }

func newWorld(t *testing.T, name string) *world {
	t.Helper()
	t.Parallel() // the tests wait for pods, each in a namespace of its own
	w := &world{newScope(t, name)}
	w.must(cluster.Apply(t.Context(), strings.ReplaceAll(worldManifest, "NS", w.namespace)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), removal)
		defer cancel()
		keepState(ctx, t, w.namespace+"-plans", []string{"get", "remediationpolicies/" + w.namespace, "remediationplans", "-n", w.namespace, "-o", "yaml"})
		// The plans end with their policy, and let the namespace go.
		for _, kind := range []string{"remediationpolicy", "environment"} {
			if _, err := cluster.Kubectl(ctx, "delete", kind, w.namespace, "--ignore-not-found"); err != nil {
				t.Errorf("removing the %s: %v", kind, err)
			}
		}
	})
	return w
}

// workload is the usual one under a name, with changes: old, new, old, new.
func workload(name string, changes ...string) string {
	changes = append([]string{"name: web,", "name: " + name + ",", "app: web", "app: " + name, "value: web", "value: " + name}, changes...)
	return strings.NewReplacer(changes...).Replace(workloadManifest) + "---\n"
}

// gated is a workload whose pods become ready when the test says so, see
// [world.open].
func gated(name string) string {
	return workload(name, "    spec:\n", "    spec:\n      readinessGates: [{conditionType: plumbline.dev/e2e}]\n")
}

// deployAll has CI make workloads and so many fillers, and waits until all are
// authorized.
func (w *world) deployAll(fillers int, workloads ...string) {
	w.Helper()
	manifest := strings.Join(workloads, "")
	for i := range fillers {
		manifest += strings.ReplaceAll(fillerManifest, "NAME", fmt.Sprint("filler-", i))
	}
	w.must(w.ci.Apply(w.Context(), manifest, "-n", w.namespace))
	w.eventually("everything is in sync", func(ctx context.Context) (bool, string) {
		var all v1alpha1.BaselineList
		if err := cluster.ReadAll(ctx, &all, w.namespace); err != nil {
			return false, err.Error()
		}
		n := 0
		for i := range all.Items {
			if inSync(&all.Items[i]) {
				n++
			}
		}
		return n == fillers+len(workloads), fmt.Sprintf("%d of %d", n, fillers+len(workloads))
	})
}

// ready waits until the pods of a Deployment are as its spec says.
func (w *world) ready(names ...string) {
	w.Helper()
	for _, name := range names {
		w.kubectl("rollout", "status", "deployment/"+name, "--timeout=120s")
	}
}

// drifted has alice change the image of Deployments, one after the other, and
// waits until each is told.
func (w *world) drifted(names ...string) {
	w.Helper()
	for _, name := range names {
		w.as("alice", "set", "image", "deployment/"+name, "app="+otherImage)
		w.kubectl("wait", "--for=jsonpath={.status.state}=Drifted", "baseline/deployments.apps."+name, "--timeout=60s")
	}
}

// policy makes an active policy of platform's.
func (w *world) policy(spec ...string) *v1alpha1.RemediationPolicy {
	w.Helper()
	manifest := strings.NewReplacer("NS", w.namespace, "SPEC", strings.Join(spec, "\n  ")).Replace(policyManifest)
	w.must(cluster.Apply(w.Context(), manifest, "--as", "platform"))
	var p v1alpha1.RemediationPolicy
	w.must(cluster.Read(w.Context(), &p, "", w.namespace))
	if p.Spec.Action != v1alpha1.ActionNotifyOnly {
		chains.Lock()
		chains.of[w.namespace] = string(p.UID)
		chains.Unlock()
	}
	return &p
}

// untilPolicy waits until the policy says so.
func (w *world) untilPolicy(what string, holds func(*v1alpha1.RemediationPolicyStatus) bool) {
	w.Helper()
	w.eventually("the policy: "+what, func(ctx context.Context) (bool, string) {
		var p v1alpha1.RemediationPolicy
		if err := cluster.Read(ctx, &p, "", w.namespace); err != nil {
			return false, err.Error()
		}
		return p.Status.ObservedGeneration == p.Generation && holds(&p.Status), fmt.Sprintf("%+v", p.Status)
	})
}

// plans are those of the namespace, oldest first.
func (w *world) plans(ctx context.Context) ([]v1alpha1.RemediationPlan, error) {
	var all v1alpha1.RemediationPlanList
	err := cluster.ReadAll(ctx, &all, w.namespace)
	slices.SortFunc(all.Items, func(a, b v1alpha1.RemediationPlan) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return all.Items, err
}

// untilPlan waits until there is a plan of which this is so.
func (w *world) untilPlan(what string, holds func(*v1alpha1.RemediationPlan) bool) *v1alpha1.RemediationPlan {
	w.Helper()
	var found *v1alpha1.RemediationPlan
	w.must(harness.Eventually(w.Context(), "a plan: "+what, planPatience, func(ctx context.Context) (bool, string) {
		plans, err := w.plans(ctx)
		if err != nil {
			return false, err.Error()
		}
		var seen []string
		for i := range plans {
			if holds(&plans[i]) {
				found = &plans[i]
				return true, ""
			}
			seen = append(seen, told(&plans[i]))
		}
		return false, strings.Join(seen, "; ")
	}))
	return found
}

// succeeded waits until the only plan has succeeded.
func (w *world) succeeded() *v1alpha1.RemediationPlan {
	w.Helper()
	plan := w.untilPlan("it has ended", func(p *v1alpha1.RemediationPlan) bool { return protocol.Final(p.Status.Phase) })
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		w.Fatalf("the plan is %s", told(plan))
	}
	return plan
}

// told is a plan in one line.
func told(p *v1alpha1.RemediationPlan) string {
	words := []string{p.Name, string(p.Status.Phase), p.Status.DeferralReason}
	for i := range p.Status.Steps {
		s := &p.Status.Steps[i]
		words = append(words, fmt.Sprintf("[%s %s %s %s]", p.Spec.Plan.Targets[i].Name, s.State, s.Reason, s.Message))
	}
	return strings.Join(words, " ")
}

// states says how far the steps of a plan are, in order.
func states(p *v1alpha1.RemediationPlan) []v1alpha1.StepState {
	var out []v1alpha1.StepState
	for i := range p.Status.Steps {
		out = append(out, p.Status.Steps[i].State)
	}
	return out
}

// isAt asks whether a plan's steps are as far as this.
func isAt(want ...v1alpha1.StepState) func(*v1alpha1.RemediationPlan) bool {
	return func(p *v1alpha1.RemediationPlan) bool { return slices.Equal(states(p), want) }
}

// live reads a Deployment.
func (w *world) live(name string) *appsv1.Deployment {
	w.Helper()
	var d appsv1.Deployment
	w.must(cluster.Read(w.Context(), &d, w.namespace, name))
	return &d
}

func imageOf(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image }

// pods are those of a Deployment that are not on their way out.
func (w *world) pods(ctx context.Context, name string) ([]corev1.Pod, error) {
	var all corev1.PodList
	err := cluster.ReadAll(ctx, &all, w.namespace, runtimeclient.MatchingLabels{"app": name})
	return slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), err
}

// podsRun waits until a Deployment has so many pods, all of them ready and of this
// image, and returns their uids.
func (w *world) podsRun(name, image string, replicas int) []string {
	w.Helper()
	var uids []string
	w.eventually(fmt.Sprintf("%d ready pods of %s run %s", replicas, name, image), func(ctx context.Context) (bool, string) {
		pods, err := w.pods(ctx, name)
		if err != nil {
			return false, err.Error()
		}
		uids = nil
		var seen []string
		for i := range pods {
			p := &pods[i]
			seen = append(seen, fmt.Sprint(p.Name, " ", p.Spec.Containers[0].Image, " ", isTrue(p, corev1.PodReady)))
			if p.Spec.Containers[0].Image == image && isTrue(p, corev1.PodReady) {
				uids = append(uids, string(p.UID))
			}
		}
		return len(uids) == replicas && len(pods) == replicas, strings.Join(seen, ", ")
	})
	return uids
}

func isTrue(p *corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}

// open lets the pods of a gated workload become ready, until its rollout is done.
func (w *world) open(name string) {
	w.Helper()
	w.eventually("the rollout of "+name+" is done", func(ctx context.Context) (bool, string) {
		pods, err := w.pods(ctx, name)
		if err != nil {
			return false, err.Error()
		}
		for i := range pods {
			if !isTrue(&pods[i], "plumbline.dev/e2e") {
				w.openPod(ctx, &pods[i])
			}
		}
		var d appsv1.Deployment
		if err := cluster.Read(ctx, &d, w.namespace, name); err != nil {
			return false, err.Error()
		}
		s := &d.Status
		done := s.ObservedGeneration == d.Generation && s.UpdatedReplicas == *d.Spec.Replicas && s.AvailableReplicas == s.UpdatedReplicas && s.Replicas == s.UpdatedReplicas
		return done, fmt.Sprintf("%+v", *s)
	})
}

// openPod says that a pod may be ready; one that goes away meanwhile need not be.
func (w *world) openPod(ctx context.Context, p *corev1.Pod) {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "plumbline.dev/e2e", "status": "True"},
	}}})
	w.must(err)
	if _, err := cluster.Kubectl(ctx, "patch", "pod", p.Name, "-n", w.namespace, "--subresource=status", "-p", string(patch)); err != nil {
		w.Logf("pod %s: %v", p.Name, err)
	}
}

func (w *world) eventually(what string, check func(context.Context) (bool, string)) {
	w.Helper()
	w.must(harness.Eventually(w.Context(), what, patience, check))
}

// untouched checks that nobody has written a Deployment since it drifted.
func (w *world) untouched(name string) {
	w.Helper()
	if d := w.live(name); imageOf(d) != otherImage {
		w.Errorf("%s runs %s: it was written", name, imageOf(d))
	}
}
