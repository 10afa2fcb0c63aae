// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxName is the longest name of a clone, in characters: tools copy names into labels.
const maxName = 63

// BodyOf returns the body of the Deployment that is the clone of a variation, with a number of
// replicas. It is the baseline's body with other images, variables and labels, and without what
// belongs to the baseline alone. service is the selector of the release's Service; nil if the
// Service selects nothing. An error is a [RefusedError].
func BodyOf(release *v1alpha1.ABRelease, variation v1alpha1.VariationName, baseline *unstructured.Unstructured, service map[string]string, replicas int32) (*unstructured.Unstructured, error) {
	changed, err := Change(release, variation, baseline)
	if err != nil {
		return nil, err
	}
	v, err := cloneOf(release, variation)
	if err != nil {
		return nil, err
	}
	name := v1alpha1.CloneName(release.Name, variation)
	if len(name) > maxName {
		return nil, refuse(fieldOf(string(variation), "name"), "the clone would be named %s, which is longer than %d characters: use shorter names", name, maxName)
	}
	podLabels := labelsOfPods(release, v, changed)
	if err := demandUnselected(release, v, baseline, service, podLabels); err != nil {
		return nil, err
	}
	return assemble(release, v, changed, podLabels, replicas)
}

// assemble puts the body together from the changed baseline.
func assemble(release *v1alpha1.ABRelease, v *v1alpha1.Variation, changed *unstructured.Unstructured, podLabels map[string]string, replicas int32) (*unstructured.Unstructured, error) {
	spec, _, err := unstructured.NestedMap(changed.Object, "spec")
	if err != nil {
		return nil, refuse(fieldOf(string(release.Spec.Stable), "workload"), "the Deployment %s cannot be read: %v", changed.GetName(), err)
	}
	delete(spec, "paused") // a paused Deployment makes no pods
	spec["replicas"] = int64(replicas)
	spec["selector"] = map[string]any{"matchLabels": map[string]any{v1alpha1.LabelClone: ownLabel(release.UID, v.Name)}}
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	if err := unstructured.SetNestedStringMap(out.Object, podLabels, "spec", "template", "metadata", "labels"); err != nil {
		return nil, refuse(fieldOf(string(release.Spec.Stable), "workload"), "the pod template of the Deployment %s cannot be read: %v", changed.GetName(), err)
	}
	out.SetAPIVersion(changed.GetAPIVersion())
	out.SetKind(changed.GetKind())
	out.SetNamespace(release.Namespace)
	out.SetName(v1alpha1.CloneName(release.Name, v.Name))
	out.SetLabels(overlay(withoutMarks(changed.GetLabels()), podLabelsOf(v), map[string]string{v1alpha1.LabelClone: ownLabel(release.UID, v.Name)}))
	if kept := noteChange(withoutMarks(changed.GetAnnotations()), v.Clone); kept != nil {
		out.SetAnnotations(kept)
	}
	out.SetOwnerReferences([]metav1.OwnerReference{OwnerOf(release)})
	return out, nil
}

// OwnerOf returns the reference by which a clone goes with its release. It does not block the
// deletion of the release.
func OwnerOf(release *v1alpha1.ABRelease) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "ABRelease", Name: release.Name, UID: release.UID, Controller: new(true),
	}
}

// Owned says whether an object is a clone of the release.
func Owned(release *v1alpha1.ABRelease, object *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	label := object.GetLabels()[v1alpha1.LabelClone]
	return owner != nil && owner.UID == release.UID && (label == ownLabel(release.UID, "") || label == ownLabel(release.UID, v1alpha1.FreshControl))
}

// Renew returns a clone of an earlier run with another body: uid, resourceVersion and what the
// API server and controllers keep in it stay.
func Renew(live, body *unstructured.Unstructured) *unstructured.Unstructured {
	out := live.DeepCopy()
	out.Object["spec"] = body.DeepCopy().Object["spec"]
	out.SetLabels(body.GetLabels())
	annotations := body.GetAnnotations()
	for key, value := range live.GetAnnotations() {
		if isMark(key) && key != v1alpha1.AnnotationCloneChange { // the change is that of the body
			annotations = overlay(annotations, map[string]string{key: value})
		}
	}
	out.SetAnnotations(annotations)
	out.SetOwnerReferences(body.GetOwnerReferences())
	return out
}

func podLabelsOf(v *v1alpha1.Variation) map[string]string {
	out := map[string]string{}
	for key, value := range v.Clone.PodLabels {
		out[key] = string(value)
	}
	return out
}

// labelsOfPods returns the labels of the clone's pods.
func labelsOfPods(release *v1alpha1.ABRelease, v *v1alpha1.Variation, baseline *unstructured.Unstructured) map[string]string {
	return overlay(templateLabels(baseline), podLabelsOf(v), map[string]string{v1alpha1.LabelClone: ownLabel(release.UID, v.Name)})
}

// overlay returns a map in which the later entry of a key holds.
func overlay(layers ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, layer := range layers {
		maps.Copy(out, layer)
	}
	return out
}

// demandUnselected refuses pods that the Service or the baseline would select: requests would reach
// them at any percentage, and two Deployments would fight for them.
func demandUnselected(release *v1alpha1.ABRelease, v *v1alpha1.Variation, baseline *unstructured.Unstructured, service, podLabels map[string]string) error {
	field := podLabelsField(v.Name)
	if len(service) > 0 && labels.SelectorFromSet(service).Matches(labels.Set(podLabels)) {
		return refuse(field, "the Service %s selects the pods of the clone: give another value to one of %s",
			release.Spec.ServiceName, list(slices.Sorted(maps.Keys(service))))
	}
	selector, keys, err := selectorOf(baseline)
	if err != nil {
		return refuse(fieldOf(string(release.Spec.Stable), "workload"), "the selector of the Deployment %s cannot be read: %v", baseline.GetName(), err)
	}
	if selector.Matches(labels.Set(podLabels)) {
		return refuse(field, "the selector of the Deployment %s selects the pods of the clone: give another value to one of %s", baseline.GetName(), list(keys))
	}
	return nil
}

// selectorOf returns the selector of a Deployment, and its keys in order.
func selectorOf(object *unstructured.Unstructured) (labels.Selector, []string, error) {
	fields, _, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if err != nil {
		return nil, nil, err
	}
	parsed := &metav1.LabelSelector{}
	if err := convert(fields, parsed); err != nil {
		return nil, nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(parsed)
	if err != nil {
		return nil, nil, err
	}
	keys := slices.Collect(maps.Keys(parsed.MatchLabels))
	for i := range parsed.MatchExpressions {
		keys = append(keys, parsed.MatchExpressions[i].Key)
	}
	slices.Sort(keys)
	return selector, slices.Compact(keys), nil
}
