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

// Mapper is a [meta.RESTMapper] whose cost does not depend on what it is asked. It
// lists all kinds at once, and lists them again when a kind is unknown, but not sooner
// than the last interval allows: anybody may name kinds that nobody serves. Its methods
// may be called from any goroutine.
type Mapper struct {
	lister Lister
	clock  clock.PassiveClock

	mu sync.Mutex
	// current is nil before the first listing.
	current meta.RESTMapper
	groups  map[string]*restmapper.APIGroupResources
	// failed are the groups that the last listing could not tell anything of.
	failed   map[string]error
	listedAt time.Time
	interval time.Duration
}

var _ meta.RESTMapper = &Mapper{}

// ErrGroupUnavailable says that the API server answers, but could not tell what one
// group serves, as when an aggregated API server is away.
var ErrGroupUnavailable = errors.New("the API server does not tell the kinds of this group")

// NewMapper makes a mapper that has listed nothing yet.
func NewMapper(lister Lister, passive clock.PassiveClock) *Mapper {
	return &Mapper{lister: lister, clock: passive}
}

// MapperFor makes the mapper of a manager; see its MapperProvider.
func MapperFor(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	lister, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	return NewMapper(lister, clock.RealClock{}), nil
}

// Reset has the next question about an unknown kind list anew, as when a kind was
// installed. A mapper of another type is left as it is.
func Reset(mapper meta.RESTMapper) {
	if m, ok := mapper.(*Mapper); ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.listedAt, m.interval = time.Time{}, 0
	}
}

// list asks the API server for everything. What it cannot tell of a group now is kept
// from before.
func (m *Mapper) list() error {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	groups, resources, err := m.lister.ServerGroupsAndResourcesWithContext(ctx)
	var partly *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partly) {
		return fmt.Errorf("listing the kinds that the API server serves: %w", err)
	}
	failed := map[string]error{}
	if partly != nil {
		for gv, cause := range partly.Groups {
			failed[gv.Group] = cause
		}
	}
	known := byGroup(groups, resources)
	for group := range failed {
		if before := m.groups[group]; before != nil {
			known[group] = before
		}
	}
	all := make([]*restmapper.APIGroupResources, 0, len(known))
	for _, g := range groups { // in the server's order of preference
		if k := known[g.Name]; k != nil {
			all = append(all, k)
		}
	}
	m.current, m.groups, m.failed = restmapper.NewDiscoveryRESTMapper(all), known, failed
	return nil
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

// look answers a question from the last listing, and lists anew where the answer is
// unknown and the interval is over.
func (m *Mapper) look(group string, ask func(meta.RESTMapper) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil {
		if err := m.list(); err != nil {
			return err
		}
		m.listed()
	}
	err := ask(m.current)
	if meta.IsNoMatchError(err) && m.clock.Since(m.listedAt) >= m.interval {
		if err := m.list(); err != nil {
			return err
		}
		m.listed()
		err = ask(m.current)
	}
	if cause := m.failed[group]; cause != nil && meta.IsNoMatchError(err) {
		return fmt.Errorf("%w: %s: %w", ErrGroupUnavailable, group, cause)
	}
	return err
}

// listed notes a listing, and doubles the interval up to its bound.
func (m *Mapper) listed() {
	m.listedAt = m.clock.Now()
	m.interval = min(max(2*m.interval, minListInterval), maxListInterval)
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
