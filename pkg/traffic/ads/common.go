// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"maps"
	"slices"
)

// common is the state of most names of most proxies: the proxy has acknowledged what the view has,
// and there is nothing else to remember. Of such a name nothing is kept: the proxy has what the
// view has, apart from the names of which something is kept.
type common struct {
	// view is the one that the proxy has; nil as long as all is kept name by name.
	view *View
	// named says that the proxy has asked for each of its names, and not for everything.
	named bool
	// acknowledged is when the last of its names was at first, later when single ones were since.
	acknowledged moment
	later        map[string]moment
}

// find gives the state of a name to a caller that changes it; nil when the proxy neither wants nor
// has the name.
func (own *subscriptions) find(name string) *held {
	if h, kept := own.held[name]; kept {
		return h
	}
	r := own.common.view.Get(own.kind, name)
	if r == nil {
		return nil
	}
	h := own.common.of(r)
	delete(own.common.later, name)
	own.put(r.Name, &h)
	return &h
}

// peek reads the state of a name; false when the proxy neither wants nor has it.
func (own *subscriptions) peek(name string) (held, bool) {
	if h, kept := own.held[name]; kept {
		if h == nil {
			return held{}, false
		}
		return *h, true
	}
	if r := own.common.view.Get(own.kind, name); r != nil {
		return own.common.of(r), true
	}
	return held{}, false
}

// of a resource, what there is to know when its name is in the common state.
func (c *common) of(r *Resource) held {
	return held{told: &r.Version, has: r, known: true, named: c.named, acknowledged: cmp.Or(c.later[r.Name], c.acknowledged)}
}

// includes says that a state is the common one. r is what the view has; it may be nil.
func (c *common) includes(h *held, r *Resource) bool {
	if h == nil || r == nil || h.has == nil {
		return h == nil && r == nil // neither is the name there, nor wanted
	}
	rest := *h
	rest.told, rest.has, rest.nonce, rest.acknowledged = nil, nil, 0, 0
	return h.version() == r.Version && h.has.Version == r.Version && rest == held{known: true, named: c.named}
}

// put keeps the state of a name.
func (own *subscriptions) put(name string, h *held) {
	if own.held == nil {
		own.held = map[string]*held{}
	}
	own.held[name] = h
}

// drop forgets a name, which the proxy neither wants nor has any more.
func (own *subscriptions) drop(name string) {
	if own.common.view.Get(own.kind, name) != nil {
		own.put(name, nil) // as nothing else says that it is not as the others
		return
	}
	delete(own.held, name)
}

// all names that the proxy wants or has, with their states. The caller changes none, and keeps none.
func (own *subscriptions) all(yield func(string, *held) bool) {
	for name, h := range own.held {
		if h != nil && !yield(name, h) {
			return
		}
	}
	var h held // one for all
	for _, name := range own.common.view.Names(own.kind) {
		if _, kept := own.held[name]; kept {
			continue
		}
		if h = own.common.of(own.common.view.Get(own.kind, name)); !yield(name, &h) {
			return
		}
	}
}

// names of all that are wanted, sorted.
func (own *subscriptions) names(wanted func(string) bool) (names []string) {
	for name := range own.all {
		if wanted(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// count of all names.
func (own *subscriptions) count() int {
	if own.common.view == nil {
		return len(own.held)
	}
	n := len(own.common.view.Names(own.kind))
	for name, h := range own.held {
		if own.common.view.Get(own.kind, name) != nil {
			n--
		}
		if h != nil {
			n++
		}
	}
	return n
}

// spread keeps all names again.
func (own *subscriptions) spread() {
	if own.common.view == nil {
		return
	}
	all := make(map[string]*held, own.count())
	for name, h := range own.all {
		if all[name] = own.held[name]; all[name] == nil {
			kept := *h
			all[name] = &kept
		}
	}
	own.held, own.common = all, common{}
}

// gather forgets what is kept of names that are in the common state, once none needs anything.
// Whoever goes over to another view has touched all names that differ.
func (own *subscriptions) gather(view *View) {
	if !own.open || len(own.unsettled) > 0 || own.common.view == view && len(own.held) == 0 {
		return
	}
	first := own.common.view == nil
	if first && !own.begin(view) {
		return
	}
	own.common.view = view
	before := len(own.held)
	for name, h := range own.held {
		if !own.common.includes(h, view.Get(own.kind, name)) {
			continue
		}
		if h != nil && !first && h.acknowledged > own.common.acknowledged {
			own.common.remember(name, h.acknowledged)
		}
		delete(own.held, name)
	}
	switch left := len(own.held); {
	case left == 0:
		own.held = nil
	case left < before/2: // a map keeps the room for all that it once had
		own.held = maps.Collect(maps.All(own.held))
	}
}

// begin has a view as the common state, if that is the state of most names. Names of the view that
// the proxy does not want are noted as such.
func (own *subscriptions) begin(view *View) bool {
	c := common{view: view, named: !own.wildcard}
	names := view.Names(own.kind)
	if len(own.held) < len(names)/2 {
		return false
	}
	var others []string
	for _, name := range names {
		h, kept := own.held[name]
		switch {
		case !kept:
			others = append(others, name)
		case c.includes(h, view.Get(own.kind, name)):
			c.acknowledged = max(c.acknowledged, h.acknowledged)
		}
	}
	if len(names) == 0 || 2*len(others) > len(names) {
		return false
	}
	for _, name := range others {
		own.put(name, nil)
	}
	own.common = c
	return true
}

// remember when a name was acknowledged later than the others.
func (c *common) remember(name string, at moment) {
	if c.later == nil {
		c.later = map[string]moment{}
	}
	c.later[name] = at
}
