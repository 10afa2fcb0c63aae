// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// labelComponent names the component that an object belongs to, as for its
// severity.
const labelComponent = "app.kubernetes.io/name"

// subject is one guarded object, as its Baseline has it and as it is.
type subject struct {
	baseline *v1alpha1.Baseline
	key      kube.Key
	// object is nil when it is absent, or when unknown says why nobody knows.
	object  *kube.Object
	unknown error
}

func (g *gatherer) look(ctx context.Context, b *v1alpha1.Baseline) *subject {
	gvk := canon.ParseGVK(b.Spec.Target.APIVersion, b.Spec.Target.Kind)
	s := &subject{baseline: b, key: kube.Key{
		GroupVersionKind: schema.GroupVersionKind(gvk), Namespace: b.Namespace, Name: b.Spec.Target.Name,
	}}
	s.object, s.unknown = g.src.Object(ctx, s.key)
	if g.selector != nil && s.object != nil && s.object.LabelsDropped {
		g.complete(ctx, s)
	}
	return s
}

// complete reads the content and labels that are not kept of an object. An object that cannot be read is unknown.
func (g *gatherer) complete(ctx context.Context, s *subject) {
	if s.object == nil || !s.object.Partial() && !s.object.LabelsDropped {
		return
	}
	if whole, err := g.src.Content(ctx, s.key, s.object); err != nil {
		s.object, s.unknown = nil, err
	} else {
		s.object = whole
	}
}

// selects says whether the policy is about an object. Labels of an object that is
// gone are not known, so a policy with a selector is not about it.
func (g *gatherer) selects(s *subject) bool {
	resources := g.Policy.Spec.Resources
	named := func(r v1alpha1.GuardedResource) bool {
		gvk := canon.ParseGVK(r.APIVersion, r.Kind)
		return gvk.Group == s.key.Group && gvk.Kind == s.key.Kind
	}
	if len(resources) > 0 && !slices.ContainsFunc(resources, named) {
		return false
	}
	if g.selector == nil {
		return true
	}
	return s.object != nil && g.selector.Matches(labels.Set(s.object.Labels))
}

// count adds an object that did not drift to the scope's health.
func (g *gatherer) count(s *subject) {
	if s.baseline.Status.State != v1alpha1.StateInSync || s.object == nil || g.putBack(s.baseline) {
		return
	}
	switch s.object.Ready {
	case readiness.Ready:
		g.out.Input.Scope.Healthy++
	case readiness.NotReady:
		g.out.Input.Scope.Unhealthy++
	case readiness.Unknown:
	}
}

// component is named by a label, or is the object's name.
func (s *subject) component() string {
	if s.object != nil && s.object.Labels[labelComponent] != "" {
		return s.object.Labels[labelComponent]
	}
	return s.key.Name
}

// known is the state of the object, Unknown unless the object is the very one
// that its Baseline speaks of.
func (s *subject) known() v1alpha1.DriftState {
	status := &s.baseline.Status
	switch {
	case s.unknown != nil:
		return v1alpha1.StateUnknown
	case status.State == v1alpha1.StateMissing:
		if s.object != nil {
			return v1alpha1.StateUnknown
		}
	case s.object == nil, string(s.object.UID) != status.Observed.UID, string(s.object.FullHash) != status.Observed.FullHash:
		return v1alpha1.StateUnknown
	}
	return status.State
}
