// SPDX-License-Identifier: Apache-2.0

package kube

import "k8s.io/apimachinery/pkg/runtime/schema"

// intake decides how much is kept of an object while it is read from the wire.
type intake struct {
	keep func(namespace string) Detail
	// arrive is told of each object that is kept; nil where the memory is not bounded.
	arrive func(*Object)
}

// take shrinks the JSON of one object; wanted is false for one of which nothing is kept.
func (in intake) take(raw []byte, gvk schema.GroupVersionKind) (object *Object, wanted bool, err error) {
	object, err = decode(raw, gvk, in.keep)
	if err != nil {
		return nil, false, err
	}
	switch in.keep(object.Namespace) {
	case DetailNone:
		return object, false, nil
	case DetailMetadata:
		object.body, object.managed = nil, nil
	case DetailWhole:
	}
	object.boundMetadata()
	if in.arrive != nil {
		in.arrive(object)
	}
	return object, true, nil
}
