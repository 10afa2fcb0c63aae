// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Standby says which Deployment stands in for another one while that is repaired.
type Standby struct {
	// Name of the standby, and ID the value of its label, by which its selector knows its pods.
	Name, ID string
	Replicas int32
	// PodLabels take the pods out of the selectors of the Service and of the target.
	PodLabels map[string]v1alpha1.LabelValue
	// Target is the authorized body of the Deployment, with the live metadata as far as they are known.
	Target *unstructured.Unstructured
}

// StandbyOf returns the body of a standby: the authorized body of the target with other pod labels and
// a selector of its own, and without what belongs to the target alone. It has no owner yet. An error is
// a [RefusedError].
func StandbyOf(s *Standby) (*unstructured.Unstructured, error) {
	spec, is, err := unstructured.NestedMap(s.Target.Object, "spec")
	if err != nil || !is {
		return nil, refuse("spec", "the authorized body of Deployment %s has no pod template", s.Target.GetName())
	}
	delete(spec, "paused") // a paused Deployment makes no pods
	spec["replicas"] = int64(s.Replicas)
	spec["selector"] = map[string]any{"matchLabels": map[string]any{v1alpha1.LabelStandby: s.ID}}
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	own := s.ownLabels()
	if err := unstructured.SetNestedStringMap(out.Object, overlay(templateLabels(s.Target), own), "spec", "template", "metadata", "labels"); err != nil {
		return nil, refuse("spec.template", "the pod template of Deployment %s cannot be read: %v", s.Target.GetName(), err)
	}
	out.SetAPIVersion(s.Target.GetAPIVersion())
	out.SetKind(s.Target.GetKind())
	out.SetNamespace(s.Target.GetNamespace())
	out.SetName(s.Name)
	out.SetLabels(overlay(withoutMarks(s.Target.GetLabels()), own))
	if kept := withoutMarks(s.Target.GetAnnotations()); kept != nil {
		out.SetAnnotations(kept)
	}
	return out, nil
}

// DemandUnselected refuses a standby whose pods the Service or the target would select. selector is
// that of the Service.
func (s *Standby) DemandUnselected(serviceName string, selector map[string]string) error {
	const field = "spec.standby.podLabels"
	pods := labels.Set(overlay(templateLabels(s.Target), s.ownLabels()))
	if labels.SelectorFromSet(selector).Matches(pods) {
		return refuse(field, "the Service %s selects the pods of the standby: give another value to one of %s", serviceName, list(slices.Sorted(maps.Keys(selector))))
	}
	own, keys, err := selectorOf(s.Target)
	switch {
	case err != nil:
		return refuse("spec.selector", "the selector of Deployment %s cannot be read: %v", s.Target.GetName(), err)
	case own.Matches(pods):
		return refuse(field, "the selector of Deployment %s selects the pods of the standby: give another value to one of %s", s.Target.GetName(), list(keys))
	}
	return nil
}

func (s *Standby) ownLabels() map[string]string {
	out := map[string]string{v1alpha1.LabelStandby: s.ID}
	for key, value := range s.PodLabels {
		out[key] = string(value)
	}
	return out
}

func templateLabels(object *unstructured.Unstructured) map[string]string {
	of, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
	return of
}
