// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// rolloutsOnRealPods go their way under 210 orders a second, through sidecars of both modes and the gateway;
// no client repeats an order. A quick run has one story; `make delivery-long` has all.
func rolloutsOnRealPods(t *testing.T) {
	t.Parallel()
	stories := []struct {
		name string
		tell func(*testing.T)
	}{
		{"a good clone is approved, and changes the baseline", goodClone},
		{"a version that fails orders is rolled back", failingVersion},
		{"a version that is slow is rolled back", slowVersion},
		{"a version that ends at its start gets no order", crashingVersion},
		{"a canary that loses its pods is rolled back", podsGone},
		{"two bad versions are told apart from one", bothBad},
		{"a third version in the middle begins anew", thirdVersion},
		{"an autoscaler takes pods of the stable version before a rollback", stableShrinks},
		{"a tool of GitOps heals itself throughout", gitopsThroughout},
		{"all of Plumbline is killed in the middle of a stage", allKilled},
	}
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			rotation.Share(t, len(stories))
			s.tell(t)
		})
	}
	for name, tell := range longRollouts {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(seed.Long) != "1" {
				t.Skipf("%s=1 runs it", seed.Long)
			}
			tell(t)
		})
	}
}

// goodClone keeps the visitors of the canary on the new version until the baseline has it.
func goodClone(t *testing.T) {
	r := newRollout(t, "clone", "stable")
	r.begin(staged{
		canary:    `{name: canary, clone: {env: [{name: SHOP_VERSION, value: canary}], podLabels: {track: canary}}}`,
		promotion: "UpdateBaseline", check: "10s",
	})
	r.waits(1, "Approval")
	r.approve()
	release := r.completed(1)
	if version := r.templateVersion("pay-stable"); version != "canary" || release.Status.Split != "stable 100 / canary 0" {
		t.Errorf("the baseline has version %q, and in force is %q", version, release.Status.Split)
	}
	r.kubectl("wait", "--for=jsonpath={.spec.replicas}=0", "deployment/pay-canary", "--timeout=60s")
	r.unharmed(r.clients...)
	r.neverMovedBack("stable", "canary")
}

func failingVersion(t *testing.T) { badVersion(t, "errors", "errors=5") }

func slowVersion(t *testing.T) { badVersion(t, "slow", "delay=300ms") }

func badVersion(t *testing.T, name, faults string) {
	t.Helper()
	r := newRollout(t, name, "stable", "canary")
	r.kubectl("set", "env", "deployment/pay-canary", "SHOP_FAULTS="+faults)
	r.rolledOut("pay-canary")
	r.begin(staged{})
	r.rolledBack("StageFailed")
	r.lostOnlyByTheCanary()
}

// crashingVersion has a variable that the shop refuses at its start.
func crashingVersion(t *testing.T) {
	r := newRollout(t, "crash", "stable", "canary")
	r.kubectl("set", "env", "deployment/pay-canary", "SHOP_FAULTS=no-such-fault")
	r.begin(staged{deadline: "30s"})
	r.rolledBack("DeploymentTimeout")
	for _, c := range r.clients {
		if v := r.now(c); v.Answered["canary"] > 0 {
			t.Errorf("%s: the canary answered %v", c, v.Answered)
		}
	}
	r.unharmed(r.clients...)
}

func podsGone(t *testing.T) {
	r := newRollout(t, "gone", "stable", "canary")
	r.begin(staged{})
	r.waits(1, "Approval")
	r.kubectl("scale", "deployment/pay-canary", "--replicas=0")
	r.rolledBack("StageFailed")
	r.unharmed(r.clients...)
}

// bothBad has the fault in what both versions need. Soon after a step the step is to blame as well.
func bothBad(t *testing.T) {
	r := newRollout(t, "both", "stable", "canary")
	r.kubectl("set", "env", "deployment/pay-stable", "deployment/pay-canary", "SHOP_FAULTS=errors=20")
	r.rolledOut("pay-stable", "pay-canary")
	r.begin(staged{})
	release := r.untilRun("held or rolled back", func(run *v1alpha1.RolloutRun, in *v1alpha1.RolloutStatus) bool {
		return run.State == "RolledBack" || in.Waiting != nil && in.Waiting.Reason == "BothBad"
	})
	if run := release.Status.Rollout.Run; run.State == "RolledBack" && run.Stages[0].State != "Failed" || run.Stages[1].State != "Pending" {
		t.Errorf("the run is %+v", run)
	}
	t.Logf("run: %s, waiting %+v", release.Status.Rollout.Run.Message, release.Status.Rollout.Waiting)
	for _, c := range r.clients {
		if v := r.now(c); v.Failed > v.Spoiled {
			t.Errorf("%s: %d orders failed, and the versions spoiled %d: %q", c, v.Failed, v.Spoiled, v.Failures)
		}
	}
}

func thirdVersion(t *testing.T) {
	r := newRollout(t, "third", "stable", "canary")
	r.begin(staged{})
	r.waits(1, "Approval")
	r.kubectl("set", "env", "deployment/pay-canary", "SHOP_VERSION=third")
	r.waits(2, "Approval")
	r.approve()
	if release := r.completed(2); release.Status.ActiveVariation != "canary" {
		t.Errorf("active is %q", release.Status.ActiveVariation)
	}
	for c, seen := range r.countedAll(100, r.clients...) {
		if seen.Answered["third"] != seen.answered() {
			t.Errorf("%s: after the end answered %v", c, seen.Answered)
		}
	}
	r.unharmed(r.clients...)
}

// stableShrinks plays the autoscaler, which takes pods of the version that has fewer orders. The ramp holds;
// the rollback does not.
func stableShrinks(t *testing.T) {
	r := newRollout(t, "shrunk", "stable", "canary")
	r.begin(staged{})
	r.waits(1, "Approval")
	r.kubectl("scale", "deployment/pay-stable", "--replicas=1")
	r.approve()
	r.waits(1, "FallbackShrunk")
	r.kubectl("scale", "deployment/pay-canary", "--replicas=0")
	r.rolledBack("StageFailed")
	r.unharmed(r.clients...)
}

// gitopsThroughout applies workloads and release from one manifest all the time, and a promotion is no
// difference to it.
func gitopsThroughout(t *testing.T) {
	r := newRollout(t, "gitops", "stable", "canary")
	s := staged{}
	end := r.reapply(meshManifest + versionManifest("stable") + versionManifest("canary") + s.manifest())
	r.waits(1, "Approval")
	r.approve()
	if release := r.completed(1); release.Status.ActiveVariation != "canary" {
		t.Errorf("active is %q", release.Status.ActiveVariation)
	}
	end()
	for c, seen := range r.countedAll(100, r.clients...) {
		if seen.Answered["canary"] != seen.answered() {
			t.Errorf("%s: after the promotion answered %v", c, seen.Answered)
		}
	}
	r.unharmed(r.clients...)
	r.neverMovedBack("stable", "canary")
}

// allKilled ends the discovery servers, the executor and the assessor at once. The canary keeps its orders,
// and the run goes on when they are back.
func allKilled(t *testing.T) {
	r := newRollout(t, "killed", "stable", "canary")
	r.begin(staged{})
	r.waits(1, "Approval")
	r.kubectl("delete", "pods", "-n", systemNamespace, "-l", "app.kubernetes.io/component in (xds, assessor, executor)", "--grace-period=0", "--force")
	for c, seen := range r.countedAll(470, "redirected", "outside") {
		r.shares(c, seen, 50)
	}
	r.serversReady()
	r.approve()
	r.completed(1)
	r.unharmed(r.clients...)
	r.neverMovedBack("stable", "canary")
}
