// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ordersOfRollout is the rate of each client in a story about a rollout: 210 orders a second in all.
const ordersOfRollout = 70

// rolloutRights let the executor write with the right of platform, who owns the release, and let oncall
// approve.
const rolloutRights = `
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
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: oncall}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: oncall-approves, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plumbline-release-approver}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: oncall}]
---
`

// stagedManifest is a release with stages that are as short as counts permit: proxies tell their counts
// every ten seconds.
const stagedManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: ABRelease
metadata: {name: pay, namespace: NS}
spec:
  serviceName: pay
  stable: stable
  variations:
  - {name: stable, workload: {kind: Deployment, name: pay-stable}}
  - CANARY
  trafficSplit: {type: Sticky, sticky: {cookie: plb-visitor}, percentages: {stable: 100, canary: 0}}
  rollout:
    promotion: PROMOTION
    requestedBy: platform
    supersede: SUPERSEDE
    analysis: {cohortCheck: CHECK}
    deadlines: {deployment: DEADLINE}
    strategy:
      healthCheckInterval: 10s
      stages:
      - {trafficPercentage: 10, duration: 10s, healthThreshold: 95}
      - {trafficPercentage: 50, duration: 10s, healthThreshold: 95, requireApproval: Enabled}
      - {trafficPercentage: 100, duration: 0s, healthThreshold: 95}
`

// staged is a release of a story; what is left out has a default.
type staged struct {
	canary, promotion, check, deadline, supersede string
}

func (s staged) manifest() string {
	for field, value := range map[*string]string{
		&s.canary: "{name: canary, workload: {kind: Deployment, name: pay-canary}}", &s.promotion: "KeepVariation", &s.check: "0s", &s.deadline: "10m",
		&s.supersede: "Restart",
	} {
		if *field == "" {
			*field = value
		}
	}
	return strings.NewReplacer("CANARY", s.canary, "PROMOTION", s.promotion, "CHECK", s.check, "DEADLINE", s.deadline, "SUPERSEDE", s.supersede).Replace(stagedManifest)
}

// rollout is a mesh whose release has stages, under the orders of its clients.
type rollout struct {
	*mesh
	clients []string
}

// newRollout has clients behind a sidecar, one of them with cookies, and one behind the gateway.
func newRollout(t *testing.T, name string, tracks ...string) *rollout {
	t.Helper()
	m := newMeshOf(t, "rollout-"+name, tracks,
		client{name: "redirected", mode: "redirect", url: throughService, rate: ordersOfRollout},
		client{name: "visitors", mode: "explicit", url: throughPort, users: 156, cookies: true, rate: ordersOfRollout},
	)
	outside := m.throughGateway(client{rate: ordersOfRollout})
	m.apply(rolloutRights)
	return &rollout{m, []string{"redirected", "visitors", outside.name}}
}

// begin creates the release as its author.
func (r *rollout) begin(s staged) {
	r.Helper()
	r.must(cluster.Apply(r.Context(), strings.ReplaceAll(s.manifest(), "NS", r.namespace), "--as", "platform"))
}

// untilRun waits until the run is as wanted.
func (r *rollout) untilRun(what string, holds func(run *v1alpha1.RolloutRun, in *v1alpha1.RolloutStatus) bool) *v1alpha1.ABRelease {
	r.Helper()
	return r.release(what, func(release *v1alpha1.ABRelease) bool {
		in := release.Status.Rollout
		return in != nil && in.Run != nil && holds(in.Run, in)
	})
}

// waits until a run waits with that reason.
func (r *rollout) waits(number int64, reason string) {
	r.Helper()
	r.untilRun(fmt.Sprintf("at run %d, which waits for %s", number, reason), func(run *v1alpha1.RolloutRun, in *v1alpha1.RolloutStatus) bool {
		return run.Number == number && in.Waiting != nil && in.Waiting.Reason == reason
	})
}

// approve as the person who may.
func (r *rollout) approve() {
	r.Helper()
	r.kubectl("plumbline", "release", "approve", "pay", "--reason", "the story goes on", "--as", "oncall")
}

// completed waits for the end of a good run that proxies have.
func (r *rollout) completed(number int64) *v1alpha1.ABRelease {
	r.Helper()
	return r.release(fmt.Sprintf("completed by run %d", number), func(release *v1alpha1.ABRelease) bool {
		in := release.Status.Rollout
		return in != nil && in.Run != nil && in.Run.Number == number && in.Run.State == "Completed" && acknowledged(release)
	})
}

// rolledBack waits for the end of a bad run that proxies have. No order that begins later reaches the
// canary.
func (r *rollout) rolledBack(reason string) *v1alpha1.ABRelease {
	r.Helper()
	release := r.release("rolled back: "+reason, func(release *v1alpha1.ABRelease) bool {
		in := release.Status.Rollout
		return in != nil && in.Run != nil && in.Run.State == "RolledBack" && in.Run.Reason == reason && acknowledged(release)
	})
	verdict := release.Status.Rollout.Run.CompletionTime
	for c, seen := range r.countedAll(200, r.clients...) {
		if seen.Answered["canary"] > 0 || seen.Spoiled > 0 {
			r.Errorf("%s: after the rollback the canary answers %d orders and spoils %d", c, seen.Answered["canary"], seen.Spoiled)
		}
		if last, met := seen.LastSent["canary"]; met {
			r.Logf("%s: the last order to the canary began %s after the second of the verdict", c, last.Sub(verdict.Time).Round(10*time.Millisecond))
		}
	}
	r.Logf("rolled back: %s", release.Status.Rollout.Run.Message)
	return release
}

// lostOnlyByTheCanary fails unless each order that failed was answered so by the canary.
func (r *rollout) lostOnlyByTheCanary() {
	r.Helper()
	for _, c := range r.clients {
		v := r.now(c)
		if v.Failed > v.Spoiled || v.answered() == 0 {
			r.Errorf("%s: of %d orders, %d failed, and the bad version spoiled %d: %q", c, v.Started, v.Failed, v.Spoiled, v.Failures)
		}
		r.Logf("%s: %d orders, %d spoiled by the bad version, %d failed otherwise: %v", c, v.Started, v.Spoiled, v.Failed-v.Spoiled, v.Answered)
	}
}

// neverMovedBack fails if a visitor who had met the newer version met the older one again.
func (r *rollout) neverMovedBack(older, newer string) {
	r.Helper()
	if v := r.now("visitors"); v.Moved[newer+">"+older] > 0 || v.Moved[older+">"+newer] == 0 {
		r.Errorf("visitors moved %v, want some from %s to %s and none back", v.Moved, older, newer)
	}
}

// reapply applies a manifest each second, as a tool of GitOps does that heals itself, until the test ends.
// The returned function ends it, and fails the test if an apply failed.
func (r *rollout) reapply(manifest string) (end func()) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan error, 1)
	manifest = strings.ReplaceAll(manifest, "NS", r.namespace)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-tick.C:
			}
			if err := cluster.Apply(ctx, manifest, "--as", "platform"); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
	}()
	return func() {
		cancel()
		r.must(<-done)
	}
}

// templateVersion is what SHOP_VERSION is in the pod template of a Deployment.
func (r *rollout) templateVersion(deployment string) string {
	r.Helper()
	out := r.kubectl("get", "deployment", deployment, "-o", `jsonpath={.spec.template.spec.containers[0].env}`)
	var env []struct{ Name, Value string }
	r.must(json.Unmarshal([]byte(out), &env))
	for _, e := range env {
		if e.Name == "SHOP_VERSION" {
			return e.Value
		}
	}
	return ""
}
