// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// ErrNoPodTemplate is wrapped by the error for an object that has no pod
// template: its kind is not one of those that have one, the template is not
// there, or an excluded path covers it.
var ErrNoPodTemplate = errors.New("no pod template")

// templatePaths leads to the pod template of each kind that has one. A Pod is
// its own, as far as a hash covers it.
var templatePaths = map[GVK][]string{
	{Version: "v1", Kind: "Pod"}:                        {},
	{Version: "v1", Kind: "PodTemplate"}:                {"template"},
	{Version: "v1", Kind: "ReplicationController"}:      {"spec", "template"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "batch", Version: "v1", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
	{Group: "batch", Version: "v1", Kind: "Job"}:        {"spec", "template"},
}

func (d *Document) podTemplate(exclude []Path) (Value, error) {
	names, ok := templatePaths[d.gvk]
	if !ok {
		return Value{}, fmt.Errorf("%w: kind %q of %q, version %q", ErrNoPodTemplate, d.gvk.Kind, d.gvk.Group, d.gvk.Version)
	}
	v := d.RootWithout(exclude...)
	for _, name := range names {
		v = v.covered(name)
	}
	if v.Kind() != Map {
		return Value{}, fmt.Errorf("%w in the %s", ErrNoPodTemplate, d.gvk.Kind)
	}
	return v, nil
}

// covered is a map's member, if the hash covers it.
func (v Value) covered(key string) Value {
	if child := v.Get(key); child.Covered() {
		return child
	}
	return Value{}
}

// elements gives the covered elements of a list that is a map's member.
func (v Value) elements(key string) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		list := v.covered(key)
		if list.Kind() != List {
			return
		}
		for child := range list.All() {
			if child.Covered() && !yield(child) {
				return
			}
		}
	}
}

// ConfigMapReference is a ConfigMap, in the namespace of the object, that a pod
// template refers to.
type ConfigMapReference struct {
	Name string
	// Optional: pods start without it. One reference that is not optional
	// outweighs any that are.
	Optional bool
}

// ConfigMapReferences lists the ConfigMaps that the pod template refers to,
// each once, in the order of their names, but for references that an excluded
// path covers. The error wraps [ErrNoPodTemplate], or [ErrClosureTooLarge] for
// more than [MaxConfigMaps].
func (d *Document) ConfigMapReferences(exclude ...Path) ([]ConfigMapReference, error) {
	template, err := d.podTemplate(exclude)
	if err != nil {
		return nil, fmt.Errorf("listing ConfigMap references: %w", err)
	}
	references, err := configMapReferences(template)
	if err != nil {
		return nil, fmt.Errorf("listing ConfigMap references: %w", err)
	}
	return references, nil
}

func configMapReferences(template Value) ([]ConfigMapReference, error) {
	found := references{}
	found.addPod(template.covered("spec"))
	if len(found) > MaxConfigMaps {
		return nil, fmt.Errorf("%w: references to %d ConfigMaps, more than %d", ErrClosureTooLarge, len(found), MaxConfigMaps)
	}
	out := make([]ConfigMapReference, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, ConfigMapReference{Name: name, Optional: found[name]})
	}
	return out, nil
}

// references holds, by name, whether all references so far are optional.
type references map[string]bool

var containerLists = [...]string{"initContainers", "containers", "ephemeralContainers"}

func (r references) addPod(spec Value) {
	for volume := range spec.elements("volumes") {
		r.add(volume.covered("configMap"))
		for source := range volume.covered("projected").elements("sources") {
			r.add(source.covered("configMap"))
		}
	}
	for _, list := range containerLists {
		for container := range spec.elements(list) {
			r.addContainer(container)
		}
	}
}

func (r references) addContainer(container Value) {
	for source := range container.elements("envFrom") {
		r.add(source.covered("configMapRef"))
	}
	for variable := range container.elements("env") {
		r.add(variable.covered("valueFrom").covered("configMapKeyRef"))
	}
}

// add takes a reference with a name; one without refers to nothing.
func (r references) add(reference Value) {
	name := reference.covered("name")
	if name.Kind() != String || len(name.Bytes()) == 0 {
		return
	}
	flag := reference.covered("optional")
	optional := flag.Kind() == Bool && string(flag.Bytes()) == "true"
	if all, seen := r[string(name.Bytes())]; seen {
		optional = optional && all
	}
	r[name.Text()] = optional
}
