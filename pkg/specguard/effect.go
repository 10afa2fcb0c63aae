// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Effect is something for the caller to carry out, in the order given.
type Effect interface{ isEffect() }

// AuthorizeRevision stores a body as the new authorized state: first the
// BaselineRevision, then spec.authorized as it stands in Result.State.
type AuthorizeRevision struct {
	Number int64
	Hash   canon.Hash
	// Body is canonical JSON.
	Body   []byte
	By     string
	At     time.Time
	Origin v1alpha1.Origin
	UID    string
	// Release names the run that authorized the body in the name of By; nil if none did.
	Release *v1alpha1.AuthorizedRelease
	// Managers are the managedFields of the object when the body was authorized; nil when the
	// object differs from the body, because the fields of a drift have other owners.
	Managers []metav1.ManagedFieldsEntry
}

// BackfillHash replaces spec.authorized.hash of the same body and number, after
// the ignore rules or the version of the hash changed.
type BackfillHash struct{ Hash canon.Hash }

// ClearAccept removes spec.accept: it was honored, or names another state.
type ClearAccept struct{}

// RemoveBaseline deletes the Baseline: its object is gone and was never authorized.
type RemoveBaseline struct{}

// Recheck asks for another Step after a time, with what is observed then.
type Recheck struct{ After time.Duration }

// Retry asks for the same Step again after a time: nothing was decided, because
// the record of the write may be on its way.
type Retry struct{ After time.Duration }

// EventType is the type of a Kubernetes event.
type EventType string

// The event types.
const (
	EventNormal  EventType = "Normal"
	EventWarning EventType = "Warning"
)

// EventReason is the reason of an event. The set is closed.
type EventReason string

// The reasons.
const (
	ReasonAuthorized       EventReason = "ChangeAuthorized"
	ReasonImported         EventReason = "BaselineImported"
	ReasonAccepted         EventReason = "DriftAccepted"
	ReasonAcceptOutdated   EventReason = "AcceptanceOutdated"
	ReasonAcceptRefused    EventReason = "AcceptanceRefused"
	ReasonWithheld         EventReason = "AuthorizationWithheld"
	ReasonDriftDetected    EventReason = "DriftDetected"
	ReasonDriftResolved    EventReason = "DriftResolved"
	ReasonAttributed       EventReason = "DriftAttributed"
	ReasonObjectUnexpected EventReason = "ObjectUnexpected"
	ReasonReplaced         EventReason = "ObjectReplaced"
	ReasonMissing          EventReason = "ObjectMissing"
	ReasonRetired          EventReason = "BaselineRetired"
	ReasonContended        EventReason = "ContentionDetected"
	ReasonContentionEnded  EventReason = "ContentionEnded"
	ReasonBenignChange     EventReason = "BenignChange"
	ReasonUnreadable       EventReason = "ObjectUnreadable"
	// ReasonServerDefault is told once for each kind and path.
	ReasonServerDefault EventReason = "ServerDefaultAuthorized"
	ReasonBodyTooLarge  EventReason = "BodyTooLarge"
)

// maxMessageBytes is the longest note that events.k8s.io accepts.
const maxMessageBytes = 1024

// RefuseAccept says that the request to accept was cleared and not honored, because a
// guard does not let the requester accept.
type RefuseAccept struct{ Why string }

// Event is told to people. Message has at most 1024 bytes, no value of a field,
// and nothing that moves a cursor or adds a line: it names users and paths that
// others chose.
type Event struct {
	Type    EventType
	Reason  EventReason
	Message string
}

func (AuthorizeRevision) isEffect() {}
func (BackfillHash) isEffect()      {}
func (ClearAccept) isEffect()       {}
func (RefuseAccept) isEffect()      {}
func (RemoveBaseline) isEffect()    {}
func (Recheck) isEffect()           {}
func (Retry) isEffect()             {}
func (Event) isEffect()             {}
