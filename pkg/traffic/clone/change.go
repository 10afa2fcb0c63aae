// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// groups of containers in a pod template; those that run first come last here.
var groups = []string{"containers", "initContainers"}

// Change returns the baseline with the images and variables that the clone of a variation has. The
// baseline itself is not changed. An error is a [RefusedError].
func Change(release *v1alpha1.ABRelease, variation v1alpha1.VariationName, baseline *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	v, err := cloneOf(release, variation)
	if err != nil {
		return nil, err
	}
	if err := demandDeployment(release, baseline); err != nil {
		return nil, err
	}
	out := baseline.DeepCopy()
	if err := changeTemplate(out, v); err != nil {
		return nil, err
	}
	return out, nil
}

// cloneOf returns the variation of a release that is a clone.
func cloneOf(release *v1alpha1.ABRelease, name v1alpha1.VariationName) (*v1alpha1.Variation, error) {
	for i := range release.Spec.Variations {
		v := &release.Spec.Variations[i]
		switch {
		case v.Name != name:
		case v.Clone == nil:
			return nil, refuse(fieldOf(string(name), "clone"), "the variation is no clone: give clone, or use its workload as it is")
		case v.Name == release.Spec.Stable:
			return nil, refuse("spec.stable", "the stable variation is a clone: name the variation that has a workload")
		default:
			return v, nil
		}
	}
	if name == v1alpha1.FreshControl {
		return nil, refuse("spec.rollout.analysis.control", "the release asks for no fresh control: set Fresh")
	}
	return nil, refuse("spec.variations", "the release has no variation %s: add it", name)
}

// demandDeployment refuses what no clone is made of.
func demandDeployment(release *v1alpha1.ABRelease, baseline *unstructured.Unstructured) error {
	stable := release.Spec.Stable
	workload := WorkloadOf(release, stable)
	switch {
	case workload == nil || workload.Kind != v1alpha1.VariationDeployment:
		return refuse(fieldOf(string(stable), "workload"), "a clone is made from a Deployment: name one")
	case baseline.GetKind() != string(v1alpha1.VariationDeployment) || baseline.GetName() != workload.Name || baseline.GetNamespace() != release.Namespace:
		return refuse(fieldOf(string(stable), "workload"), "%s %s is not the Deployment %s of the stable variation", baseline.GetKind(), baseline.GetName(), workload.Name)
	case baseline.GetLabels()[v1alpha1.LabelClone] != "":
		return refuse(fieldOf(string(stable), "workload"), "the Deployment %s is itself a clone: name the Deployment that it was made from", workload.Name)
	}
	return nil
}

// WorkloadOf returns what the pods of a variation belong to: the workload that the release names, or
// the Deployment of its clone or group. A group beside a workload is none. It returns nil for a selector and for an unknown variation.
func WorkloadOf(release *v1alpha1.ABRelease, name v1alpha1.VariationName) *v1alpha1.VariationWorkload {
	for i := range release.Spec.Variations {
		v := &release.Spec.Variations[i]
		switch {
		case v.Name != name:
		case v.Clone != nil:
			return &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: v1alpha1.CloneName(release.Name, name)}
		case v.Workload == nil && v.Group != nil:
			return &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: v.Group.Name}
		default:
			return v.Workload
		}
	}
	return nil
}

// changeTemplate sets the images and variables of a clone in the pod template of a Deployment.
func changeTemplate(object *unstructured.Unstructured, v *v1alpha1.Variation) error {
	differing, err := containersOf(object, v)
	if err != nil {
		return err
	}
	for i := range differing {
		if err := changeContainer(object, v, &differing[i]); err != nil {
			return err
		}
	}
	return nil
}

// containersOf returns how each container differs, with the name of the only one filled in.
func containersOf(object *unstructured.Unstructured, v *v1alpha1.Variation) ([]v1alpha1.CloneContainer, error) {
	if len(v.Clone.Containers) > 0 || isUnchanged(v.Clone) {
		return v.Clone.Containers, nil
	}
	names := containerNames(object, groups[0])
	if len(names) != 1 {
		return nil, refuse(fieldOf(string(v.Name), "clone.image"), "the Deployment %s has %d containers: give clone.containers, with one of the names %s",
			object.GetName(), len(names), list(names))
	}
	return []v1alpha1.CloneContainer{{Name: v1alpha1.ContainerName(names[0]), Image: v.Clone.Image, Env: v.Clone.Env}}, nil
}

func containerNames(object *unstructured.Unstructured, group string) (names []string) {
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", group)
	for _, c := range containers {
		fields, _ := c.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "name")
		names = append(names, name)
	}
	return names
}

func changeContainer(object *unstructured.Unstructured, v *v1alpha1.Variation, differing *v1alpha1.CloneContainer) error {
	for _, group := range groups {
		at := slices.Index(containerNames(object, group), string(differing.Name))
		if at < 0 {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", group)
		if err != nil {
			return fmt.Errorf("reading %s of Deployment %s: %w", group, object.GetName(), err)
		}
		container, _ := containers[at].(map[string]any)
		if differing.Image != "" {
			container["image"] = string(differing.Image)
		}
		if err := setVariables(container, differing.Env); err != nil {
			return refuse(fieldOf(string(v.Name), "clone.containers["+string(differing.Name)+"].env"), "%v", err)
		}
		if err := unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", group); err != nil {
			return fmt.Errorf("setting %s of Deployment %s: %w", group, object.GetName(), err)
		}
		return nil
	}
	known := slices.Concat(containerNames(object, groups[0]), containerNames(object, groups[1]))
	return refuse(fieldOf(string(v.Name), "clone.containers["+string(differing.Name)+"]"),
		"the Deployment %s has no container of that name: use one of %s", object.GetName(), list(known))
}

// setVariables replaces variables of the same name where they are, since a variable can use those
// before it, and adds the others at the end.
func setVariables(container map[string]any, env []v1alpha1.CloneVariable) error {
	if len(env) == 0 {
		return nil
	}
	variables, _, err := unstructured.NestedSlice(container, "env")
	if err != nil {
		return fmt.Errorf("reading env: %w", err)
	}
	for _, e := range env {
		variable := map[string]any{"name": e.Name}
		if e.Value != nil && *e.Value != "" { // as the API server stores it
			variable["value"] = *e.Value
		}
		at := slices.IndexFunc(variables, func(v any) bool {
			fields, _ := v.(map[string]any)
			return fields["name"] == e.Name
		})
		if at < 0 {
			variables = append(variables, variable)
			continue
		}
		variables[at] = variable
	}
	container["env"] = variables
	return nil
}
