// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// TestOnRealPods tells what leaves all that is shared alone. The stories run beside each
// other, each in namespaces of its own, because most of their time is that of pods. What
// stops something of Plumbline or of the cluster is a test of its own.
func TestOnRealPods(t *testing.T) {
	for _, group := range []struct {
		name string
		tell func(*testing.T)
	}{ // the longest first
		{"splits by share", splitsByShare},
		{"splits beside pods", splitsBesidePods},
		{"splits while proxies fail", proxiesFail},
		{"rollouts", rolloutsOnRealPods},
		{"the executor", executorOnRealPods},
		{"drift", driftOnRealPods},
		{"the examples are accepted", examplesAreAccepted},
		{"the policies type-check", policiesTypeCheck},
	} {
		t.Run(group.name, group.tell)
	}
}

// executorOnRealPods leaves evidence, which is verified with that of the demo, after it.
func executorOnRealPods(t *testing.T) {
	t.Parallel()
	if err := cluster.Apply(t.Context(), platformManifest); err != nil {
		t.Fatal(err)
	}
	for name, tell := range map[string]func(*testing.T){
		"an image is put back, and its pods are replaced":                          imageIsPutBack,
		"a rollback leads to the revision that was last ready":                     rollBack,
		"scaling puts the replicas back, and nothing else":                         scaleBack,
		"a restart replaces the pods once, and once only":                          restartOnce,
		"a deleted Deployment is made again, with the labels that its guard wants": makeAgain,
		"an autoscaler's seven replicas stay seven while the image is put back":    sevenStaySeven,
		"a plan is paused, resumed and canceled by editing it":                     steeredByEdit,
		"a halt ends what is under way, until it is taken back":                    halted,
	} {
		t.Run(name, tell)
	}
	for name, tell := range map[string]func(*testing.T){
		"Rolling stops at the first target whose pods a quota keeps away": rollingStops,
		"a staged plan stops when its first pod finds no node":            stagedStops,
		"a plan is paused, resumed and canceled with the plugin":          steeredByPlugin,
		"a policy that only notifies tells and writes nothing":            notifyOnly,
	} {
		t.Run(name, func(t *testing.T) {
			rotation.Share(t, 3)
			tell(t)
		})
	}
}

func imageIsPutBack(t *testing.T) {
	w := newWorld(t, "reconcile")
	w.deployAll(0, workload("web"))
	w.ready("web")
	w.drifted("web")
	drifted := w.podsRun("web", otherImage, 1)
	w.policy("action: Reconcile", patiently)
	plan := w.succeeded()
	if !slices.Equal(states(plan), []v1alpha1.StepState{v1alpha1.StepVerified}) {
		t.Errorf("the plan is %s", told(plan))
	}
	if back := w.podsRun("web", goodImage, 1); slices.Equal(back, drifted) {
		t.Errorf("pod %s is the one that had drifted", back)
	}
	w.await("in sync, and let go", func(b *v1alpha1.Baseline) bool { return inSync(b) && b.Status.PlanName == "" })
}

// A rollback is about drift, as every action is: that CI authorized something
// broken is nobody's drift, and what somebody then does about it by hand is.
func rollBack(t *testing.T) {
	w := newWorld(t, "rollback")
	// Without a pod of the old image in between the broken one is an outage.
	w.deployAll(0, workload("web", "  selector:", "  strategy: {type: Recreate}\n  selector:"))
	w.ready("web")
	first := w.await("it was seen ready", func(b *v1alpha1.Baseline) bool { return b.Status.LastReady != nil }).Status.LastReady
	_, err := w.ci.Kubectl(t.Context(), "set", "image", "deployment/web", "app="+brokenImage, "-n", w.namespace)
	w.must(err)
	b := w.await("the broken image is authorized", func(b *v1alpha1.Baseline) bool { return inSync(b) && b.Spec.Authorized.Number == 2 })
	if b.Status.LastReady == nil || b.Status.LastReady.Revision != first.Revision {
		t.Errorf("last ready is %+v, want %+v: the broken one never was", b.Status.LastReady, first)
	}
	w.as("alice", "set", "env", "deployment/web", "RETRY=1")
	w.awaitFinding("[name=RETRY]", "alice")
	w.eventually("no pod is ready", func(ctx context.Context) (bool, string) {
		pods, err := w.pods(ctx, "web")
		return err == nil && len(pods) == 1 && !isTrue(&pods[0], corev1.PodReady), fmt.Sprint(len(pods), " pods, ", err)
	})
	w.policy("action: Rollback", patiently)
	plan := w.succeeded()
	if target := plan.Spec.Plan.Targets[0]; target.Revision != first.Revision || target.DesiredHash != first.Hash {
		t.Errorf("the plan leads to %s (%s), want %+v", target.Revision, target.DesiredHash, first)
	}
	w.podsRun("web", goodImage, 1)
	b = w.await("what was authorized stays so, and differs", func(b *v1alpha1.Baseline) bool {
		_, differs := findingAt(b, "/image")
		return differs
	})
	if b.Spec.Authorized.Number != 2 {
		t.Errorf("authorized is number %d: the executor authorizes nothing", b.Spec.Authorized.Number)
	}
}

