// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
)

// ExecutorTargets is the ClusterRole by which the owner of a namespace lets the executor write workloads.
const ExecutorTargets = "plumbline-executor-targets"

// Binding says whether the executor may write workloads in the namespace of a release.
type Binding struct {
	Exists bool
	// Unread says why that is not known; empty if it is known.
	Unread string
}

// NeedsExecutor says whether a release needs writes of the executor.
func NeedsExecutor(r *v1alpha1.ABRelease) bool {
	for i := range r.Spec.Variations {
		if v := &r.Spec.Variations[i]; v.Clone != nil || v.Group != nil {
			return true
		}
	}
	return r.Spec.HasFreshControl() || r.Spec.Rollout != nil && r.Spec.Rollout.Fallback == v1alpha1.FallbackHoldMinReplicas
}

// control makes the body of the fresh control, which tells whether the Service selects its pods.
func (l *linter) control() {
	if !l.release.Spec.HasFreshControl() {
		return
	}
	seen := clone.WithControl(l.release, v1alpha1.FreshControl)
	l.clone(seen, &seen.Spec.Variations[len(seen.Spec.Variations)-1])
}

// clone makes the body that the executor would write, which tells whether the Service selects its pods.
func (l *linter) clone(release *v1alpha1.ABRelease, v *v1alpha1.Variation) {
	stable := l.facts.Workloads[release.Spec.Stable]
	if stable.Object == nil || l.facts.ServiceUnread != "" {
		return // the workload and the Service have findings of their own
	}
	refused := (*clone.RefusedError)(nil)
	if _, err := clone.BodyOf(release, v.Name, stable.Object, l.facts.ServiceSelector, 1); errors.As(err, &refused) {
		l.find(refused.Field, refused.Message, "correct the variation")
	}
}

// executor finds a namespace whose owner has not let the executor in.
func (l *linter) executor() {
	if !NeedsExecutor(l.release) {
		return
	}
	switch namespace := l.release.Namespace; {
	case l.facts.Executor.Unread != "":
		l.unread = append(l.unread, "RoleBindings of namespace "+namespace+": "+l.facts.Executor.Unread)
	case !l.facts.Executor.Exists:
		l.find("spec", fmt.Sprintf("the executor may not write workloads in namespace %s, and the release needs that", namespace),
			fmt.Sprintf("add the namespace to the chart value executor.namespaces, or: kubectl create rolebinding %s -n %s --clusterrole=%s --serviceaccount=plumbline-system:plumbline-executor", ExecutorTargets, namespace, ExecutorTargets))
	}
}
