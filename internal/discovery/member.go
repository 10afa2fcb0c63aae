// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// member is a group and how many streams are in it.
type member struct {
	scope    Scope
	reach    reach
	group    *serve.Group
	streams  int
	problems []ir.Problem
	// front are a gateway's own resources, as they are in its view.
	front []*ads.Resource
}

// Join is the group of a scope, with one stream more.
func (c *Catalog) Join(s Scope) *serve.Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.groups[s]
	if m == nil {
		m = &member{scope: s, reach: s.reach()}
		var view *ads.View
		view, m.problems = c.view(s, nil)
		if s.face == gateway && view != nil {
			m.front = c.front(s.leaving, view)
		}
		m.group = serve.NewGroup(view)
		c.groups[s] = m
		c.needs.add(m)
	}
	m.streams++
	return m.group
}

// shared has a scope with the texts of its group: a proxy may name two hundred Services, and each of
// its streams would keep the names.
func (c *Catalog) shared(s Scope) Scope {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.groups[s]; m != nil {
		return m.scope
	}
	return s
}

// Leave is the end of a stream.
func (c *Catalog) Leave(s Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.groups[s]; m != nil {
		if m.streams--; m.streams == 0 {
			delete(c.groups, s)
			c.needs.remove(m)
		}
	}
}

// look is the difference that one look makes.
type look struct {
	before, after services
	changed       []types.NamespacedName
	// edged says that the gateways' own resources have.
	edged bool
	// differences of services, for all groups that need one.
	differences map[seen]difference
}

// difference between what was there and what is.
type difference struct {
	gone []ads.Key
	set  []*ads.Resource
}

func differenceOf(was, is []*ads.Resource) (d difference) {
	for _, r := range was {
		if !slices.ContainsFunc(is, func(other *ads.Resource) bool { return other.Type == r.Type && other.Name == r.Name }) {
			d.gone = append(d.gone, ads.Key{Type: r.Type, Name: r.Name})
		}
	}
	for _, r := range is {
		if !slices.Contains(was, r) {
			d.set = append(d.set, r)
		}
	}
	return d
}

// renew publishes to a group the changes of the services that it needs, and returns the
// problems of its view. Only the look that is being published calls it.
func (c *Catalog) renew(m *member, l *look, names []types.NamespacedName) []ir.Problem {
	before := m.group.View()
	if before == nil || m.scope.face == explicit { // whose few ports are looked at each
		view, problems := c.view(m.scope, before)
		if m.scope.face == gateway {
			m.front = c.front(m.scope.leaving, view)
		}
		m.group.Publish(view)
		return problems
	}
	var all difference
	consent := false
	for _, name := range names {
		d := l.difference(name, m.scope)
		all.gone, all.set = append(all.gone, d.gone...), append(all.set, d.set...)
		consent = consent || l.before[name].hiddenFrom(m.scope) != l.after[name].hiddenFrom(m.scope)
	}
	if m.scope.face == gateway && l.edged {
		front := c.front(m.scope.leaving, before)
		d := differenceOf(m.front, front)
		all.gone, all.set, m.front = append(all.gone, d.gone...), append(all.set, d.set...), front
	}
	m.group.PublishChanges(all.gone, all.set)
	if consent {
		return notExported(m.scope, c.hidden(m.scope))
	}
	return m.problems
}

// difference that a service makes to a scope. That of the many groups of redirected proxies
// is found once for those that know the service before and after, and so on.
func (l *look) difference(name types.NamespacedName, s Scope) difference {
	was, is := l.before[name], l.after[name]
	if s.face == gateway {
		return differenceOf(was.seenBy(s), is.seenBy(s))
	}
	k := seen{name, was.seenBy(s) != nil, is.seenBy(s) != nil}
	d, known := l.differences[k]
	if !known {
		d = differenceOf(was.seenBy(s), is.seenBy(s))
		if l.differences == nil {
			l.differences = map[seen]difference{}
		}
		l.differences[k] = d
	}
	return d
}

// seen says whether a scope saw a service, and sees it.
type seen struct {
	service types.NamespacedName
	was, is bool
}

// seenBy are the resources of a service in the view of a scope, apart from those that are made
// for one view; none if the service is not there or not known to the scope.
func (e *entry) seenBy(s Scope) []*ads.Resource {
	switch {
	case e == nil:
		return nil
	case s.face == redirected && e.service.KnownTo(s.Namespace):
		return e.resources
	case s.face == gateway && len(e.service.Hosts) > 0:
		return without(e.resources, ads.Listener, ads.Route)
	}
	return nil
}

// hiddenFrom says that a service is there, and that its owner does not export it to the
// namespace of a redirected proxy.
func (e *entry) hiddenFrom(s Scope) bool {
	return e != nil && s.face == redirected && !e.service.KnownTo(s.Namespace)
}

// hidden are the services of a scope that are hidden from it.
func (c *Catalog) hidden(s Scope) (names []types.NamespacedName) {
	if s.face == redirected {
		c.each(s.reach(), func(name types.NamespacedName, e *entry) {
			if e.hiddenFrom(s) {
				names = append(names, name)
			}
		})
	}
	return names
}

// each calls a function for the services of a reach that is not everything, each once.
func (c *Catalog) each(r reach, call func(types.NamespacedName, *entry)) {
	namespaces, names := r.parts()
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		for name, e := range c.namespaces[namespace] {
			call(name, e)
		}
	}
	for _, name := range names {
		if e := c.services[name]; e != nil && !slices.Contains(namespaces, name.Namespace) {
			call(name, e)
		}
	}
}