func scaleBack(t *testing.T) {
	w := newWorld(t, "scale")
	w.deployAll(0, workload("web"))
	w.as("alice", "set", "env", "deployment/web", "EXTRA=1")
	w.as("alice", "scale", "deployment/web", "--replicas=3")
	w.awaitFinding("[name=EXTRA]", "alice")
	w.awaitFinding("/spec/replicas", "alice")
	w.podsRun("web", goodImage, 3)
	w.policy("action: Scale", patiently)
	w.succeeded()
	w.podsRun("web", goodImage, 1)
	w.await("the variable alone is still drift", func(b *v1alpha1.Baseline) bool {
		_, env := findingAt(b, "[name=EXTRA]")
		return env && len(b.Status.Findings) == 1
	})
}

func restartOnce(t *testing.T) {
	w := newWorld(t, "restarted")
	w.deployAll(0, workload("web"))
	w.drifted("web")
	before := w.podsRun("web", otherImage, 1)
	w.policy("action: Restart", patiently)
	plan := w.succeeded()
	if after := w.podsRun("web", otherImage, 1); slices.Equal(after, before) {
		t.Errorf("pod %s was not replaced", after)
	}
	live := w.live("web")
	if mark := live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]; mark != protocol.Token(plan, 0) {
		t.Errorf("the mark is %q, want %q, which follows from the plan", mark, protocol.Token(plan, 0))
	}
	// The drift is there as before, so only what was done keeps it from being done
	// again.
	w.untilPolicy("it has done what it can", func(p *v1alpha1.RemediationPolicyStatus) bool {
		return p.Targets.Drifted == 1 && p.Targets.Eligible == 0 && strings.Contains(p.WaitingFor, "AlreadyDone")
	})
	plans, err := w.plans(t.Context())
	w.must(err)
	if now := w.live("web"); len(plans) != 1 || now.Generation != live.Generation {
		t.Errorf("%d plans, generation %d became %d", len(plans), live.Generation, now.Generation)
	}
}

func makeAgain(t *testing.T) {
	w := newWorld(t, "recreate")
	w.kubectl("patch", "specguard/guard", "--type=merge", "-p", `{"spec":{"resyncPeriod":"1h","selector":{"matchLabels":{"app":"web"}}}}`)
	w.kubectl("wait", "--for=condition=Ready", "specguard/guard", "--timeout=60s")
	w.deployAll(0, workload("web"))
	w.ready("web")
	before := w.live("web")
	w.as("alice", "delete", "deployment/web")
	w.await("missing", func(b *v1alpha1.Baseline) bool { return b.Status.State == v1alpha1.StateMissing })
	w.policy("action: Reconcile", patiently)
	w.succeeded()
	w.podsRun("web", goodImage, 1)
	after := w.live("web")
	if after.UID == before.UID || after.Labels["app"] != "web" {
		t.Errorf("it is %s with labels %v, was %s with labels %v", after.UID, after.Labels, before.UID, before.Labels)
	}
	w.await("the new object is guarded and in sync", func(b *v1alpha1.Baseline) bool {
		return inSync(b) && b.Status.Observed.UID == string(after.UID) && slices.Equal(b.Status.Guards, []string{"SpecGuard/guard"})
	})
	w.as("bob", "set", "image", "deployment/web", "app="+otherImage)
	w.untilPlan("one puts back what bob did to it", func(p *v1alpha1.RemediationPlan) bool {
		return p.Status.Phase == v1alpha1.PlanSucceeded && p.Spec.Plan.Targets[0].UID == string(after.UID)
	})
}

