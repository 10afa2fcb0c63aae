// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

// fitness says why a pod is not expected to answer: its node or itself is not Ready. A
// node is looked up once.
func (s *sources) fitness(ctx context.Context) func(*corev1.Pod) string {
	known := map[string]string{}
	return func(pod *corev1.Pod) string {
		name := pod.Spec.NodeName
		why, is := known[name]
		if !is && name != "" {
			why = s.unfitNode(ctx, name)
			known[name] = why
		}
		if why == "" && !podReady(pod) {
			why = "its pod is not Ready"
		}
		return why
	}
}

// unfitNode is empty for a node that is Ready, and for one of which nothing is known.
func (s *sources) unfitNode(ctx context.Context, name string) string {
	var node corev1.Node
	err := s.cache.Get(ctx, client.ObjectKey{Name: name}, &node)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("its node %s is gone", name)
	case err != nil:
		return ""
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if !ready {
		return fmt.Sprintf("its node %s is not Ready", name)
	}
	return ""
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// around counts the pods of a namespace that run, those of them that have a proxy, and
// those whose proxy is among the wanted ones.
func around(pods []corev1.Pod, scope func(*corev1.Pod) (Scope, bool), wanted []acknowledged.Wanted) (p traffic.Population) {
	routing := make(map[string]bool, len(wanted))
	for _, w := range wanted {
		routing[w.UID] = true
	}
	for i := range pods {
		if pods[i].Status.Phase != corev1.PodRunning || pods[i].DeletionTimestamp != nil {
			continue
		}
		p.Pods++
		if _, is := scope(&pods[i]); is {
			p.Proxied++
		}
		if routing[string(pods[i].UID)] {
			p.Routing++
		}
	}
	return p
}
