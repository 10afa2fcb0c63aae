// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// GuardedHash is the canonical hash of a body without what the rules exclude. The
// error is a *canon.SyntaxError.
func GuardedHash(body []byte, gvk canon.GVK, rules Rules) (canon.Hash, error) {
	return canon.HashBody(body, gvk, rules.Excluded()...)
}

// ObservedHash is the guarded hash of what is observed, where each masked path
// reads as authorized. So it equals the authorized hash exactly when nothing
// but masked values differ, and neither hash changes when a mask comes or goes.
func ObservedHash(body, authorized []byte, gvk canon.GVK, rules Rules, masks []v1alpha1.Mask) (canon.Hash, error) {
	if len(masks) == 0 || authorized == nil {
		return GuardedHash(body, gvk, rules)
	}
	unmasked, err := unmaskedBody(body, authorized, gvk, rules, masks)
	if err != nil {
		return "", err
	}
	return GuardedHash(unmasked, gvk, rules)
}

// unmaskedBody is body with the masked paths as authorized.
func unmaskedBody(body, authorized []byte, gvk canon.GVK, rules Rules, masks []v1alpha1.Mask) ([]byte, error) {
	observed, want, err := parseBoth(body, authorized, gvk)
	if err != nil {
		return nil, err
	}
	defer observed.Release()
	defer want.Release()
	var back []diff.Change
	for _, whole := range diff.Compare(observed, want, rules.Excluded()...) {
		parts := splitChange(gvk, rules, whole)
		masked := slices.DeleteFunc(slices.Clone(parts), func(c diff.Change) bool { return !isMasked(masks, c) })
		if len(masked) == len(parts) { // taking a map out whole leaves no empty one
			masked = []diff.Change{whole}
		}
		back = append(back, masked...)
	}
	out, _, err := diff.Apply(body, gvk, back)
	return out, err
}

// parseBoth reads an observed body and the authorized one. The caller releases both.
func parseBoth(body, authorized []byte, gvk canon.GVK) (observed, want *canon.Document, err error) {
	if observed, err = canon.Parse(body, gvk); err != nil {
		return nil, nil, fmt.Errorf("reading the observed body: %w", err)
	}
	if want, err = canon.Parse(authorized, gvk); err != nil {
		observed.Release()
		return nil, nil, fmt.Errorf("reading the authorized body: %w", err)
	}
	return observed, want, nil
}

// acceptedBody is what an accept authorizes: the authorized body with the differences
// that the accepted hash names. Masked values stay as authorized, since their writer
// moves them again, and so does what the rules exclude, since nobody was shown it.
func acceptedBody(body, authorized []byte, gvk canon.GVK, rules Rules, masks []v1alpha1.Mask) ([]byte, error) {
	if len(masks) > 0 {
		var err error
		if body, err = unmaskedBody(body, authorized, gvk, rules, masks); err != nil {
			return nil, err
		}
	}
	observed, want, err := parseBoth(body, authorized, gvk)
	if err != nil {
		return nil, err
	}
	defer observed.Release()
	defer want.Release()
	out, _, err := diff.Apply(authorized, gvk, diff.Compare(want, observed, rules.Excluded()...))
	if err != nil {
		return nil, fmt.Errorf("applying the accepted state: %w", err)
	}
	return out, nil
}

func isMasked(masks []v1alpha1.Mask, c diff.Change) bool {
	path := c.Path.String()
	return !c.Reordered() && slices.ContainsFunc(masks, func(m v1alpha1.Mask) bool { return m.Path == path })
}