func sevenStaySeven(t *testing.T) {
	w := newWorld(t, "seven")
	w.deployAll(0, gated("web"))
	w.drifted("web")
	w.policy("action: Reconcile", patiently)
	w.untilPlan("the image is written, and the pods are not ready", isAt(v1alpha1.StepApplied))
	w.as(autoscaler, "scale", "deployment/web", "--replicas=7")
	w.open("web")
	w.succeeded()
	w.podsRun("web", goodImage, 7)
	b := w.await("in sync, the replicas as the autoscaler wants them", func(b *v1alpha1.Baseline) bool {
		return inSync(b) && len(b.Status.Masks) == 1
	})
	if mask := b.Status.Masks[0]; mask.Value != "7" || *w.live("web").Spec.Replicas != 7 {
		t.Errorf("the mask is %+v", mask)
	}
}

// stopped waits until a plan has failed at its first batch, and checks that no
// target of a later one was written.
func (w *world) stopped(first, others int) {
	w.Helper()
	plan := w.untilPlan("it has ended", func(p *v1alpha1.RemediationPlan) bool { return protocol.Final(p.Status.Phase) })
	want := append(slices.Repeat([]v1alpha1.StepReason{v1alpha1.ReasonUnhealthy}, first), slices.Repeat([]v1alpha1.StepReason{v1alpha1.ReasonStopped}, others)...)
	var got []v1alpha1.StepReason
	for i := range plan.Status.Steps {
		got = append(got, plan.Status.Steps[i].Reason)
	}
	if plan.Status.Phase != v1alpha1.PlanFailed || !slices.Equal(got, want) {
		w.Fatalf("the plan is %s, want its steps %q", told(plan), want)
	}
	for i, target := range plan.Spec.Plan.Targets {
		if i >= first {
			w.untouched(target.Name)
		}
	}
	// The next plan is about what is left, and the breaker that the failure has
	// opened keeps it from being tried.
	next := w.untilPlan("the breaker keeps the next one back", func(p *v1alpha1.RemediationPlan) bool {
		return strings.Contains(p.Status.DeferralReason, "CircuitBreaker")
	})
	for _, target := range next.Spec.Plan.Targets {
		w.untouched(target.Name)
	}
}

func rollingStops(t *testing.T) {
	w := newWorld(t, "rolling")
	w.deployAll(6, workload("web"), workload("api"))
	w.ready("web", "api")
	w.drifted("web", "api")
	w.podsRun("web", otherImage, 1)
	w.podsRun("api", otherImage, 1)
	w.kubectl("create", "quota", "full", "--hard=pods=2")
	w.kubectl("wait", "--for=jsonpath={.status.used.pods}=2", "quota/full", "--timeout=30s")
	w.policy("action: Reconcile", "strategy: Rolling", briefly)
	w.stopped(1, 1)
	// One pod of each served all the time: a rollout takes none away before the new
	// one is ready.
	for _, name := range []string{"web", "api"} {
		w.podsRun(name, otherImage, 1)
	}
}

func stagedStops(t *testing.T) {
	w := newWorld(t, "staged")
	names := []string{"a", "b", "c"}
	var workloads []string
	for _, name := range names {
		workloads = append(workloads, workload(name, "    spec:\n", "    spec:\n      nodeSelector: {plumbline.dev/e2e: nowhere}\n"))
	}
	w.deployAll(9, workloads...)
	for _, name := range names { // they run since somebody took the selector away
		w.as("alice", "patch", "deployment/"+name, "--type=json", "-p", `[{"op":"remove","path":"/spec/template/spec/nodeSelector"},
			{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"`+otherImage+`"}]`)
	}
	for _, name := range names {
		w.podsRun(name, otherImage, 1)
		w.kubectl("wait", "--for=jsonpath={.status.state}=Drifted", "baseline/deployments.apps."+name, "--timeout=60s")
	}
	w.policy("action: Reconcile", "strategy: Staged", briefly)
	w.stopped(1, 2)
}

func steeredByPlugin(t *testing.T) {
	steered(t, "plugin", func(w *world, plan, verb string) {
		args := []string{"plumbline", "plan", verb, plan, "--reason", "a drill", "--timeout", patience.String()}
		if verb == "cancel" {
			args = append(args, "--yes")
		}
		w.as("oncall", args...)
	})
}

