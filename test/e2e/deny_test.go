// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const denyManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: ClusterSpecGuard
metadata: {name: NS}
spec:
  mode: Deny
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  resources: [{apiVersion: apps/v1, kind: Deployment}]
  trustedWriters: {serviceAccounts: [{namespace: NS, name: ci}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: firefighters, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plumbline-break-glass}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
`

// allOfOurs selects what the chart has installed.
const allOfOurs = "app.kubernetes.io/name=plumbline"

func TestDenyHoldsWithAllOfOurPodsDead(t *testing.T) {
	s := newScope(t, "deny")
	s.deploy()
	t.Cleanup(func() { s.systemKubectl("delete", "clusterspecguard", s.namespace, "--ignore-not-found") })
	s.must(cluster.Apply(t.Context(), strings.ReplaceAll(denyManifest, "NS", s.namespace)))
	s.systemKubectl("wait", "--for=condition=Enforced", "clusterspecguard/"+s.namespace, "--timeout=60s")

	foreign := map[string][]string{
		"a foreign change":       {"set", "image", "deployment/web", "app=docker.io/plumbline/shop:hotfix"},
		"a foreign scale":        {"scale", "deployment/web", "--replicas=3"},
		"a foreign delete":       {"delete", "deployment/web"},
		"a foreign twin":         {"create", "deployment", "twin", "--image=docker.io/plumbline/shop:dev"},
		"a reason without right": {"patch", "deployment", "web", "--type=merge", "-p", reasonAndPause("INC-1")},
	}
	for name, args := range foreign {
		t.Run(name+" is refused", func(t *testing.T) { s.refused("alice", args...) })
	}

	t.Run("with our pods dead", func(t *testing.T) {
		var ours appsv1.DeploymentList
		s.must(cluster.ReadAll(t.Context(), &ours, systemNamespace, runtimeclient.MatchingLabels{"app.kubernetes.io/name": "plumbline"}))
		t.Cleanup(func() {
			for i := range ours.Items {
				s.systemKubectl("scale", "deployment/"+ours.Items[i].Name, fmt.Sprintf("--replicas=%d", *ours.Items[i].Spec.Replicas))
			}
			for i := range ours.Items {
				s.systemKubectl("rollout", "status", "deployment/"+ours.Items[i].Name, "--timeout=90s")
			}
		})
		s.systemKubectl("scale", "deployment", "-l", allOfOurs, "--replicas=0")
		s.systemKubectl("wait", "--for=delete", "pod", "-l", allOfOurs, "--timeout=90s")
		for name, args := range foreign {
			t.Run(name+" is refused", func(t *testing.T) { s.refused("alice", args...) })
		}
		s.must(s.ci.Apply(t.Context(), strings.Replace(workloadManifest, "value: web", "value: web2", 1), "-n", s.namespace))
	})

	s.await("CI's change made meanwhile is authorized", func(b *v1alpha1.Baseline) bool {
		return inSync(b) && b.Spec.Authorized != nil && b.Spec.Authorized.Number == 2
	})
	s.as("bob", "patch", "deployment", "web", "--type=merge", "-p", reasonAndPause("INC-7: bad flag"))
	s.awaitFinding("/spec/paused", "bob")
	if out := s.kubectl("plumbline", "blame", "deployment/web"); !strings.Contains(out, "bob") || !strings.Contains(out, "INC-7: bad flag") {
		t.Errorf("blame does not tell who broke the glass and why:\n%s", out)
	}
}

func TestTheDoctorFindsNothingWrongWithTheInstallation(t *testing.T) {
	// The records of this installation go with its pod, which its values say is meant.
	out, err := cluster.Kubectl(t.Context(), "plumbline", "doctor", "--fail-on=warning", "--skip=executor.evidence")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// reasonAndPause changes the object and gives a reason in one write.
func reasonAndPause(reason string) string {
	return `{"metadata":{"annotations":{"plumbline.dev/break-glass-reason":"` + reason + `"}},"spec":{"paused":true}}`
}

// refused fails the test unless the policy refuses what the user tries.
func (s *scope) refused(user string, args ...string) {
	s.Helper()
	result, err := cluster.Run(s.Context(), append(append([]string{"kubectl"}, args...), "-n", s.namespace, "--as", user))
	if err == nil || !strings.Contains(result.Output(), "guards with mode Deny") {
		s.Errorf("%s %q: err %v, output\n%s", user, args, err, result.Output())
	}
}

// systemKubectl runs as admin in Plumbline's own namespace.
func (s *scope) systemKubectl(args ...string) {
	s.Helper()
	// A cleanup runs after the test's own context has ended.
	_, err := cluster.Kubectl(context.WithoutCancel(s.Context()), append(args, "-n", systemNamespace)...)
	s.must(err)
}
