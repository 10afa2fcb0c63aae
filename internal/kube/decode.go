// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/remediate/readiness"
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

// Decode shrinks the JSON of one object. An object whose body breaks the rules
// of the canonical form is returned with Unreadable set, because its metadata
// still says which object it is; only metadata that cannot be read is an error.
func Decode(raw []byte, gvk schema.GroupVersionKind) (*Object, error) {
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
	object, err := decodeMetadata(doc.Root().Get("metadata").Raw())
	if err != nil {
		return nil, err
	}
	object.FullHash = doc.Hash()
	object.Ready, _ = readiness.OfDocument(doc)
	object.body = Compress(doc.AppendCanonical(nil))
	return object, nil
}

// decodeBodiless reads what a bookmark has too: metadata, and no body to speak of.
func decodeBodiless(raw []byte) (*Object, error) {
	var envelope struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return nil, fmt.Errorf("decoding an object: %w", err)
	}
	return decodeMetadata(envelope.Metadata)
}

func decodeMetadata(raw []byte) (*Object, error) {
	var m metadata
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("decoding object metadata: %w", err)
		}
	}
	object := &Object{ObjectMeta: m.ObjectMeta}
	object.Annotations = keptAnnotations(object.Annotations)
	if len(m.ManagedFields) > len("[]") {
		object.managed = Compress(m.ManagedFields)
	}
	return object, nil
}

// PackageAnnotations name the release of a package manager that an object belongs
// to. Helm refuses to touch an object that has its name and not its annotations.
var PackageAnnotations = []string{"meta.helm.sh/release-name", "meta.helm.sh/release-namespace"}

// keptAnnotations keeps ours, those of package managers, and the one by which a
// bookmark says that the initial list is complete.
func keptAnnotations(all map[string]string) map[string]string {
	var kept map[string]string
	for k, v := range all {
		if !strings.HasPrefix(k, annotationPrefix) && k != metav1.InitialEventsAnnotationKey && !slices.Contains(PackageAnnotations, k) {
			continue
		}
		if kept == nil {
			kept = make(map[string]string, 3)
		}
		kept[k] = v
	}
	return kept
}
