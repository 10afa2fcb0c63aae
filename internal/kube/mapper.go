// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
)

const (
	// listTime bounds one listing of what is served.
	listTime = 10 * time.Second
	// minListInterval and maxListInterval bound how soon the API server is asked
	// again after a listing that lacked a kind.
	minListInterval = time.Second
	maxListInterval = 10 * time.Second
)

// Lister lists everything that an API server serves; *discovery.DiscoveryClient does,
// with two calls.
type Lister interface {
	ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Mapper is a [meta.RESTMapper] whose cost does not depend on the kinds that callers
// name: every tenant may name kinds that the API server does not serve. Mapper lists all
// kinds at once, and lists them again when a kind is unknown, but not sooner than the
// last interval allows. A caller that asks for a known kind never waits for a listing.
// The methods may be called from any goroutine.
type Mapper struct {
	lister Lister
	clock  clock.PassiveClock

	// busy is held during a listing.
	busy sync.Mutex

	mu   sync.Mutex
	last listing
	// interval is how long after the last attempt an unknown kind lists again.
	interval time.Duration
}

// listing is the result of the attempts to list all kinds.
type listing struct {
	// known is nil before the first listing that succeeded.
	known  meta.RESTMapper
	groups map[string]*restmapper.APIGroupResources
	// failed are the groups that the API server could not tell.
	failed map[string]error
	// err is the failure of the last attempt, which was made at the time at.
	err error
	at  time.Time
}

var _ meta.RESTMapper = &Mapper{}

// ErrGroupUnavailable says that the API server answers, but could not tell what one
// group serves, as when an aggregated API server is away.
var ErrGroupUnavailable = errors.New("the API server does not tell the kinds of this group")

// ErrKindsNotListed says that the last listing that succeeded lacks a kind, and that the
// API server did not answer when it was asked for a newer one.
var ErrKindsNotListed = errors.New("the API server does not tell its kinds")

// NewMapper makes a mapper that has listed nothing yet.
func NewMapper(lister Lister, passive clock.PassiveClock) *Mapper {
	return &Mapper{lister: lister, clock: passive}
}

// errNotListed is the answer before the first listing.
var errNotListed = errors.New("the kinds that the API server serves are not listed yet")

// NewMapperFor makes a mapper that asks the API server of a configuration.
func NewMapperFor(config *rest.Config, client *http.Client) (*Mapper, error) {
	lister, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	return NewMapper(lister, clock.RealClock{}), nil
}

// MapperFor makes the mapper of a manager; see its MapperProvider.
func MapperFor(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	m, err := NewMapperFor(config, client)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// list asks the API server for all kinds. The result keeps, from the listing before, the
// kinds of each group that the API server cannot tell now.
func (m *Mapper) list(before listing) (listing, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	groups, resources, err := m.lister.ServerGroupsAndResourcesWithContext(ctx)
	var partly *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partly) {
		return listing{}, fmt.Errorf("listing the kinds that the API server serves: %w", err)
	}
	now := listing{groups: byGroup(groups, resources), failed: map[string]error{}}
	if partly != nil {
		for gv, cause := range partly.Groups {
			now.failed[gv.Group] = cause
		}
	}
	for group := range now.failed {
		if kept := before.groups[group]; kept != nil {
			now.groups[group] = kept
		}
	}
	all := make([]*restmapper.APIGroupResources, 0, len(now.groups))
	for _, g := range groups { // in the server's order of preference
		if known := now.groups[g.Name]; known != nil {
			all = append(all, known)
		}
	}
	now.known = restmapper.NewDiscoveryRESTMapper(all)
	return now, nil
}

func byGroup(groups []*metav1.APIGroup, resources []*metav1.APIResourceList) map[string]*restmapper.APIGroupResources {
	lists := map[string][]metav1.APIResource{}
	for _, r := range resources {
		lists[r.GroupVersion] = r.APIResources
	}
	known := map[string]*restmapper.APIGroupResources{}
	for _, g := range groups {
		k := &restmapper.APIGroupResources{Group: *g, VersionedResources: map[string][]metav1.APIResource{}}
		for _, version := range g.Versions {
			if list, ok := lists[version.GroupVersion]; ok {
				k.VersionedResources[version.Version] = list
			}
		}
		known[g.Name] = k
	}
	return known
}

// look answers a question from the last listing, and lists anew where that listing lacks
// the answer and the interval is over.
func (m *Mapper) look(group string, ask func(meta.RESTMapper) error) error {
	last, _ := m.state()
	lacking, err := last.answer(group, ask)
	if lacking {
		_, err = m.refresh().answer(group, ask)
	}
	return err
}

// state returns the last listing, and whether the interval after it is over.
func (m *Mapper) state() (last listing, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.last.at.IsZero() || m.clock.Since(m.last.at) >= m.interval
}

// ServesScale tells whether any version of a resource serves the subresource /scale: a write
// through one version changes all versions. The answer "no" is believed only
// of a listing that is younger than the interval, so that a kind that gains /scale is
// seen; for that answer ServesScale may wait for a listing. known is false where the API
// server could not tell.
func (m *Mapper) ServesScale(resource schema.GroupResource) (served, known bool) {
	last, due := m.state()
	served, known = last.scale(resource)
	if due && !served {
		served, known = m.refresh().scale(resource)
	}
	return served, known
}

func (l listing) scale(resource schema.GroupResource) (served, known bool) {
	group := l.groups[resource.Group]
	if group == nil {
		return false, false
	}
	for _, list := range group.VersionedResources {
		for i := range list {
			switch list[i].Name {
			case resource.Resource + "/scale":
				return true, true
			case resource.Resource:
				known = true
			}
		}
	}
	return false, known && l.err == nil && l.failed[resource.Group] == nil
}

// refresh lists all kinds if the interval is over, and returns the last listing. A
// listing that failed leaves the known kinds, and counts for the interval.
func (m *Mapper) refresh() listing {
	m.busy.Lock()
	defer m.busy.Unlock()
	last, due := m.state()
	if !due { // another caller has just listed them
		return last
	}
	now, err := m.list(last)
	if err != nil {
		now, now.err = last, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now.at = m.clock.Now()
	if m.interval = min(max(2*m.interval, minListInterval), maxListInterval); now.known == nil {
		m.interval = minListInterval
	}
	m.last = now
	return now
}

// FindListed answers like RESTMapping, from the last listing alone: FindListed never
// waits and never makes a call.
func (m *Mapper) FindListed(kind schema.GroupKind, versions ...string) (mapping *meta.RESTMapping, err error) {
	last, _ := m.state()
	_, err = last.answer(kind.Group, func(known meta.RESTMapper) (err error) {
		mapping, err = known.RESTMapping(kind, versions...)
		return err
	})
	return mapping, err
}

// Refresh lists all kinds if the interval is over, and tells whether there is a newer
// listing than before the call. It may wait for the API server.
func (m *Mapper) Refresh() bool {
	before, _ := m.state()
	return m.refresh().at.After(before.at)
}

// answer asks a listing. A kind that the listing lacks is unknown only if the API
// server could tell it.
func (l listing) answer(group string, ask func(meta.RESTMapper) error) (lacking bool, err error) {
	if l.known != nil {
		if err = ask(l.known); !meta.IsNoMatchError(err) {
			return false, err
		}
	}
	switch cause := l.failed[group]; {
	case l.err != nil && l.known != nil:
		return true, fmt.Errorf("%w: %w", ErrKindsNotListed, l.err)
	case l.err != nil:
		return true, l.err
	case cause != nil:
		return true, fmt.Errorf("%w: %s: %w", ErrGroupUnavailable, group, cause)
	case l.known == nil:
		return true, errNotListed
	default:
		return true, err
	}
}

// KindFor implements meta.RESTMapper.
func (m *Mapper) KindFor(resource schema.GroupVersionResource) (kind schema.GroupVersionKind, err error) {
	err = m.look(resource.Group, func(known meta.RESTMapper) (err error) {
		kind, err = known.KindFor(resource)
		return err
	})
	return kind, err
}

// KindsFor implements meta.RESTMapper.
func (m *Mapper) KindsFor(resource schema.GroupVersionResource) (kinds []schema.GroupVersionKind, err error) {
	err = m.look(resource.Group, func(known meta.RESTMapper) (err error) {
		kinds, err = known.KindsFor(resource)
		return err
	})
	return kinds, err
}

// ResourceFor implements meta.RESTMapper.
func (m *Mapper) ResourceFor(input schema.GroupVersionResource) (resource schema.GroupVersionResource, err error) {
	err = m.look(input.Group, func(known meta.RESTMapper) (err error) {
		resource, err = known.ResourceFor(input)
		return err
	})
	return resource, err
}

// ResourcesFor implements meta.RESTMapper.
func (m *Mapper) ResourcesFor(input schema.GroupVersionResource) (resources []schema.GroupVersionResource, err error) {
	err = m.look(input.Group, func(known meta.RESTMapper) (err error) {
		resources, err = known.ResourcesFor(input)
		return err
	})
	return resources, err
}

// RESTMapping implements meta.RESTMapper.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (mapping *meta.RESTMapping, err error) {
	err = m.look(kind.Group, func(known meta.RESTMapper) (err error) {
		mapping, err = known.RESTMapping(kind, versions...)
		return err
	})
	return mapping, err
}

// RESTMappings implements meta.RESTMapper.
func (m *Mapper) RESTMappings(kind schema.GroupKind, versions ...string) (mappings []*meta.RESTMapping, err error) {
	err = m.look(kind.Group, func(known meta.RESTMapper) (err error) {
		mappings, err = known.RESTMappings(kind, versions...)
		return err
	})
	return mappings, err
}

// ResourceSingularizer implements meta.RESTMapper.
func (m *Mapper) ResourceSingularizer(resource string) (singular string, err error) {
	err = m.look("", func(known meta.RESTMapper) (err error) {
		singular, err = known.ResourceSingularizer(resource)
		return err
	})
	return singular, err
}
