// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

// names are those of clusters that some proxy has and told of, read once for all.
type names struct {
	mu sync.RWMutex
	of map[string]named
}

type named struct {
	cluster string
	slot    signals.Slot
}

// maxNames are remembered: more than there are slots. Past that it begins anew.
const maxNames = 4096

// find the slot of a cluster that a proxy has, and that counts for a split.
func (n *names) find(cluster []byte, has func(string) bool) (string, signals.Slot, bool) {
	n.mu.RLock()
	found, there := n.of[string(cluster)]
	n.mu.RUnlock()
	if there {
		return found.cluster, found.slot, has(found.cluster)
	}
	name := string(cluster)
	s, ours := envoyname.ParseSlot(name)
	if !ours || s.Variation == "" || s.Forced || !has(name) {
		return "", signals.Slot{}, false
	}
	found = named{name, signals.Slot{Namespace: s.Namespace, Service: s.Service, Port: s.Port, Variation: s.Variation}}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil || len(n.of) >= maxNames {
		n.of = map[string]named{}
	}
	n.of[name] = found
	return found.cluster, found.slot, true
}
