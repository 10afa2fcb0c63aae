// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// collectEdits is the least time between a snapshot and the next that changes of guards
// alone cause. The objects of a changed guard are judged anew, so a tenant who edits
// guards in a loop, or removes and makes them, would otherwise keep the assessor busy.
const collectEdits = 500 * time.Millisecond

// postpone returns how long the changes of an input are collected; zero when the input
// counts at once.
func (c *Controller) postpone(in *input) time.Duration {
	age := c.Clock.Since(c.changedAt)
	if age < 0 || age >= collectEdits || concernsNamespaces(c.current.Load(), in) {
		return 0
	}
	return collectEdits - age
}

// concernsNamespaces tells whether an input has other namespaces than a snapshot, or
// lacks a guard of a namespace that is being deleted: the assessor must not go on to
// write there. A tenant can do neither over and over.
func concernsNamespaces(s *Snapshot, in *input) bool {
	if s == nil || !equality.Semantic.DeepEqual(s.Namespaces, in.namespacesByName()) {
		return true
	}
	exist := make(map[specguard.GuardRef]bool, len(in.guards))
	for i := range in.guards {
		exist[refOf(&in.guards[i])] = true
	}
	for ref := range s.Refs {
		if s.Namespaces[ref.Namespace].Terminating && !exist[ref] {
			return true
		}
	}
	return false
}
