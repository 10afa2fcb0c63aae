// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// outage is how long the discovery server is away.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PLUMBLINE_OUTAGE")
	if text == "" {
		return 20 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("PLUMBLINE_OUTAGE: %v", err)
	}
	return d
}

const (
	// stepEvery is how often the split changes while all changes at once.
	stepEvery = 2 * time.Second
	// stepsOfRound are as many as it takes until the canary has come back.
	stepsOfRound = 6
	// ejected is for how many seconds a proxy may leave out an endpoint that was away for some seconds.
	ejected = 10
)

// allAtOnce changes the split every two seconds. Meanwhile both replicas of the discovery server are
// killed, and the canary is restarted, scaled to zero and back.
func (m *mesh) allAtOnce() {
	rounds := 1
	if outage(m.T) >= shortestToken {
		rounds = 10
	}
	ticks := time.NewTicker(stepEvery)
	defer ticks.Stop()
	for round := range rounds {
		if round > 0 { // a kubelet has a container that was killed wait for ever longer
			m.kubectl("delete", "pod", "-n", systemNamespace, "-l", "app.kubernetes.io/component=xds", "--wait=true")
			m.serversReady()
		}
		for i, happens := range [stepsOfRound]func(){
			func() {}, m.killServers, func() { m.kubectl("rollout", "restart", "deployment/pay-canary") },
			func() {}, func() { m.kubectl("scale", "deployment/pay-canary", "--replicas=0") },
			func() { m.kubectl("scale", "deployment/pay-canary", "--replicas=2") },
		} {
			happens()
			m.kubectl("patch", "abrelease", "pay", "--type=merge", "-p",
				fmt.Sprintf(`{"spec":{"trafficSplit":{"percentages":{"stable":%d,"canary":%d}}}}`, 90-10*i, 10+10*i))
			<-ticks.C
		}
		m.rolledOut("pay-canary")
	}
	m.serversReady()
	m.release("no longer clamped", func(r *v1alpha1.ABRelease) bool {
		return r.Status.Split == "stable 40 / canary 60" && len(r.Status.Clamped) == 0 && acknowledged(r)
	})
	m.shares("explicit", m.counted("explicit", m.now("explicit"), 200), 60)
}

// killServers kills all replicas in the middle of what they do.
func (m *mesh) killServers() {
	m.Helper()
	var servers corev1.PodList
	m.must(cluster.ReadAll(m.Context(), &servers, systemNamespace, discoveryServers))
	for _, p := range servers.Items {
		m.onNode("kill -KILL " + m.process("--pod-name="+p.Name))
	}
}

func (m *mesh) serversReady() {
	m.Helper()
	m.kubectl("rollout", "status", "deployment/plumbline-xds", "-n", systemNamespace, "--timeout=120s")
}

// serverAway kills all replicas, and lets none start.
func (m *mesh) serverAway() {
	m.split("{type: Percentage, percentages: {stable: 50, canary: 50}}")
	held := m.tokens()
	m.killServers()
	m.kubectl("scale", "deployment/plumbline-xds", "-n", systemNamespace, "--replicas=0")
	m.kubectl("wait", "--for=delete", "pod", "-n", systemNamespace, "-l", "app.kubernetes.io/component=xds", "--timeout=90s")
	before := m.now("explicit")
	m.canarySwallows()
	m.applicationsRestart()
	m.canaryMoves()
	m.stableMoves()
	seconds := outage(m.T).Seconds()
	m.Logf("away for the time of %.0f orders", ordersPerSecond*seconds)
	m.over("explicit", before, uint64(ordersPerSecond*seconds))
	m.kubectl("scale", "deployment/plumbline-xds", "-n", systemNamespace, "--replicas=2")
	m.serversReady()
	m.split("{type: Percentage, percentages: {stable: 70, canary: 30}}")
	m.renewed(held)
	m.shares("redirected", m.counted("redirected", m.now("redirected"), 470), 30)
	for _, c := range others {
		for kind, v := range m.now(c).kinds() {
			if v.Answered["stable"] == 0 || v.Answered["canary"] == 0 {
				m.Errorf("%s, %s: one version was never met: %v", c, kind, v.Answered)
			}
		}
	}
}

// podsOf are the two of a version that run.
func (m *mesh) podsOf(track string) (pods []corev1.Pod) {
	m.Helper()
	var list corev1.PodList
	m.must(cluster.ReadAll(m.Context(), &list, m.namespace, runtimeclient.MatchingLabels{"app": "pay", "track": track}))
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	if len(pods) != 2 {
		m.Fatalf("the %s version has %d pods, want 2", track, len(pods))
	}
	return pods
}

