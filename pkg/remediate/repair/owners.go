// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Owner is an owner that an object had before it was deleted.
type Owner struct {
	v1alpha1.ObservedOwner
	// Lost says why an object that is made again does not belong to the owner; empty for
	// an owner that lives.
	Lost string
}

// references are the owners that an object which is made again belongs to. A reference to
// an owner that does not live would have the garbage collector remove the object. None
// blocks the deletion of its owner: to set that may take a right on the owner.
func references(owners []Owner) []metav1.OwnerReference {
	var all []metav1.OwnerReference
	for i := range owners {
		o := &owners[i]
		if o.Lost != "" {
			continue
		}
		reference := metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: types.UID(o.UID)}
		if o.Controller == v1alpha1.Enabled {
			reference.Controller = new(true)
		}
		all = append(all, reference)
	}
	return all
}

// NotRestored says what no object has that is made again.
const NotRestored = "without finalizers, and without annotations other than those of Helm"

// Lacks says what an object lacks that is made again, for people.
func Lacks(s *Standard) string {
	var lost []string
	for i := range s.Owners {
		if o := &s.Owners[i]; o.Lost != "" {
			lost = append(lost, fmt.Sprintf("%s/%s (%s)", o.Kind, o.Name, o.Lost))
		}
	}
	if len(lost) == 0 {
		return "made again " + NotRestored
	}
	noun := "its owner "
	if len(lost) > 1 {
		noun = "its owners "
	}
	return "made again without " + noun + strings.Join(lost, ", ") + ", " + NotRestored
}
