// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/readiness"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Key names one guarded object. The version belongs to it: an object is read
// and hashed in the version that its guard names.
type Key struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// NamespacedName drops the kind.
func (k Key) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// String is for logs.
func (k Key) String() string {
	return k.Kind + "." + k.Group + " " + k.Namespace + "/" + k.Name
}

// Object is what is kept of a guarded object: the metadata that decides
// something and the compressed canonical body. It is immutable once stored.
type Object struct {
	metav1.TypeMeta
	// ObjectMeta holds the whole metadata but for annotations of others, of
	// which only [PackageAnnotations] are kept, and managedFields, which are compressed beside the body.
	metav1.ObjectMeta
	// FullHash is the canonical hash of the whole body.
	FullHash canon.Hash
	// Ready says whether this version does what its spec says.
	Ready readiness.State
	// body is the canonical body, compressed.
	body []byte
	// managed is the managedFields list as JSON, compressed; nil when empty.
	managed []byte
	// Unreadable says why the body could not be parsed; body and FullHash are
	// then empty and the object's state is unknown.
	Unreadable error
}

// Body returns the canonical JSON body: everything but apiVersion, kind,
// metadata and status.
func (o *Object) Body() ([]byte, error) { return decompress(o.body) }

// ManagedFieldsJSON returns the managedFields list, nil when there is none.
func (o *Object) ManagedFieldsJSON() ([]byte, error) {
	if o.managed == nil {
		return nil, nil
	}
	return decompress(o.managed)
}

// Writer is the stamp of the last writer of the guarded content.
func (o *Object) Writer() string { return o.Annotations[v1alpha1.AnnotationWriter] }

// becameReady says that a version does what its spec says and the one before did
// not, which is news although nothing else differs: what was authorised then works.
func (o *Object) becameReady(before *Object) bool {
	return o.Ready == readiness.Ready && before.Ready != readiness.Ready
}

// DeepCopyObject makes Object a runtime.Object. Objects are immutable, so the
// copy shares everything.
func (o *Object) DeepCopyObject() runtime.Object {
	c := *o
	return &c
}

// sameContent says whether nothing differs that any rule looks at: only the
// resourceVersion and the status moved.
func (o *Object) sameContent(p *Object) bool {
	return o.UID == p.UID &&
		o.FullHash == p.FullHash &&
		o.Generation == p.Generation &&
		(o.Unreadable == nil) == (p.Unreadable == nil) &&
		o.DeletionTimestamp.Equal(p.DeletionTimestamp) &&
		mapsEqual(o.Annotations, p.Annotations) &&
		mapsEqual(o.Labels, p.Labels) &&
		slices.EqualFunc(o.OwnerReferences, p.OwnerReferences, sameOwner)
}

func mapsEqual(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Kind == b.Kind && a.Name == b.Name &&
		a.APIVersion == b.APIVersion && isController(a) == isController(b)
}

func isController(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller }

// ObjectList is a list of Objects, shrunk while the response was read.
type ObjectList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []Object
}

// DeepCopyObject makes ObjectList a runtime.Object.
func (l *ObjectList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = slices.Clone(l.Items)
	return &c
}
