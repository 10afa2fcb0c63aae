// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"sync"

	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// known are the names of all plans, or all standbys, that were ever stored, in the order in which they were.
type known struct {
	mu  sync.Mutex
	all []string
}

// note is told of every stored write.
func (k *known) note(c apiserver.Commit) {
	if c.Resource.Resource == "remediationplans" && c.Before == nil {
		k.add(c.Name)
	}
}

func (k *known) add(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Contains(k.all, name) {
		k.all = append(k.all, name)
	}
}

// names are those that are known now. The caller must not change them.
func (k *known) names() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clip(k.all)
}
