// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The kinds of Plumbline that a mesh is made of.
const (
	releaseKind  = "ABRelease"
	baselineKind = "Baseline"
)

// How often it is asked for a kind that is not there, and when nobody answered.
const (
	kindsAgain    = 30 * time.Second
	unansweredYet = time.Second
)

// kind is one of Plumbline's, which may not be installed.
type kind struct {
	object  client.Object
	handler toolscache.ResourceEventHandler
	// field of the index of the objects that count, and its values.
	field string
	index client.IndexerFunc
}

// kindsThat tell of changes, by name.
func (s *sources) kindsThat(changed changed) map[string]kind {
	return map[string]kind{
		releaseKind:  {&v1alpha1.ABRelease{}, s.onReleases(changed), releaseField, serviceOfRelease},
		baselineKind: {&v1alpha1.Baseline{}, s.onBaselines(changed), quarantineField, inQuarantine},
	}
}

// watchKinds watches each kind as soon as it is there. Services that nobody divides
// are served without.
func (s *sources) watchKinds(ctx context.Context, changed changed) {
	kinds := s.kindsThat(changed)
	indexed := map[string]bool{}
	told := false
	for len(kinds) > 0 && ctx.Err() == nil {
		wait := kindsAgain
		installed, err := s.installed()
		if err != nil {
			s.log.Info("asking which kinds there are; it is asked again", "error", err.Error())
			wait = unansweredYet
		}
		for name, k := range kinds {
			if err == nil && slices.Contains(installed, name) && s.follow(ctx, name, k, indexed) {
				delete(kinds, name)
				changed(AtOnce, dirty{everything: true})
			}
		}
		if err == nil {
			s.answered(kinds)
			if len(kinds) > 0 && !told {
				told = true
				s.log.Info("the cluster does not have all kinds of Plumbline: without ABReleases requests are not divided, and without Baselines there is no quarantine; install the chart's kinds", "missing", len(kinds))
			}
		}
		select {
		case <-ctx.Done():
		case <-s.clock.After(wait):
		}
	}
}

// follow has a kind cached, and waits until it is.
func (s *sources) follow(ctx context.Context, name string, k kind, indexed map[string]bool) bool {
	if !indexed[name] { // which can be done once
		if err := s.cache.IndexField(ctx, k.object, k.field, k.index); err != nil {
			s.log.Error(err, "it is tried again", "kind", name)
			return false
		}
		indexed[name] = true
	}
	if err := s.handle(ctx, k.object, k.handler); err != nil {
		s.log.Error(err, "it is tried again", "kind", name)
		return false
	}
	informer, err := s.cache.GetInformer(ctx, k.object)
	if err != nil {
		s.log.Error(err, "it is tried again", "kind", name)
		return false
	}
	// GetInformer waits only in a cache that has begun. A kind that is not synced yet
	// would be taken for missing.
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[name] = true
	return true
}

// installed are the kinds that the API server has.
func (s *sources) installed() (names []string, err error) {
	list, err := s.api.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return kindsOf(list), nil
}

func kindsOf(list *metav1.APIResourceList) (names []string) {
	for _, r := range list.APIResources {
		names = append(names, r.Kind)
	}
	return names
}

// answered opens the way: those that are missing are not there.
func (s *sources) answered(missing map[string]kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range missing {
		if _, known := s.kinds[name]; !known {
			s.kinds[name] = false
		}
	}
	if len(s.kinds) == 2 && !s.decided {
		s.decided = true
		close(s.known)
	}
}

// has says whether a kind is cached.
func (s *sources) has(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kinds[kind]
}

// synced waits until all that is there is cached.
func (s *sources) synced(ctx context.Context) bool {
	if !s.cache.WaitForCacheSync(ctx) {
		return false
	}
	select {
	case <-s.known:
		return true
	case <-ctx.Done():
		return false
	}
}
