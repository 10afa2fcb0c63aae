// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Standard is what a target is measured by.
type Standard struct {
	GVK   canon.GVK
	Rules specguard.Rules
	Masks []v1alpha1.Mask
	// Authorized is the body that is authorized now; nil when none is, or the
	// target is judged without masks.
	Authorized []byte
	// Desired is the body of the revision that the plan names; nil before it was
	// read, and never needed for a restart.
	Desired []byte
	// Metadata is what others found the object by when it was seen last; nil when
	// that is not known. Needed to make it again.
	Metadata *v1alpha1.ObservedMetadata
	// Owners are those of Metadata, as they were read live.
	Owners []Owner
}

// Hash is the guarded hash of an object for a step on target: the desired one if
// the object is as the step leaves it, else the one by which its Baseline tells
// drift. The two differ only for a rollback under masks, where what is desired
// is not what is authorized.
func (s *Standard) Hash(object []byte, target *v1alpha1.PlanTarget) (string, error) {
	authorized := s.Authorized
	if authorized == nil {
		authorized = s.Desired
	}
	hash, err := specguard.ObservedHash(object, authorized, s.GVK, s.Rules, s.Masks)
	if err != nil {
		return "", fmt.Errorf("hashing the object: %w", err)
	}
	if string(hash) == target.DesiredHash || s.Desired == nil || target.Action != v1alpha1.ActionRollback {
		return string(hash), nil
	}
	desired, err := specguard.ObservedHash(object, s.Desired, s.GVK, s.Rules, s.Masks)
	if err != nil {
		return "", fmt.Errorf("hashing the object: %w", err)
	}
	if string(desired) == target.DesiredHash {
		return target.DesiredHash, nil
	}
	return string(hash), nil
}

// Intact says whether the desired body is what the plan says. Nothing else is
// ever written, so a forged revision changes nothing.
func (s *Standard) Intact(target *v1alpha1.PlanTarget) bool {
	if s.Desired == nil {
		return false
	}
	hash, err := specguard.GuardedHash(s.Desired, s.GVK, s.Rules)
	return err == nil && string(hash) == target.RevisionHash
}
