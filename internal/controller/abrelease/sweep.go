// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// dropsAtOnce is how many entries are dropped in one sweep: the API server is asked once more
// for each Service.
const dropsAtOnce = 100

// Services tell which of them there are.
type Services interface {
	Services(ctx context.Context) (map[types.NamespacedName]bool, error)
}

// Reporters know of which Services proxies have a route, at all replicas; it is an error if that
// is not known of all.
type Reporters interface {
	Reported() (map[types.NamespacedName]bool, error)
}

// Sweeper takes the entries of Services that are gone out of the ledger, while its process leads.
type Sweeper struct {
	Ledger *Ledger
	// Client reads from the cache, Live past it.
	Client, Live client.Reader
	Services     Services
	Reporters    Reporters
	Clock        clock.PassiveClock
	Log          logr.Logger
	Times        Times

	// unreported are the Services that were due in the last sweep, and of which no proxy had a
	// route: one that was between two streams then has begun the next one since.
	unreported map[types.NamespacedName]bool
}

// Run sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(s.Times.withDefaults().Sweep)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.Log.Info("the sequences of Services that are gone stay; it is tried again", "error", err.Error())
			}
		}
	}
}

// Sweep looks once. A release that nobody has seen end is noted to be gone first.
func (s *Sweeper) Sweep(ctx context.Context) error {
	entries, err := s.Ledger.Known(ctx)
	if err != nil {
		return err
	}
	if err := s.settle(ctx, entries); err != nil {
		return err
	}
	services, err := s.Services.Services(ctx)
	if err != nil {
		return fmt.Errorf("looking at Services: %w", err)
	}
	look := release.Look{
		Now: s.Clock.Now(), KeptFor: s.Times.withDefaults().KeptFor,
		Present: func(service types.NamespacedName) bool { return services[service] },
	}
	drop, err := s.forgotten(ctx, look.Due(entries))
	if err != nil {
		return err
	}
	return s.Ledger.Sweep(ctx, look, drop)
}

// settle has the ledger know of each holder that is not there.
func (s *Sweeper) settle(ctx context.Context, entries map[string]release.Entry) error {
	for key, e := range entries {
		if e.Holder == "" {
			continue
		}
		namespace, _, _ := strings.Cut(key, ".")
		holder := types.NamespacedName{Namespace: namespace, Name: e.Release}
		var r v1alpha1.ABRelease
		if err := s.Client.Get(ctx, holder, &r); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("looking for release %s: %w", holder, err)
		}
		if string(r.UID) == e.Holder {
			continue
		}
		if err := s.Ledger.Settle(ctx, holder); err != nil { // which believes no cache
			return err
		}
	}
	return nil
}

// forgotten are those of the Services that are due of which no proxy has a route, now and in
// the last sweep, and that are not there by the API server's own word.
func (s *Sweeper) forgotten(ctx context.Context, due []types.NamespacedName) (drop []types.NamespacedName, err error) {
	before := s.unreported
	s.unreported = map[types.NamespacedName]bool{}
	if len(due) == 0 {
		return nil, nil
	}
	reported, err := s.Reporters.Reported()
	if err != nil {
		return nil, fmt.Errorf("asking of which Services proxies have routes: %w", err)
	}
	for _, service := range due {
		if reported[service] {
			continue
		}
		s.unreported[service] = true
		if !before[service] || len(drop) == dropsAtOnce {
			continue
		}
		there, err := s.there(ctx, service)
		if err != nil {
			return nil, err
		}
		if !there {
			drop = append(drop, service)
		}
	}
	return drop, nil
}

func (s *Sweeper) there(ctx context.Context, service types.NamespacedName) (bool, error) {
	var found metav1.PartialObjectMetadata
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	err := s.Live.Get(ctx, service, &found)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("looking for Service %s: %w", service, err)
	}
	return err == nil, nil
}
