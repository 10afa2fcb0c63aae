// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// annotationPrefix is that of the annotations that are kept.
const annotationPrefix = "plumbline.dev/"

// metadata is decoded into Go values but for managedFields, which are kept as
// bytes and rarely looked at.
type metadata struct {
	metav1.ObjectMeta
	ManagedFields json.RawMessage `json:"managedFields"` // shadows ObjectMeta's
}

// Detail is how much is kept of an object.
type Detail uint8

const (
	// DetailNone keeps nothing.
	DetailNone Detail = iota
	// DetailMetadata keeps a partial object: which version it is, and no content.
	DetailMetadata
	// DetailWhole keeps the content, too.
	DetailWhole
)

// Decode shrinks the JSON of one object. An object whose body breaks the rules
// of the canonical form is returned with Unreadable set, because its metadata
// still says which object it is; only metadata that cannot be read is an error.
func Decode(raw []byte, gvk schema.GroupVersionKind) (*Object, error) {
	return decode(raw, gvk, func(string) Detail { return DetailWhole })
}

// decode shrinks the JSON of one object to the detail that is kept of its namespace.
func decode(raw []byte, gvk schema.GroupVersionKind, keep func(namespace string) Detail) (*Object, error) {
	doc, unreadable := canon.Parse(raw, canon.GVK(gvk))
	if unreadable != nil {
		object, err := decodeBodiless(raw)
		if err != nil {
			return nil, err
		}
		object.Unreadable = fmt.Errorf("parsing the body: %w", unreadable)
		object.Ready = readiness.Unknown
		return object, nil
	}
	defer doc.Release()
	// The body was scanned once already; only its metadata is decoded.
	object, managed, err := decodeMetadata(doc.Root().Get("metadata").Raw())
	if err != nil {
		return nil, err
	}
	switch keep(object.Namespace) {
	case DetailNone:
		return object, nil
	case DetailMetadata:
	case DetailWhole:
		object.body = newBlob(Compress(doc.AppendCanonical(nil)))
		object.keepManaged(managed)
	}
	object.FullHash = doc.Hash()
	object.Ready, _ = readiness.OfDocument(doc)
	return object, nil
}

// keepManaged keeps managedFields that are not empty.
func (o *Object) keepManaged(raw json.RawMessage) {
	if len(raw) > len("[]") {
		o.managed = newBlob(Compress(raw))
	}
}

// decodeBodiless reads what a bookmark has too: metadata, and no body to speak of.
func decodeBodiless(raw []byte) (*Object, error) {
	var envelope struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return nil, fmt.Errorf("decoding an object: %w", err)
	}
	object, managed, err := decodeMetadata(envelope.Metadata)
	if err != nil {
		return nil, err
	}
	object.keepManaged(managed)
	return object, nil
}

func decodeMetadata(raw []byte) (*Object, json.RawMessage, error) {
	var m metadata
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, nil, fmt.Errorf("decoding object metadata: %w", err)
		}
	}
	object := &Object{ObjectMeta: m.ObjectMeta}
	object.Annotations = keptAnnotations(object.Annotations)
	return object, m.ManagedFields, nil
}

// PackageAnnotations name the release of a package manager that an object belongs
// to. Helm refuses to touch an object that has its name and not its annotations.
var PackageAnnotations = []string{"meta.helm.sh/release-name", "meta.helm.sh/release-namespace"}

func isPackageAnnotation(name string) bool { return slices.Contains(PackageAnnotations, name) }

// keptAnnotations keeps ours, those of package managers, the mark of Argo CD, and the one by
// which a bookmark says that the initial list is complete.
func keptAnnotations(all map[string]string) map[string]string {
	var kept map[string]string
	for k, v := range all {
		if !strings.HasPrefix(k, annotationPrefix) && k != metav1.InitialEventsAnnotationKey && k != gitops.ArgoCDTracking && !isPackageAnnotation(k) {
			continue
		}
		if kept == nil {
			kept = make(map[string]string, 3)
		}
		kept[k] = v
	}
	return kept
}
