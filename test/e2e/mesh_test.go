// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

const (
	throughService = "http://pay"
	throughPort    = "http://127.0.0.1:8001"
	throughGateway = "http://plumbline-gateway.plumbline-system"
)

// splitsOnRealPods go through sidecars in both modes and through a gateway, and are
// counted where the answers arrive. No order is lost.
func splitsOnRealPods(t *testing.T) {
	t.Parallel()
	clients := []client{
		{name: "redirected", mode: "redirect", url: throughService},
		{name: "explicit", mode: "explicit", url: throughPort},
		{name: "users", mode: "redirect", url: throughService, users: 312},
		{name: "visitors", mode: "explicit", url: throughPort, users: 156, cookies: true},
	}
	m := newMesh(t, "split", clients...)
	outside := client{name: "outside", url: throughGateway, header: "Host: " + m.namespace + ".example.com"}
	m.apply(strings.Replace(outside.manifest(), "plumbline.dev/inject-mode: ", "plumbline.dev/inject: disabled", 1))
	bare := client{name: "bare", url: throughService}
	m.apply(strings.Replace(bare.manifest(), "plumbline.dev/inject-mode: ", "plumbline.dev/inject: disabled", 1))
	m.rolledOut("bare")

	all := []string{"redirected", "explicit", "users", "visitors"}
	for _, step := range []struct {
		name string
		play func(*mesh)
	}{
		{"a tenth goes to the canary, drawn by request", (*mesh).aTenth},
		{"the gateway divides likewise", func(m *mesh) { m.gateway(outside) }},
		{"the split in the release changes the traffic", (*mesh).half},
		{"users stay where they are while a share grows", func(m *mesh) {
			m.ramp(clients[2], "type: Sticky, sticky: {header: x-user}")
		}},
		{"visitors without a name are given a cookie, and stay", func(m *mesh) {
			m.ramp(clients[3], "type: Sticky, sticky: {cookie: plb-visitor}")
		}},
		{"values of a header go where the release says", (*mesh).byHeader},
		{"a client without a proxy meets the stable version alone", func(m *mesh) { m.untouched(bare) }},
		{"what is not managed passes untouched", (*mesh).unmanaged},
		{"a Job ends when its own container has, that of a CronJob too", (*mesh).jobsEnd},
		{"a StatefulSet's pod that is replaced has its proxy again", (*mesh).memberReplaced},
		{"a canary without pods gets nothing, and its share back", (*mesh).clamped},
		{"pods come and go", (*mesh).churn},
		{"replicas of the discovery server end one after the other", (*mesh).replicasEnd},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			inner := *m
			inner.T = t
			step.play(&inner)
			inner.unharmed(all...)
		}) {
			return
		}
	}
}

func (m *mesh) aTenth() {
	before := map[string]visits{}
	r := m.split("{type: Percentage, percentages: {stable: 90, canary: 10}}")
	m.Logf("%s, confirmed by %s", r.Status.Split, r.Status.Confirmed.Count)
	for _, c := range []string{"redirected", "explicit"} {
		before[c] = m.now(c)
	}
	for c, b := range before {
		seen := m.counted(c, b, 780)
		m.shares(c, seen, 10)
		m.Logf("%s: %v", c, seen.Answered)
	}
	m.observed(10)
}

func (m *mesh) gateway(outside client) {
	m.rolledOut(outside.name)
	m.kubectl("rollout", "status", "deployment/plumbline-gateway", "-n", systemNamespace, "--timeout=90s")
	before := m.now(outside.name)
	seen := m.counted(outside.name, before, 780)
	m.shares(outside.name, seen, 10)
	if seen.Failed > 0 {
		m.Errorf("%d orders failed: %q", seen.Failed, seen.Failures)
	}
}

func (m *mesh) half() {
	m.kubectl("patch", "abrelease", "pay", "--type=merge", "-p", `{"spec":{"trafficSplit":{"percentages":{"stable":50,"canary":50}}}}`)
	m.release("at half, and confirmed", func(r *v1alpha1.ABRelease) bool {
		return r.Status.Split == "stable 50 / canary 50" && confirmed(r)
	})
	before := m.now("explicit")
	m.shares("explicit", m.counted("explicit", before, 625), 50)
}

// ramp raises the canary's share step by step. Nobody who has met the canary meets
// the stable version again, until the way back.
func (m *mesh) ramp(of client, split string) {
	client := of.name
	m.split(fmt.Sprintf("{%s, percentages: {stable: 99, canary: 1}}", split))
	round := uint64(312)
	m.counted(client, m.now(client), round) // everybody has been seen once
	before := m.now(client)
	for _, percent := range []int{10, 50, 100} {
		m.split(fmt.Sprintf("{%s, percentages: {stable: %d, canary: %d}}", split, 100-percent, percent))
		met := m.counted(client, m.now(client), round)
		m.sharesOf(client, met, float64(percent), uint64(of.users)) //nolint:gosec // not negative
	}
	after := m.now(client).since(before)
	if n := after.Moved["canary>stable"]; n > 0 {
		m.Errorf("%d users were moved back on the way up: %v", n, after.Moved)
	}
	if after.Moved["stable>canary"] == 0 {
		m.Errorf("nobody moved on the way to 100 %%: %v", after.Moved)
	}
	last := m.counted(client, m.now(client), round)
	if last.Answered["stable"] > 0 {
		m.Errorf("at 100 %% the stable version answers: %v", last.Answered)
	}
	m.split(fmt.Sprintf("{%s, percentages: {stable: 100, canary: 0}}", split))
	if back := m.counted(client, m.now(client), round); back.Answered["canary"] > 0 {
		m.Errorf("after the way back the canary answers: %v", back.Answered)
	}
}

