// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// Proxy sends a GET to a port of a pod, and returns the body.
type Proxy func(ctx context.Context, target portforward.Target, path string, query map[string]string) ([]byte, error)

// AwayError says why no executor serves its records to the caller.
type AwayError struct {
	// System is the namespace in which Plumbline runs.
	System string
	// Pod is the executor that was asked; empty where none was.
	Pod string
	// Err is the answer of the API server or of the executor; nil where no executor runs.
	Err error
}

func (e *AwayError) Error() string {
	switch {
	case e.Pod != "":
		return fmt.Sprintf("pod %s does not serve its records (executor.evidence.serve of the chart): %v", e.Pod, e.Err)
	case e.Err != nil:
		return fmt.Sprintf("looking for an executor to read the records from: %v", e.Err)
	}
	return "no executor runs in " + e.System + " that the records could be read from"
}

// Unwrap returns the answer.
func (e *AwayError) Unwrap() error { return e.Err }

// OpenServed returns the store of an executor that runs and serves its records, which it does not by default.
// The error is an *AwayError without such an executor.
func OpenServed(ctx context.Context, c client.Reader, proxy Proxy, system string) (evidence.Store, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": "plumbline"}); err != nil {
		return nil, &AwayError{System: system, Err: err}
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !executesPlans(pod) || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		store := evidencehttp.Client{Get: func(ctx context.Context, path string, query map[string]string) ([]byte, error) {
			return proxy(ctx, portforward.Target{Namespace: system, Pod: pod.Name, Address: pod.Status.PodIP, Port: healthPort(pod)}, path, query)
		}}
		for _, err := range store.List(ctx, "no-such-chain") {
			if err != nil {
				return nil, &AwayError{System: system, Pod: pod.Name, Err: err}
			}
		}
		return store, nil
	}
	return nil, &AwayError{System: system}
}

// healthPort returns the port at which a pod serves its records beside its health.
func healthPort(pod *corev1.Pod) int {
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.Name == "health" {
				return int(p.ContainerPort)
			}
		}
	}
	return usualHealthPort
}

// usualHealthPort is that of the chart.
const usualHealthPort = 8081

// executesPlans tells whether a pod is an executor's, or that of an assessor which is one too.
func executesPlans(pod *corev1.Pod) bool {
	if pod.Labels["app.kubernetes.io/component"] == "executor" {
		return true
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.Contains(c.Args, "--role=assess,execute")
	})
}
