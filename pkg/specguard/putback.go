// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// PutBack lists the changes that lead from an object to an authorized body: all
// that differs, but for what the rules exclude and what a mask says that an
// expected writer moved. So seven replicas of an autoscaler stay seven while the
// image is put back. Applied to the object they leave its metadata as it is.
func PutBack(object, authorized []byte, gvk canon.GVK, rules Rules, masks []v1alpha1.Mask) ([]diff.Change, error) {
	observed, err := canon.Parse(object, gvk)
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	defer observed.Release()
	want, err := canon.Parse(authorized, gvk)
	if err != nil {
		return nil, fmt.Errorf("reading the authorized body: %w", err)
	}
	defer want.Release()
	var back []diff.Change
	for _, whole := range diff.Compare(observed, want, rules.Excluded()...) {
		parts := splitChange(gvk, rules, whole)
		kept := slices.DeleteFunc(slices.Clone(parts), func(c diff.Change) bool { return isMasked(masks, c) })
		if len(kept) == len(parts) { // a map that comes or goes as a whole, with nothing masked in it
			kept = []diff.Change{whole}
		}
		back = append(back, kept...)
	}
	return back, nil
}
