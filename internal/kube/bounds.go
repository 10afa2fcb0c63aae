// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// Bounds of the metadata that is kept of each object. A tenant can
// fill an object with labels, owners and finalizers up to the limit of etcd.
const (
	MaxLabels     = 256
	MaxLabelBytes = 16 << 10
	MaxOwners     = 64
	maxOwnerBytes = 16 << 10
	// maxStampBytes bounds one annotation of ours. A stamp beyond it proves nothing.
	maxStampBytes = 16 << 10
	// MaxPackageAnnotationBytes bounds an annotation that names a package.
	MaxPackageAnnotationBytes = 1 << 10
	// maxTextBytes bounds each text of an owner that is kept although it is too large.
	maxTextBytes = 1 << 10
)

// FitsLabels tells whether labels are within their bounds.
func FitsLabels(labels map[string]string) bool {
	return len(labels) <= MaxLabels && sizeOfMap(labels) <= MaxLabelBytes
}

// boundMetadata drops the metadata beyond the bounds. A digest of all of it stays, by which
// two versions can be told apart. Finalizers decide nothing here.
func (o *Object) boundMetadata() {
	o.Finalizers, o.GenerateName = nil, ""
	o.Annotations = boundAnnotations(o.Annotations)
	fits := FitsLabels(o.Labels)
	if fits && len(o.OwnerReferences) <= MaxOwners && sizeOfOwners(o.OwnerReferences) <= maxOwnerBytes {
		return
	}
	o.digest = digestMetadata(o.Labels, o.OwnerReferences)
	o.OwnerReferences = boundOwners(o.OwnerReferences)
	if !fits {
		o.Labels, o.LabelsDropped = nil, true
	}
}

// keptStamps name the annotations of ours that are read on guarded objects.
var keptStamps = []string{
	v1alpha1.AnnotationWriter, v1alpha1.AnnotationWriterGroups, v1alpha1.AnnotationBreakGlassReason,
	v1alpha1.AnnotationApplied, v1alpha1.AnnotationApplier, v1alpha1.AnnotationApplierGroups,
	v1alpha1.AnnotationResyncPeriod, resync.AnnotationDriftDetection,
}

// boundAnnotations drops the annotations that decide nothing, and those that are too
// large to be a stamp, a setting or a name.
func boundAnnotations(all map[string]string) map[string]string {
	if mark, there := all[gitops.ArgoCDTracking]; there {
		all[gitops.ArgoCDTracking] = cutText(mark) // a mark counts whatever follows
	}
	maps.DeleteFunc(all, func(name, value string) bool {
		if isPackageAnnotation(name) {
			return len(value) > MaxPackageAnnotationBytes
		}
		return name != gitops.ArgoCDTracking && !slices.Contains(keptStamps, name) || len(value) > maxStampBytes
	})
	return all
}

// boundOwners keeps the owner that controls the object, which is the only one that decides
// anything. The API server allows one.
func boundOwners(owners []metav1.OwnerReference) []metav1.OwnerReference {
	for i := range owners {
		if isController(owners[i]) {
			return []metav1.OwnerReference{{
				APIVersion: cutText(owners[i].APIVersion), Kind: cutText(owners[i].Kind), Name: cutText(owners[i].Name),
				Controller: new(true),
			}}
		}
	}
	return nil
}

// cutText copies the beginning of a text, so that the rest is not kept with it.
func cutText(text string) string {
	return string([]byte(text[:min(len(text), maxTextBytes)]))
}

func sizeOfMap(m map[string]string) int {
	size := 0
	for name, value := range m {
		size += len(name) + len(value)
	}
	return size
}

func sizeOfOwners(owners []metav1.OwnerReference) int {
	size := 0
	for i := range owners {
		o := &owners[i]
		size += len(o.APIVersion) + len(o.Kind) + len(o.Name) + len(o.UID)
	}
	return size
}

func digestMetadata(labels map[string]string, owners []metav1.OwnerReference) [sha256.Size]byte {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	// Neither strings nor booleans can fail, and a hash takes all bytes.
	_ = encoder.Encode(labels)
	for i := range owners {
		o := &owners[i]
		_ = encoder.Encode([]any{o.UID, o.Kind, o.Name, o.APIVersion, isController(*o)})
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