// application is the process of a pod that answers orders.
func (m *mesh) application(pod *corev1.Pod) string {
	m.Helper()
	pid := m.onNode("for p in /proc/[0-9]*; do grep -q pod" + string(pod.UID) + " $p/cgroup 2>/dev/null || continue; " +
		"case $(tr '\\0' ' ' 2>/dev/null < $p/cmdline) in *shop*) echo ${p#/proc/};; esac; done")
	if pid == "" || strings.ContainsAny(pid, " \n") {
		m.Fatalf("the applications of %s are the processes %q, want one", pod.Name, pid)
	}
	return pid
}

// restarted waits until the application of a pod is another one than before.
func (m *mesh) restarted(pod *corev1.Pod) {
	m.Helper()
	m.eventually(pod.Name+" has restarted", func(ctx context.Context) (bool, string) {
		var now corev1.Pod
		if err := cluster.Read(ctx, &now, m.namespace, pod.Name); err != nil {
			return false, err.Error()
		}
		is, was := now.Status.ContainerStatuses[0], pod.Status.ContainerStatuses[0]
		return is.RestartCount > was.RestartCount && is.Ready, fmt.Sprintf("%+v", is)
	})
}

// canarySwallows has one pod of the canary swallow what begins a connection, without a reset. Its
// application restarts, so that it has no connection from before. The other pod has the share.
func (m *mesh) canarySwallows() {
	m.Helper()
	pod := &m.podsOf("canary")[0]
	rule := func(pid, how string) string {
		return "nsenter -t " + pid + " -n iptables -w " + how + " INPUT -p tcp --dport 8080 --syn -j DROP"
	}
	pid := m.application(pod)
	m.onNode(rule(pid, "-I") + "; kill -TERM " + pid)
	m.shares("explicit", m.counted("explicit", m.now("explicit"), 200), 50)
	m.onNode(rule(m.application(pod), "-D"))
	m.restarted(pod)
	m.unharmed(others...)
}

// applicationsRestart in a pod of each version while the API server is away too, and then in the other
// pod of the stable version. Proxies ask an endpoint that was away again when its ejection is over, so
// the second one of the stable version waits for that.
func (m *mesh) applicationsRestart() {
	m.Helper()
	stable, canary := m.podsOf("stable"), m.podsOf("canary")
	server := m.process("kube-apiserver", "--etcd-servers")
	m.onNode("kill -STOP " + server + "; kill -TERM " + m.application(&stable[0]) + "; sleep 3; kill -TERM " + m.application(&canary[1]) +
		"; sleep 3; kill -CONT " + server)
	m.restarted(&stable[0])
	m.restarted(&canary[1])
	m.counted("explicit", m.now("explicit"), ordersPerSecond*ejected)
	m.onNode("kill -TERM " + m.application(&stable[1]))
	m.restarted(&stable[1])
	m.unharmed(others...)
}

// canaryMoves: one of its pods is replaced, then both are, and proxies know the new address of none.
// No order is lost, and the stable version has the share.
func (m *mesh) canaryMoves() {
	m.Helper()
	m.kubectl("delete", "pod", m.podsOf("canary")[0].Name, "--wait=true")
	m.shares("explicit", m.counted("explicit", m.now("explicit"), 200), 50)
	m.kubectl("scale", "deployment/pay-canary", "--replicas=0")
	m.kubectl("wait", "--for=delete", "pod", "-l", "app=pay,track=canary", "--timeout=90s")
	if seen := m.counted("redirected", m.now("redirected"), 200); seen.Answered["canary"] > 0 {
		m.Errorf("a version without pods answers: %v", seen.Answered)
	}
	m.kubectl("scale", "deployment/pay-canary", "--replicas=2")
	m.rolledOut("pay-canary")
	m.unharmed(others...)
}

// stableMoves: one of its pods is replaced, so that proxies know one that is there.
func (m *mesh) stableMoves() {
	m.Helper()
	m.kubectl("delete", "pod", m.podsOf("stable")[0].Name, "--wait=true")
	m.unharmed(others...)
}

// over waits until a client has so many answers since an earlier look, however long that takes.
func (m *mesh) over(client string, before visits, answers uint64) {
	m.Helper()
	for got := m.now(client).since(before).answered(); got < answers; {
		step := min(answers-got, 1000)
		got += m.counted(client, m.now(client), step).answered()
	}
	if v := m.now(client).since(before); v.Failed > 0 {
		m.Errorf("%d orders failed meanwhile", v.Failed)
	}
}
