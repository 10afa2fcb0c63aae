// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Observation is what was read of the guarded object: Present, Absent or
// Unknown. A failed read is Unknown, never Absent.
type Observation interface{ isObservation() }

// Version is one version of the object.
type Version struct {
	// Body is the object as JSON, whole or in canonical form.
	Body            []byte
	ResourceVersion string
	// Generation is 0 for kinds without one.
	Generation int64
	// Writer and WriterGroups are the stamps found on it.
	Writer       string
	WriterGroups []string
	// Applied is the stamp of applies found on it.
	Applied Applied
	// BreakGlassReason is the annotation found on it, of this write or an older one.
	BreakGlassReason string
	// Labels decide which guards select the object; they are no part of its body.
	Labels   map[string]string
	Managers []metav1.ManagedFieldsEntry
}

// Present is an object that exists.
type Present struct {
	Version
	UID       string
	CreatedAt time.Time
	// Deleting says that a deletionTimestamp is set. It is no drift by itself: the
	// object may go on for long.
	Deleting bool
	// Metadata is what the object gets again if it has to be made again.
	Metadata *v1alpha1.ObservedMetadata
	// Prev is the version right before this one, when the watch delivered both;
	// nil after a list, whatever the reason for it.
	Prev *Version
	// Created says that the live watch delivered the creation itself.
	Created bool
	// EarlierDropped says that the watch delivered versions before this one that were not
	// judged, and of which no content was kept. So this version is not the one that
	// the guards met, and it is not imported.
	EarlierDropped bool
	// SeenAt is when the observation arrived; records get Config.Grace from then.
	SeenAt time.Time
}

// Absent is an object that does not exist, by a complete read or a DELETED event.
type Absent struct {
	// Last is the version that the DELETED event carried, nil after a list.
	Last *Version
	// Deleting says that Last was waiting for its finalizers: its deletion was
	// reviewed as an earlier version.
	Deleting             bool
	NamespaceTerminating bool
	SeenAt               time.Time
}

// Unknown is an object that could not be read.
type Unknown struct {
	Why string
}

func (Present) isObservation() {}
func (Absent) isObservation()  {}
func (Unknown) isObservation() {}
