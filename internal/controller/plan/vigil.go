// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// lookApart is the least time between two looks of a plan at a target that changes.
const lookApart = time.Second

// Vigil knows in which versions plans have seen the targets that they wait for, and so which
// change of a target wakes which plan, and when. It has no effect of its own.
type Vigil struct {
	mu    sync.Mutex
	plans map[types.NamespacedName]*sighted
}

// sighted is what a plan saw at its last look.
type sighted struct {
	at       time.Time
	versions map[exec.Reference]string
	woken    bool
}

// Saw notes what a plan has seen at a time; a plan that waits for no target is forgotten.
func (v *Vigil) Saw(plan types.NamespacedName, targets []exec.Sighting, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(targets) == 0 {
		delete(v.plans, plan)
		return
	}
	s := &sighted{at: at, versions: map[exec.Reference]string{}}
	for _, target := range targets {
		s.versions[target.Reference] = target.ResourceVersion
	}
	if v.plans == nil {
		v.plans = map[types.NamespacedName]*sighted{}
	}
	v.plans[plan] = s
}

// Wakes says whether a plan has to look again because a target of it has a version. Until
// its next look a plan is woken once.
func (v *Vigil) Wakes(plan types.NamespacedName, now exec.Sighting) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.plans[plan]
	if s == nil || s.woken || !isNewer(now.ResourceVersion, s.versions[now.Reference]) {
		return false
	}
	s.woken = true
	return true
}

// Due is when a plan that was woken may look again.
func (v *Vigil) Due(plan types.NamespacedName) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.plans[plan]; s != nil {
		return s.at.Add(lookApart)
	}
	return time.Time{}
}

// isNewer says that a version is newer than one that was seen. A version that cannot be
// compared is newer if it is another one; a target without a version is not waited for.
func isNewer(version, seen string) bool {
	if seen == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, seen)
	if err != nil {
		return version != seen
	}
	return order > 0
}