func steeredByEdit(t *testing.T) {
	verbs := map[string]string{"pause": `"Pause"`, "resume": "null", "cancel": `"Cancel"`}
	steered(t, "edit", func(w *world, plan, verb string) {
		request := func(by string) []string {
			return []string{"kubectl", "patch", "remediationplan", plan, "-n", w.namespace, "--as", "oncall", "--type=merge",
				"-p", `{"spec":{"control":{"verb":` + verbs[verb] + `,"requestedBy":"` + by + `","reason":"a drill"}}}`}
		}
		if result, err := cluster.Run(t.Context(), request("alice")); err == nil {
			t.Errorf("oncall asked in the name of alice:\n%s", result.Output())
		}
		_, err := cluster.Run(t.Context(), request("oncall"))
		w.must(err)
	})
}

// steered pauses a plan at its first step, resumes it, and cancels it at its
// second; the third is never written.
func steered(t *testing.T, name string, ask func(w *world, plan, verb string)) {
	w := newWorld(t, name)
	w.deployAll(9, gated("a"), gated("b"), gated("c"))
	w.drifted("a", "b", "c")
	w.policy("action: Reconcile", patiently)
	plan := w.untilPlan("the first is written", isAt(v1alpha1.StepApplied, v1alpha1.StepPlanned, v1alpha1.StepPlanned))
	var targets []string
	for _, target := range plan.Spec.Plan.Targets {
		targets = append(targets, target.Name)
	}

	ask(w, plan.Name, "pause")
	paused := w.untilPlan("it is paused", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanPaused })
	if by := paused.Spec.Control.RequestedBy; by != "oncall" {
		t.Errorf("paused by %q", by)
	}
	w.open(targets[0]) // all that the second one waits for is the person
	w.untouched(targets[1])

	ask(w, plan.Name, "resume")
	w.untilPlan("the second is written", isAt(v1alpha1.StepVerified, v1alpha1.StepApplied, v1alpha1.StepPlanned))

	ask(w, plan.Name, "cancel")
	canceled := w.untilPlan("it is canceled", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanCanceled })
	if canceled.Status.EndedBy != "oncall" {
		t.Errorf("ended by %q", canceled.Status.EndedBy)
	}
	w.open(targets[1])
	w.untouched(targets[2])
	w.untilPolicy("it does not try again what a person has canceled", func(p *v1alpha1.RemediationPolicyStatus) bool {
		return p.Targets.Drifted == 1 && p.Targets.Eligible == 0 && strings.Contains(p.WaitingFor, "oncall canceled")
	})
	w.untouched(targets[2])
}

func halted(t *testing.T) {
	w := newWorld(t, "halt")
	w.deployAll(6, gated("web"), gated("api"))
	w.drifted("web", "api")
	w.policy("action: Reconcile", patiently)
	plan := w.untilPlan("the first is written", isAt(v1alpha1.StepApplied, v1alpha1.StepPlanned))
	first, second := plan.Spec.Plan.Targets[0].Name, plan.Spec.Plan.Targets[1].Name

	w.as("oncall", "plumbline", "halt", w.namespace, "--reason", "a drill")
	ended := w.untilPlan("it is canceled", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanCanceled })
	if ended.Status.EndedBy != "oncall" {
		t.Errorf("ended by %q", ended.Status.EndedBy)
	}
	w.open(first)
	w.untouched(second)

	w.as("oncall", "plumbline", "resume", w.namespace)
	w.untilPlan("another one writes the second", func(p *v1alpha1.RemediationPlan) bool {
		return p.Name != plan.Name && isAt(v1alpha1.StepApplied)(p) && p.Spec.Plan.Targets[0].Name == second
	})
	w.open(second)
	w.untilPlan("and succeeds", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanSucceeded })
}

func notifyOnly(t *testing.T) {
	w := newWorld(t, "notify")
	w.deployAll(0, workload("web"))
	w.drifted("web")
	before := w.live("web").Generation
	w.policy("action: NotifyOnly", patiently)
	w.eventually("an event tells a person", func(ctx context.Context) (bool, string) {
		// Events of objects of the whole cluster are in the namespace default.
		out, err := cluster.Kubectl(ctx, "get", "events.events.k8s.io", "-n", "default", "-o",
			`jsonpath={range .items[?(@.regarding.name=="`+w.namespace+`")]}{.regarding.kind} {.reason} {.note}{"\n"}{end}`)
		return err == nil && strings.Contains(out, "RemediationPolicy RemediationEscalated") && strings.Contains(out, "web (the policy only notifies)"), out
	})
	plans, err := w.plans(t.Context())
	w.must(err)
	if live := w.live("web"); len(plans) > 0 || live.Generation != before {
		t.Errorf("%d plans, generation %d became %d", len(plans), before, live.Generation)
	}
}
