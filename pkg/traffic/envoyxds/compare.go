// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// compare returns the path of the first field in which two messages of one type differ. Packed
// messages are compared by their fields: the bytes differ between builds.
func compare(want, got protoreflect.Message) (path string, same bool) {
	if want.IsValid() != got.IsValid() {
		return "", false
	}
	if w, is := want.Interface().(*anypb.Any); is {
		if g, is := got.Interface().(*anypb.Any); is {
			return comparePacked(w, g)
		}
	}
	fields := want.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		below, same := compareField(f, want, got)
		if !same {
			return f.TextName() + below, false
		}
	}
	if len(got.GetUnknown()) > 0 {
		return "that is unknown", false
	}
	return "", true
}

func comparePacked(want, got *anypb.Any) (path string, same bool) {
	w, errWant := want.UnmarshalNew()
	g, errGot := got.UnmarshalNew()
	if errWant != nil || errGot != nil || want.GetTypeUrl() != got.GetTypeUrl() {
		return "type_url", false
	}
	return compare(w.ProtoReflect(), g.ProtoReflect())
}

func compareField(f protoreflect.FieldDescriptor, want, got protoreflect.Message) (below string, same bool) {
	if want.Has(f) != got.Has(f) {
		return "", false
	}
	if !want.Has(f) {
		return "", true
	}
	w, g := want.Get(f), got.Get(f)
	switch {
	case f.IsMap():
		return compareMaps(f, w.Map(), g.Map())
	case f.IsList():
		return compareLists(f, w.List(), g.List())
	default:
		return compareValues(f, w, g)
	}
}

func compareMaps(f protoreflect.FieldDescriptor, want, got protoreflect.Map) (below string, same bool) {
	if want.Len() != got.Len() {
		return "", false
	}
	same = true
	want.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		if same = got.Has(k); same {
			below, same = compareValues(f.MapValue(), v, got.Get(k))
		}
		if !same {
			below = fmt.Sprintf("[%v]%s", k, below)
		}
		return same
	})
	return below, same
}

func compareLists(f protoreflect.FieldDescriptor, want, got protoreflect.List) (below string, same bool) {
	for i := range min(want.Len(), got.Len()) {
		if below, same := compareValues(f, want.Get(i), got.Get(i)); !same {
			return fmt.Sprintf("[%d]%s", i, below), false
		}
	}
	return "", want.Len() == got.Len()
}

// compareValues compares single values of a field.
func compareValues(f protoreflect.FieldDescriptor, want, got protoreflect.Value) (below string, same bool) {
	if f.Message() == nil {
		return "", want.Equal(got)
	}
	below, same = compare(want.Message(), got.Message())
	if below != "" {
		below = "." + below
	}
	return below, same
}
