// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// collectEdits is the least time between a snapshot and the next that only edits of
// guards cause. The objects of a changed guard are judged anew, so a tenant who edits
// guards in a loop would otherwise keep the assessor busy with one namespace.
const collectEdits = 500 * time.Millisecond

// postpone returns how long the edits of an input are collected; zero when the input
// counts at once. A removed guard and a changed namespace never wait, because the
// assessor would go on to write in a namespace that is being deleted.
func (c *Controller) postpone(in *input) time.Duration {
	age := c.Clock.Since(c.changedAt)
	if age < 0 || age >= collectEdits || !hasOnlyEdits(c.current.Load(), in) {
		return 0
	}
	return collectEdits - age
}

// hasOnlyEdits tells whether an input has the namespaces of a snapshot and all of its guards.
func hasOnlyEdits(s *Snapshot, in *input) bool {
	if s == nil || !equality.Semantic.DeepEqual(s.Namespaces, in.namespacesByName()) {
		return false
	}
	exist := make(map[specguard.GuardRef]bool, len(in.guards)+len(in.clusterGuards))
	for i := range in.guards {
		exist[specguard.GuardRef{Namespace: in.guards[i].Namespace, Name: in.guards[i].Name}] = true
	}
	for i := range in.clusterGuards {
		exist[specguard.GuardRef{Name: in.clusterGuards[i].Name}] = true
	}
	for ref := range s.Refs {
		if !exist[ref] {
			return false
		}
	}
	return true
}
