// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/sha256"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
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
// something and the compressed canonical body. It is immutable once stored, but for its
// content, which may be dropped at any time; see [Object.Partial].
type Object struct {
	metav1.TypeMeta
	// ObjectMeta holds the whole metadata but for annotations of others, of
	// which only [PackageAnnotations] and the mark of Argo CD are kept, and managedFields, which are compressed beside the body.
	// In a Tracker, it holds no more than the bounds of this package.
	metav1.ObjectMeta
	// LabelsDropped says that the object has more labels than are kept, so Labels is empty.
	LabelsDropped bool
	// FullHash is the canonical hash of the whole body.
	FullHash canon.Hash
	// Ready says whether this version does what its spec says.
	Ready readiness.State
	// body is the canonical body, compressed; nil when it was never kept.
	body *blob
	// managed is the managedFields list as JSON, compressed; nil when empty or not kept.
	managed *blob
	// digest is that of labels and owners beyond their bounds; zero within them.
	digest [sha256.Size]byte
	// Unreadable says why the body could not be parsed; body and FullHash are
	// then empty and the object's state is unknown.
	Unreadable error
}

// Body returns the canonical JSON body: everything but apiVersion, kind,
// metadata and status. The error is [ErrNotKept] for a partial object.
func (o *Object) Body() ([]byte, error) {
	body := o.body.read()
	if body == nil && o.Unreadable == nil {
		return nil, ErrNotKept
	}
	return decompress(body)
}

// ManagedFieldsJSON returns the managedFields list, nil when there is none or none is kept.
func (o *Object) ManagedFieldsJSON() ([]byte, error) {
	managed := o.managed.read()
	if managed == nil {
		return nil, nil
	}
	return decompress(managed)
}

// Partial tells whether the body is not kept, although it can be read: no guard covers the
// object, or the memory for all objects does not suffice.
func (o *Object) Partial() bool { return o.Unreadable == nil && o.body.read() == nil }

// Complete returns the version with the content of a live read, nil when the live read found
// other content. managedFields may differ between versions of equal content, so they are
// taken only of the very version.
func (o *Object) Complete(live *Object) *Object {
	switch {
	case live == nil || live.Partial() || live.UID != o.UID || live.FullHash != o.FullHash,
		(live.Unreadable == nil) != (o.Unreadable == nil):
		return nil
	case live.ResourceVersion == o.ResourceVersion:
		return live
	case o.LabelsDropped && digestMetadata(live.Labels, live.OwnerReferences) != o.digest:
		return nil
	}
	whole := *o
	whole.body, whole.managed = live.body, nil
	if o.LabelsDropped {
		whole.Labels, whole.LabelsDropped = live.Labels, false
	}
	return &whole
}

// ContentBytes tells how much memory the content takes.
func (o *Object) ContentBytes() int64 { return o.body.size() + o.managed.size() }

// Writer is the stamp of the last writer of the guarded content.
func (o *Object) Writer() string { return o.Annotations[v1alpha1.AnnotationWriter] }

// becameReady says that a version does what its spec says and the one before did
// not, which is news although nothing else differs: what was authorized then works.
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
		o.digest == p.digest &&
		mapsEqual(o.Annotations, p.Annotations) &&
		mapsEqual(o.Labels, p.Labels) &&
		slices.EqualFunc(o.OwnerReferences, p.OwnerReferences, sameOwner)
}

// shareMetadata takes the metadata of the version before, which has the same content. Without that, each
// write of a status would leave a copy with those that remember the version before.
func (o *Object) shareMetadata(before *Object) {
	o.Namespace, o.Name, o.UID, o.FullHash = before.Namespace, before.Name, before.UID, before.FullHash
	o.Annotations, o.Labels, o.OwnerReferences = before.Annotations, before.Labels, before.OwnerReferences
}

// HasLabelsOf says that two versions have the same labels. Labels that are not kept are compared by a digest, in
// which owners count as well.
func (o *Object) HasLabelsOf(p *Object) bool {
	if o.LabelsDropped || p.LabelsDropped {
		return o.digest == p.digest
	}
	return mapsEqual(o.Labels, p.Labels)
}

// isVersion tells whether two versions are one, whatever is kept of each. The content
// counts because the API server may fill in another default without a write.
func (o *Object) isVersion(p *Object) bool {
	if o == nil || p == nil {
		return o == p
	}
	return o.UID == p.UID && o.ResourceVersion == p.ResourceVersion && o.FullHash == p.FullHash
}

// baseBytes is about the size of an Object without texts and content.
const baseBytes = 1 << 10

// holding sums up the memory of an object.
func (o *Object) holding() holding {
	h := holding{fixed: int64(baseBytes + sizeOfMap(o.Labels) + sizeOfMap(o.Annotations) + sizeOfOwners(o.OwnerReferences))}
	for _, b := range []*blob{o.body, o.managed} {
		if b != nil {
			h.blobs = append(h.blobs, b)
		}
	}
	return h
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
