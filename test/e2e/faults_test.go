// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// proxiesFail in the namespace of one client, which costs no other an order.
func proxiesFail(t *testing.T) {
	t.Parallel()
	m := newFaultyMesh(t, "proxies")
	m.play(others, []step{
		{"a proxy that is cut off is named, and the others are served", sometimes((*mesh).cutOff)},
		{"a proxy that is stopped is named, and the others are served", sometimes((*mesh).stopped)},
		{"a proxy that is killed comes back", (*mesh).killed},
		{"a pod that is replaced gets a proxy, and its split", (*mesh).replaced},
	})
}

// What happens to the control plane and to the API server costs no order of anybody
// else. PLUMBLINE_OUTAGE is how long the discovery server is away, such as 10m; 20 s by
// default, or as long as the pods of both versions take to move. If it is as long as the life of a token can be, nobody comes back with the
// one that it had.
func TestSplitsOutliveFaults(t *testing.T) {
	if outage(t) >= shortestToken {
		upgrade(t, "mesh.inject.tokenLifetime="+shortestToken.String())
	}
	newFaultyMesh(t, "faults").play(others, []step{
		{"replicas of the discovery server end one after the other", (*mesh).replicasEnd},
		{"the split and the canary change while all replicas are killed", (*mesh).allAtOnce},
		{"the discovery server is away", (*mesh).serverAway},
		{"the API server is away", (*mesh).apiServerAway},
		{"the certificate is made anew", (*mesh).certificateAnew},
		{"the release of Plumbline is upgraded", (*mesh).upgraded},
	})
}

// discoveryServers are the pods of the discovery server.
var discoveryServers = runtimeclient.MatchingLabels{"app.kubernetes.io/component": "xds"}

// others are the clients that a fault must not harm; the victim is one more.
var others = []string{"redirected", "explicit", "outside"}

func newFaultyMesh(t *testing.T, name string) *mesh {
	t.Helper()
	m := newMesh(t, name,
		client{name: "redirected", mode: "redirect", url: throughService, besides: true},
		client{name: "explicit", mode: "explicit", url: throughPort, besides: true},
		client{name: "victim", mode: "explicit", url: throughPort},
	)
	m.outside(true)
	m.split("{type: Percentage, percentages: {stable: 80, canary: 20}}")
	return m
}