func (m *mesh) byHeader() {
	m.split("{type: Header, headerMatch: {header: x-user, values: {user-7: canary}}, percentages: {stable: 100, canary: 0}}")
	seen := m.counted("users", m.now("users"), 936)
	// One of 312 users is mapped.
	if n := seen.Answered["canary"]; n < 2 || n > 4 {
		m.Errorf("the canary has %d of %d answers, want those of one user in 312", n, seen.answered())
	}
	if other := m.counted("redirected", m.now("redirected"), 100); other.Answered["canary"] > 0 {
		m.Errorf("who sends no header meets the canary: %v", other.Answered)
	}
}

func (m *mesh) untouched(bare client) {
	m.split("{type: Percentage, percentages: {stable: 0, canary: 100}}")
	seen := m.counted(bare.name, m.now(bare.name), 100)
	if seen.Answered["canary"] > 0 || seen.Failed > 0 {
		m.Errorf("a client without a proxy: %+v", seen)
	}
	if served := m.counted("redirected", m.now("redirected"), 100); served.Answered["stable"] > 0 {
		m.Errorf("one with a proxy meets the stable version: %v", served.Answered)
	}
}

// unmanaged Services are reached through the proxy as without one, while their pods
// get requests that are divided, too.
func (m *mesh) unmanaged() {
	for name, url := range map[string]string{"to-plain": "http://plain", "to-headless": "http://headless:8080", "to-host": "http://onhost"} {
		m.apply(client{name: name, mode: "redirect", url: url}.manifest())
		m.rolledOut(name)
		if seen := m.counted(name, m.now(name), 100); seen.Answered["canary"] > 0 || seen.Failed > 0 {
			m.Errorf("%s: %+v", name, seen)
		}
		m.kubectl("delete", "deployment", name)
	}
}

func (m *mesh) jobsEnd() {
	m.apply(strings.ReplaceAll(jobManifest, "MODE", "redirect") + strings.ReplaceAll(jobManifest, "MODE", "explicit") + cronJobManifest)
	m.kubectl("create", "job", "job-nightly", "--from=cronjob/nightly")
	m.apply(client{name: "member", mode: "redirect", url: throughService}.member()) // of the next step; it starts meanwhile
	for job, mode := range map[string]string{"job-redirect": "redirect", "job-explicit": "explicit", "job-nightly": "redirect"} {
		m.kubectl("wait", "--for=condition=complete", "job/"+job, "--timeout=90s")
		phases := m.kubectl("get", "pods", "-l", "job-name="+job+",plumbline.dev/proxy="+mode, "-o", "jsonpath={.items[*].status.phase}")
		if phases != string(corev1.PodSucceeded) {
			m.Errorf("%s: its pods with a proxy are %q, want one that has succeeded", job, phases)
		}
	}
}

func (m *mesh) clamped() {
	m.split("{type: Percentage, percentages: {stable: 50, canary: 50}}")
	m.kubectl("scale", "deployment/pay-canary", "--replicas=0")
	m.release("clamped", func(r *v1alpha1.ABRelease) bool { return len(r.Status.Clamped) == 1 && confirmed(r) })
	if seen := m.counted("redirected", m.now("redirected"), 200); seen.Answered["canary"] > 0 {
		m.Errorf("a version without pods answers: %v", seen.Answered)
	}
	m.kubectl("scale", "deployment/pay-canary", "--replicas=2")
	m.rolledOut("pay-canary")
	m.release("no longer clamped", func(r *v1alpha1.ABRelease) bool { return len(r.Status.Clamped) == 0 && confirmed(r) })
	m.shares("redirected", m.counted("redirected", m.now("redirected"), 625), 50)
}

func (m *mesh) churn() {
	for range 2 {
		for _, d := range []string{"pay-stable", "pay-canary"} {
			m.kubectl("rollout", "restart", "deployment/"+d)
			m.rolledOut(d)
		}
	}
}

// replicasEnd kills and deletes each replica while the release changes.
func (m *mesh) replicasEnd() {
	var pods corev1.PodList
	m.must(cluster.GetJSON(m.Context(), &pods, "pods", "-n", systemNamespace, "-l", "app.kubernetes.io/component=xds"))
	for i, p := range pods.Items {
		m.onNode("kill -KILL " + m.process("--pod-name="+p.Name))
		m.split(fmt.Sprintf("{type: Percentage, percentages: {stable: %d, canary: %d}}", 65-10*i, 35+10*i))
		m.kubectl("delete", "pod", p.Name, "-n", systemNamespace, "--wait=true")
		m.split(fmt.Sprintf("{type: Percentage, percentages: {stable: %d, canary: %d}}", 60-10*i, 40+10*i))
	}
	m.kubectl("rollout", "status", "deployment/plumbline-xds", "-n", systemNamespace, "--timeout=90s")
	m.shares("explicit", m.counted("explicit", m.now("explicit"), 625), 50)
}

// eventually is the harness' with the test's patience.
func (m *mesh) eventually(what string, check func(context.Context) (bool, string)) {
	m.Helper()
	m.must(harness.Eventually(m.Context(), what, patience, check))
}
