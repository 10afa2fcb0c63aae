// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxNote bounds the change that a clone carries, in bytes. All annotations of an object have 256 KiB.
const maxNote = 64 << 10

// Encode returns the clone of a variation as JSON, without its size, which makes no revision.
func Encode(c *v1alpha1.VariationClone) []byte {
	sized := *c
	sized.MinReplicas = nil
	text, _ := json.Marshal(sized) //nolint:errchkjson // strings and maps of strings alone
	return text
}

// noteChange adds the change of a clone to its annotations. A change that is too long is left out: nothing can
// wait behind it then.
func noteChange(annotations map[string]string, c *v1alpha1.VariationClone) map[string]string {
	text := Encode(c)
	if len(text) > maxNote {
		return annotations
	}
	return overlay(annotations, map[string]string{v1alpha1.AnnotationCloneChange: string(text)})
}

// Keep returns the release with the change that a clone of it was made from, in the place of the change in the
// spec; nil if the clone does not say. A user who may write the clone can write the annotation as well: whoever
// uses the change compares the pod template that it gives.
func Keep(release *v1alpha1.ABRelease, variation v1alpha1.VariationName, live *unstructured.Unstructured) *v1alpha1.ABRelease {
	if live == nil || !Owned(release, live) {
		return nil
	}
	text := live.GetAnnotations()[v1alpha1.AnnotationCloneChange]
	if text == "" || len(text) > maxNote {
		return nil
	}
	change := &v1alpha1.VariationClone{}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields() // a field of a later version would be lost
	if decoder.Decode(change) != nil {
		return nil
	}
	kept := release.DeepCopy()
	v, err := cloneOf(kept, variation)
	if err != nil {
		return nil
	}
	change.MinReplicas, v.Clone = v.Clone.MinReplicas, change
	return kept
}