// onNode runs a command where the cluster's processes are.
func (m *mesh) onNode(command string) string {
	m.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(m.Context()), "bin/cluster", "exec", "--name", clusterName, "--", "sh", "-c", command).CombinedOutput()
	if err != nil {
		m.Fatalf("%s: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// process finds the one whose command line has all of the words.
func (m *mesh) process(words ...string) string {
	m.Helper()
	command := "for p in /proc/[0-9]*; do c=$({ tr '\\0' ' ' < $p/cmdline; } 2>/dev/null) || continue; case $c in sh*) continue;; esac; "
	for _, w := range words {
		command += fmt.Sprintf("case $c in *%s*) ;; *) continue;; esac; ", w)
	}
	pid := m.onNode(command + "echo ${p#/proc/}; done")
	if pid == "" || strings.ContainsAny(pid, " \n") {
		m.Fatalf("processes with %q: %q, want one", words, pid)
	}
	return pid
}

// proxy is the process of a client's Envoy.
func (m *mesh) proxy(client string) (*corev1.Pod, string) {
	m.Helper()
	pod, err := m.pod(m.Context(), client)
	m.must(err)
	return pod, m.process("envoy", string(pod.UID))
}

// outOfSync waits until a new split is acknowledged by all but one client's proxy, which
// the status names.
func (m *mesh) outOfSync(client string, canary int) {
	m.Helper()
	pod, err := m.pod(m.Context(), client)
	m.must(err)
	m.kubectl("patch", "abrelease", "pay", "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"trafficSplit":{"percentages":{"stable":%d,"canary":%d}}}}`, 100-canary, canary))
	split := fmt.Sprintf("stable %d / canary %d", 100-canary, canary)
	r := m.release("acknowledged by all but "+pod.Name, func(r *v1alpha1.ABRelease) bool {
		c := r.Status.Acknowledged
		return r.Status.Split == split && c != nil && c.Knowledge == v1alpha1.AcknowledgedUnknown && c.Proxies > 1 &&
			c.AcknowledgedProxies == c.Proxies-1 && len(c.OutOfSync) == 1 && c.OutOfSync[0].Name == m.namespace+"/"+pod.Name
	})
	m.Logf("%s, %s: %s", r.Status.Acknowledged.Count, r.Status.Acknowledged.OutOfSync[0].Name, r.Status.Acknowledged.OutOfSync[0].Why)
	m.shares("explicit", m.counted("explicit", m.now("explicit"), 470), float64(canary))
}

// cutOff loses what the proxy and the discovery server send each other.
func (m *mesh) cutOff() {
	_, pid := m.proxy("victim")
	rule := "nsenter -t " + pid + " -n iptables -w %s OUTPUT -p tcp --dport 15010 -j DROP"
	m.onNode(fmt.Sprintf(rule, "-I"))
	healed := false
	defer func() {
		if !healed {
			m.onNode(fmt.Sprintf(rule, "-D"))
		}
	}()
	m.outOfSync("victim", 40)
	m.unharmed("victim") // it goes on with what it has
	m.onNode(fmt.Sprintf(rule, "-D"))
	healed = true
	m.release("acknowledged by all", acknowledged)
}

// stopped leaves the proxy without a processor.
func (m *mesh) stopped() {
	_, pid := m.proxy("victim")
	m.onNode("kill -STOP " + pid)
	defer m.onNode("kill -CONT " + pid)
	m.outOfSync("victim", 60)
	m.onNode("kill -CONT " + pid)
	m.release("acknowledged by all", acknowledged)
}

func (m *mesh) killed() {
	m.split("{type: Percentage, percentages: {stable: 40, canary: 60}}")
	pod, pid := m.proxy("victim")
	m.onNode("kill -KILL " + pid)
	m.eventually("the proxy runs again", func(ctx context.Context) (bool, string) {
		var now corev1.Pod
		if err := cluster.Read(ctx, &now, m.namespace, pod.Name); err != nil {
			return false, err.Error()
		}
		for _, s := range now.Status.InitContainerStatuses {
			if s.Name == "plumbline-proxy" {
				return s.RestartCount > 0 && s.Ready && s.Started != nil && *s.Started, fmt.Sprintf("%+v", s)
			}
		}
		return false, "no proxy"
	})
	m.release("acknowledged by all", acknowledged)
	m.shares("victim", m.counted("victim", m.now("victim"), 200), 60)
}

// replaced deletes a client's pod. It orders on until its own container is stopped, and
// its proxy ends after that.
func (m *mesh) replaced() {
	before := m.now("victim")
	pod, err := m.pod(m.Context(), "victim")
	m.must(err)
	m.kubectl("delete", "pod", pod.Name, "--wait=false")
	told, err := m.visitsOf(m.Context(), pod.Name)
	m.must(err)
	last := told
	m.eventually("the pod is gone", func(ctx context.Context) (bool, string) {
		soon, cancel := context.WithTimeout(ctx, 2*time.Second) // a pod that has just gone answers nothing at all
		defer cancel()
		if v, err := m.visitsOf(soon, pod.Name); err == nil {
			last = v
		}
		left, err := cluster.Kubectl(ctx, "get", "pod", pod.Name, "-n", m.namespace, "--ignore-not-found", "-o", "name")
		return err == nil && left == "", left
	})
	if n := last.Started - told.Started; n == 0 {
		m.Errorf("while its pod ended it began no order, want some: %+v", last)
	}
	if end := last.since(before); end.Failed > 0 {
		m.Errorf("since the pod was deleted %d of %d orders failed: %q", end.Failed, end.Started, end.Failures)
	}
	m.rolledOut("victim")
	m.release("acknowledged by all", acknowledged)
	m.shares("victim", m.counted("victim", m.now("victim"), 200), 60)
	m.unharmed("victim") // the new one, from its first order on
}

// replicasEnd kills and deletes each replica while the release changes.
func (m *mesh) replicasEnd() {
	var pods corev1.PodList
	m.must(cluster.ReadAll(m.Context(), &pods, systemNamespace, discoveryServers))
	for i, p := range pods.Items {
		m.onNode("kill -KILL " + m.process("--pod-name="+p.Name))
		m.split(fmt.Sprintf("{type: Percentage, percentages: {stable: %d, canary: %d}}", 65-10*i, 35+10*i))
		m.kubectl("delete", "pod", p.Name, "-n", systemNamespace, "--wait=true")
		m.split(fmt.Sprintf("{type: Percentage, percentages: {stable: %d, canary: %d}}", 60-10*i, 40+10*i))
	}
	m.kubectl("rollout", "status", "deployment/plumbline-xds", "-n", systemNamespace, "--timeout=90s")
	m.shares("explicit", m.counted("explicit", m.now("explicit"), 625), 50)
}

// apiServerAway stops it for less than after which a node counts as lost.
func (m *mesh) apiServerAway() {
	pid := m.process("kube-apiserver", "--etcd-servers")
	m.onNode("kill -STOP " + pid + "; sleep 10; kill -CONT " + pid)
	m.eventually("the API server answers", func(ctx context.Context) (bool, string) {
		out, err := cluster.Kubectl(ctx, "get", "--raw", "/readyz")
		return err == nil, fmt.Sprint(out, err)
	})
	m.split("{type: Percentage, percentages: {stable: 50, canary: 50}}")
}

// certificateAnew deletes certificate and authority. Who runs and who comes is served
// with what was published, and later with what is.
func (m *mesh) certificateAnew() {
	m.kubectl("delete", "secret", "plumbline-xds", "-n", systemNamespace)
	m.eventually("there is another certificate", func(ctx context.Context) (bool, string) {
		out, err := cluster.Kubectl(ctx, "get", "secret", "plumbline-xds", "-n", systemNamespace, "-o", `jsonpath={.data.tls\.crt}`)
		return err == nil && out != "", fmt.Sprint(out, err)
	})
	m.kubectl("rollout", "restart", "deployment/victim")
	m.rolledOut("victim")
	m.split("{type: Percentage, percentages: {stable: 90, canary: 10}}")
	m.kubectl("rollout", "restart", "deployment/plumbline-xds", "-n", systemNamespace)
	m.kubectl("rollout", "status", "deployment/plumbline-xds", "-n", systemNamespace, "--timeout=120s")
	m.split("{type: Percentage, percentages: {stable: 20, canary: 80}}")
}

func (m *mesh) upgraded() {
	upgrade(m.T, "xds.podAnnotations.upgraded=yes", "gateway.podAnnotations.upgraded=yes", "webhook.podAnnotations.upgraded=yes")
	m.split("{type: Percentage, percentages: {stable: 50, canary: 50}}")
	for c, seen := range m.countedAll(470, others...) {
		m.shares(c, seen, 50)
	}
}

// upgrade the installation to the same chart with other values.
func upgrade(t *testing.T, values ...string) {
	t.Helper()
	args := []string{"helm", "upgrade", "plumbline", "charts/plumbline", "--reuse-values", "-n", systemNamespace, "--wait", "--timeout=3m"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	if _, err := cluster.Run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
}
