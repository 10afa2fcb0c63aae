// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// servedName is how records are called that are read through the executor.
const servedName = "the executor"

// servedEvidence is the store of a running executor. It has to serve its records,
// which it does not by default.
func servedEvidence(ctx context.Context, c *invocation.Cluster, system string) (evidence.Store, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": "plumbline"}); err != nil {
		return nil, fmt.Errorf("looking for an executor to read the records from (--evidence names another place): %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !carriesPlansOut(pod) || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		store := evidencehttp.Client{Get: func(ctx context.Context, path string, query map[string]string) ([]byte, error) {
			return c.Proxy(ctx, system, pod.Name, path, query)
		}}
		for _, err := range store.List(ctx, "no-such-chain") {
			if err != nil {
				return nil, fmt.Errorf("pod %s does not serve its records (executor.evidence.serve of the chart); say where they are with --evidence: %w", pod.Name, err)
			}
		}
		return store, nil
	}
	return nil, errors.New("no executor runs in " + system + " that the records could be read from; say where they are with --evidence")
}

// carriesPlansOut says whether a pod is an executor's, or that of an assessor which
// is one too.
func carriesPlansOut(pod *corev1.Pod) bool {
	if pod.Labels["app.kubernetes.io/component"] == "executor" {
		return true
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.Contains(c.Args, "--role=assess,execute")
	})
}
