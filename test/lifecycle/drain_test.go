// SPDX-License-Identifier: Apache-2.0

//go:build lifecycle

package lifecycle

import (
	"context"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A drain cordons a node and asks for the eviction of its pods. The cluster has
// one node, so the replacement of a pod waits until the node is open again; that
// is a drain in which the second node is slow to come.
func TestDrainingANodeLosesNoCallAndLeavesTheLastReplica(t *testing.T) {
	pods := whole(t)
	s := newStream(t, "drain")
	node := onlyNode(t)
	for i, pod := range pods {
		other := pods[1-i]
		if i == 1 { // its neighbor was replaced
			other = replacement(t, pods)
		}
		disruptionAllowed(t)
		kubectl(t, "cordon", node)
		t.Cleanup(func() { uncordon(t, node) })
		must(t, evict(t.Context(), pod))
		if err := evict(t.Context(), other); !apierrors.IsTooManyRequests(err) {
			t.Errorf("evicting %s, the last that is ready: %v, want to be refused by the disruption budget", other, err)
		}
		eventually(t, pod+" is gone", func(ctx context.Context) (bool, string) {
			_, err := kube.CoreV1().Pods(systemNamespace).Get(ctx, pod, metav1.GetOptions{})
			return apierrors.IsNotFound(err), "it is there"
		})
		if err := evict(t.Context(), other); !apierrors.IsTooManyRequests(err) {
			t.Errorf("evicting %s while its neighbor's replacement waits for a node: %v, want to be refused", other, err)
		}
		s.more(rate) // with one alone
		uncordon(t, node)
		kubectl(t, "rollout", "status", deployment, "--timeout=4m")
		awaitPods(t, 2)
	}
	s.finishGraceful()
}

func evict(ctx context.Context, pod string) error {
	return kube.PolicyV1().Evictions(systemNamespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: systemNamespace}})
}

func onlyNode(t *testing.T) string {
	t.Helper()
	nodes, err := kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(nodes.Items) != 1 {
		t.Fatalf("%d nodes: use kubectl drain", len(nodes.Items))
	}
	return nodes.Items[0].Name
}

// uncordon also serves as a cleanup, after the test's context has ended.
func uncordon(t *testing.T, node string) {
	t.Helper()
	if _, err := cluster.Kubectl(context.WithoutCancel(t.Context()), "uncordon", node); err != nil {
		t.Error(err)
	}
}

// replacement is the pod that is not among the old ones.
func replacement(t *testing.T, old []string) string {
	t.Helper()
	for _, pod := range awaitPods(t, 2) {
		if pod != old[0] && pod != old[1] {
			return pod
		}
	}
	t.Fatalf("nobody has replaced one of %v", old)
	return ""
}

// disruptionAllowed waits until the budget has seen that both replicas are ready.
func disruptionAllowed(t *testing.T) {
	t.Helper()
	eventually(t, "the disruption budget lets one go", func(ctx context.Context) (bool, string) {
		budget, err := kube.PolicyV1().PodDisruptionBudgets(systemNamespace).Get(ctx, "plumbline-webhook", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return budget.Status.DisruptionsAllowed == 1, budget.Status.String()
	})
}
