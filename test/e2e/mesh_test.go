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
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

const (
	throughService = "http://pay"
	throughPort    = "http://127.0.0.1:8001"
	throughGateway = "http://plumbline-gateway.plumbline-system"
)

// splitsByShare go through sidecars in both modes and through a gateway, and are counted
// where the answers arrive. No order is lost, here as in splitsBesidePods.
func splitsByShare(t *testing.T) {
	t.Parallel()
	users := client{name: "users", mode: "redirect", url: throughService, users: 312}
	m := newMesh(t, "split",
		client{name: "redirected", mode: "redirect", url: throughService},
		client{name: "explicit", mode: "explicit", url: throughPort},
		users,
	)
	outside := m.outside(false)
	m.play([]string{"redirected", "explicit", "users"}, []step{
		{"a tenth goes to the canary, drawn by request, and the gateway divides likewise", func(m *mesh) { m.aTenth(outside) }},
		{"the split in the release changes the traffic", (*mesh).half},
		{"users stay where they are while a share grows", func(m *mesh) {
			m.ramp(users, "type: Sticky, sticky: {header: x-user}")
		}},
		{"values of a header go where the release says", sometimes((*mesh).byHeader)},
		{"a canary without pods gets nothing, and its share back", (*mesh).clamped},
	})
}

// splitsBesidePods are those of pods that come and go, that have no proxy, and that end.
func splitsBesidePods(t *testing.T) {
	t.Parallel()
	visitors := client{name: "visitors", mode: "explicit", url: throughPort, users: 156, cookies: true}
	m := newMesh(t, "pods",
		client{name: "redirected", mode: "redirect", url: throughService},
		client{name: "explicit", mode: "explicit", url: throughPort},
		visitors,
	)
	bare := client{name: "bare", url: throughService}
	m.apply(bare.withoutProxy() + unmanagedManifest)
	m.rolledOut("bare")
	m.play([]string{"redirected", "explicit", "visitors"}, []step{
		{"visitors without a name are given a cookie, and stay", func(m *mesh) {
			m.ramp(visitors, "type: Sticky, sticky: {cookie: plb-visitor}")
		}},
		{"a client without a proxy meets the stable version alone", func(m *mesh) { m.untouched(bare) }},
		{"what is not managed passes untouched", sometimes((*mesh).unmanaged)},
		{"a Job ends when its own container has, that of a CronJob too", (*mesh).jobsEnd},
		{"a StatefulSet's pod that is replaced has its proxy again", (*mesh).memberReplaced},
		{"pods come and go", (*mesh).churn},
	})
}

// step is a part of a story about a mesh.
type step struct {
	name string
	play func(*mesh)
}

// sometimes makes a step share rotations with others.
func sometimes(play func(*mesh)) func(*mesh) {
	return func(m *mesh) {
		rotation.Share(m.T, 3)
		play(m)
	}
}

// play takes the steps in order, until one fails. None may cost one of the clients an
// order.
func (m *mesh) play(unharmed []string, steps []step) {
	for _, s := range steps {
		if !m.Run(s.name, func(t *testing.T) {
			inner := *m
			inner.T = t
			s.play(&inner)
			inner.unharmed(unharmed...)
		}) {
			return
		}
	}
}

// aTenth is counted for all clients at the same time.
func (m *mesh) aTenth(outside client) {
	r := m.split("{type: Percentage, percentages: {stable: 90, canary: 10}}")
	m.Logf("%s, acknowledged by %s", r.Status.Split, r.Status.Acknowledged.Count)
	for c, seen := range m.countedAll(780, "redirected", "explicit", outside.name) {
		m.shares(c, seen, 10)
		m.Logf("%s: %v", c, seen.Answered)
	}
	m.unharmed(outside.name)
	m.observed(10)
}

func (m *mesh) half() {
	m.kubectl("patch", "abrelease", "pay", "--type=merge", "-p", `{"spec":{"trafficSplit":{"percentages":{"stable":50,"canary":50}}}}`)
	m.release("at half, and acknowledged", func(r *v1alpha1.ABRelease) bool {
		return r.Status.Split == "stable 50 / canary 50" && acknowledged(r)
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
		// At 100 % the bound is nothing.
		m.sharesOf(client, met, float64(percent), uint64(of.users)) //nolint:gosec // not negative
	}
	after := m.now(client).since(before)
	if n := after.Moved["canary>stable"]; n > 0 {
		m.Errorf("%d users were moved back on the way up: %v", n, after.Moved)
	}
	if after.Moved["stable>canary"] == 0 {
		m.Errorf("nobody moved on the way to 100 %%: %v", after.Moved)
	}
	m.split(fmt.Sprintf("{%s, percentages: {stable: 100, canary: 0}}", split))
	if back := m.counted(client, m.now(client), round); back.Answered["canary"] > 0 {
		m.Errorf("after the way back the canary answers: %v", back.Answered)
	}
}

func (m *mesh) byHeader() {
	m.split("{type: Header, headerMatch: {header: x-user, values: {user-7: canary}}, percentages: {stable: 100, canary: 0}}")
	seen := m.counted("users", m.now("users"), 936)
	// One of 312 users is mapped; the count begins and ends somewhere in a round.
	rounds := seen.answered() / 312
	if n := seen.Answered["canary"]; n+1 < rounds || n > rounds+2 {
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
	var names []string
	for name, url := range map[string]string{"to-plain": "http://plain", "to-headless": "http://headless:8080", "to-host": "http://onhost"} {
		m.apply(client{name: name, mode: "redirect", url: url}.manifest())
		names = append(names, name)
	}
	m.rolledOut(names...)
	for name, seen := range m.countedAll(100, names...) {
		if seen.Answered["canary"] > 0 || seen.Failed > 0 {
			m.Errorf("%s: %+v", name, seen)
		}
		m.kubectl("delete", "deployment", name, "--wait=false")
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
	m.release("clamped", func(r *v1alpha1.ABRelease) bool { return len(r.Status.Clamped) == 1 && acknowledged(r) })
	if seen := m.counted("redirected", m.now("redirected"), 200); seen.Answered["canary"] > 0 {
		m.Errorf("a version without pods answers: %v", seen.Answered)
	}
	m.kubectl("scale", "deployment/pay-canary", "--replicas=2")
	m.rolledOut("pay-canary")
	m.release("no longer clamped", func(r *v1alpha1.ABRelease) bool { return len(r.Status.Clamped) == 0 && acknowledged(r) })
	m.shares("redirected", m.counted("redirected", m.now("redirected"), 625), 50)
}

func (m *mesh) churn() {
	m.split("{type: Percentage, percentages: {stable: 50, canary: 50}}")
	for range 2 {
		m.kubectl("rollout", "restart", "deployment/pay-stable", "deployment/pay-canary")
		m.rolledOut("pay-stable", "pay-canary")
	}
}

// eventually is the harness' with the test's patience.
func (m *mesh) eventually(what string, check func(context.Context) (bool, string)) {
	m.Helper()
	m.must(harness.Eventually(m.Context(), what, patience, check))
}
