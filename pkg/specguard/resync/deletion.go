// SPDX-License-Identifier: Apache-2.0

package resync

import "github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"

// Deletion is what decides about an object that a check did not find. The mode of
// its guards is not among it: that says what admission does about a write, and the
// deletion went past admission or was let through.
type Deletion struct {
	// Retired: it was removed by somebody who may.
	Retired bool
	// NamespaceTerminating: its namespace is being deleted.
	NamespaceTerminating bool
	// Guarded: a guard that is in force, so neither suspended nor out of order,
	// selects it.
	Guarded bool
	// Management as resolved; anything but Managed counts as Unmanaged.
	Management v1alpha1.ManagementPolicy
	// Resync: scheduled checks of it are on.
	Resync bool
	// Origin of what was authorized; empty when nothing was.
	Origin v1alpha1.Origin
	// BodyTooLarge: the authorized body is not kept, see status.oversized.
	BodyTooLarge bool
	// Attributed: a record names who deleted it, and that is somebody who may not.
	Attributed bool
}

// Consequence is what follows from a deletion.
type Consequence string

// The consequences.
const (
	// Recreate: a RemediationPlan may create it again, within all limits.
	Recreate Consequence = "Recreate"
	// Terminal: it stays Missing until a person, or a late record, changes that.
	Terminal Consequence = "Terminal"
	// Untouched: nothing is done and nothing is demanded.
	Untouched Consequence = "Untouched"
)

// DeletionReason says why a consequence follows.
type DeletionReason string

// The reasons, in the order in which they are looked for.
const (
	// ReasonRetired: who removed it may.
	ReasonRetired DeletionReason = "Retired"
	// ReasonNamespaceTerminating: nothing can be created there any more.
	ReasonNamespaceTerminating DeletionReason = "NamespaceTerminating"
	// ReasonNotGuarded: no guard in force speaks for it.
	ReasonNotGuarded DeletionReason = "NotGuarded"
	// ReasonUnmanaged: it is observed and never written.
	ReasonUnmanaged DeletionReason = "Unmanaged"
	// ReasonBodyTooLarge: its authorized body was not kept, and the plan would make an
	// older one.
	ReasonBodyTooLarge DeletionReason = "BodyTooLarge"
	// ReasonNeverAuthorized: nobody who may ever created it.
	ReasonNeverAuthorized DeletionReason = "NeverAuthorized"
	// ReasonImported: it is older than its guard. A new object would not be the
	// one that was lost.
	ReasonImported DeletionReason = "Imported"
	// ReasonResyncOff: nobody asked for checks, and so not for this either.
	ReasonResyncOff DeletionReason = "ResyncOff"
	// ReasonUnattributed: nothing says who deleted it, and it may have been
	// somebody who may.
	ReasonUnattributed DeletionReason = "Unattributed"
	// ReasonDeletedOutOfBand: everything is there that it takes.
	ReasonDeletedOutOfBand DeletionReason = "DeletedOutOfBand"
)

// Deleted decides about an object that is gone. The first row that holds decides;
// Recreate is the last, so that anything unknown falls short of it.
func Deleted(d Deletion) (Consequence, DeletionReason) {
	switch {
	case d.Retired:
		return Untouched, ReasonRetired
	case d.NamespaceTerminating:
		return Untouched, ReasonNamespaceTerminating
	case !d.Guarded:
		return Untouched, ReasonNotGuarded
	case d.Management != v1alpha1.Managed:
		return Untouched, ReasonUnmanaged
	case d.BodyTooLarge:
		return Terminal, ReasonBodyTooLarge
	case d.Origin == "":
		return Untouched, ReasonNeverAuthorized
	case d.Origin != v1alpha1.OriginCreated:
		return Terminal, ReasonImported
	case !d.Resync:
		return Terminal, ReasonResyncOff
	case !d.Attributed:
		return Terminal, ReasonUnattributed
	default:
		return Recreate, ReasonDeletedOutOfBand
	}
}

// DeletionOf reads the facts of a deletion from a Baseline: Retired, Origin,
// BodyTooLarge and Attributed. The rest is the caller's.
func DeletionOf(b *v1alpha1.Baseline) Deletion {
	d := Deletion{Retired: b.Status.RetirementTime != nil, BodyTooLarge: b.Status.Oversized != nil}
	if b.Spec.Authorized != nil {
		d.Origin = b.Spec.Authorized.Origin
	}
	for i := range b.Status.Findings {
		f := &b.Status.Findings[i]
		if f.Class == v1alpha1.ClassObjectMissing {
			d.Attributed = blames(f.Actor)
		}
	}
	return d
}

// blames tells whether somebody who may not is named. Whom a guard trusts, and the
// machinery, Plumbline's own executor included, had their reasons.
func blames(a v1alpha1.Actor) bool {
	switch a.Class {
	case v1alpha1.ActorUntrusted, v1alpha1.ActorExpected:
		return a.User != ""
	case v1alpha1.ActorTrusted, v1alpha1.ActorSystem, v1alpha1.ActorUnknown:
		return false
	default:
		return false
	}
}
