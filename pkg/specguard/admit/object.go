// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// object is one side of a review, parsed; the zero object is absent.
type object struct {
	doc *canon.Document
}

func parseObject(body []byte, gvk canon.GVK) (object, error) {
	if body == nil {
		return object{}, nil
	}
	doc, err := canon.Parse(body, gvk)
	if err != nil {
		return object{}, fmt.Errorf("parsing the object: %w", err)
	}
	return object{doc: doc}, nil
}

func (o object) exists() bool { return o.doc != nil }

// release gives the memory back; nothing of the object may be used afterwards.
func (o object) release() {
	if o.doc != nil {
		o.doc.Release()
	}
}

func (o object) metadata(key string) canon.Value {
	if o.doc == nil {
		return canon.Value{}
	}
	return o.doc.Root().Get("metadata").Get(key)
}

func (o object) uid() string             { return o.metadata("uid").Text() }
func (o object) resourceVersion() string { return o.metadata("resourceVersion").Text() }

func (o object) generation() int64 {
	n, err := strconv.ParseInt(o.metadata("generation").Text(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (o object) labels() map[string]string {
	v := o.metadata("labels")
	if v.Len() == 0 {
		return nil
	}
	out := make(map[string]string, v.Len())
	for member := range v.All() {
		out[string(member.Key())] = member.Text()
	}
	return out
}

// owners are the ownerReferences with the fields that say who controls.
func (o object) owners() []metav1.OwnerReference {
	v := o.metadata("ownerReferences")
	if v.Len() == 0 {
		return nil
	}
	out := make([]metav1.OwnerReference, 0, v.Len())
	for element := range v.All() {
		ref := metav1.OwnerReference{
			APIVersion: element.Get("apiVersion").Text(),
			Kind:       element.Get("kind").Text(),
			Name:       element.Get("name").Text(),
		}
		ref.UID = types.UID(element.Get("uid").Text())
		if c := element.Get("controller"); c.Kind() == canon.Bool {
			controls := c.Text() == "true"
			ref.Controller = &controls
		}
		out = append(out, ref)
	}
	return out
}

// annotation is an annotation's value; false when it is not there.
func (o object) annotation(key string) (string, bool) {
	v := o.metadata("annotations").Get(key)
	return v.Text(), v.Exists()
}

// hasAnnotations says that metadata.annotations is a map to which a JSON Patch
// can add a member.
func (o object) hasAnnotations() bool { return o.metadata("annotations").Kind() == canon.Map }

// hash is the canonical hash of the whole body; empty for an absent object.
func (o object) hash() canon.Hash {
	if o.doc == nil {
		return ""
	}
	return o.doc.Hash()
}
