// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
)

// Router is the router of one release.
type Router struct {
	of   *Provider
	name types.NamespacedName
}

var _ traffic.Router = Router{}

// Router returns the router of a release.
func (p *Provider) Router(name types.NamespacedName) Router {
	return Router{p, name}
}

// CapabilitiesOf returns the abilities of Traefiks: without the API of each of them, a split is Accepted at best, and
// requests are not counted.
func CapabilitiesOf(programs []Program) traffic.Capabilities {
	can := connectors.Traefik.Capabilities
	if slices.ContainsFunc(programs, func(p Program) bool { return p.URL == "" }) {
		can.Knowledge, can.Outcomes = traffic.Accepted, false
	}
	return can
}

// Capabilities implements traffic.Router.
func (r Router) Capabilities() traffic.Capabilities {
	return CapabilitiesOf(r.of.configured().Programs)
}

// Validate implements traffic.Router.
func (r Router) Validate(split traffic.Split) error {
	config := r.of.configured()
	return traefik.Check(split, CapabilitiesOf(config.Programs), config.Served)
}

// Apply implements traffic.Router: Traefiks get the split when they poll.
func (r Router) Apply(_ context.Context, split traffic.Split) error {
	if err := r.Validate(split); err != nil {
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, err)
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	own, highest := r.of.releaseOf(r.name), uint64(0)
	if own.told != nil {
		highest = own.told.Split.Sequence
	}
	if split.Sequence == 0 || split.Sequence < highest {
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, &traffic.LaterError{Sequence: highest})
	}
	told := traefik.Told{Split: cloneSplit(split), At: r.of.now(), Settle: r.of.config.Settle}
	if split.Sequence == highest {
		told.At = own.told.At
	}
	own.told = &told
	return nil
}

// Remove implements traffic.Router.
func (r Router) Remove(context.Context) error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.releaseOf(r.name).told = nil
	return nil
}

// Observe implements traffic.Router: it asks each Traefik.
func (r Router) Observe(ctx context.Context) (traffic.Observation, error) {
	told, fetched, err := r.told(ctx)
	if err != nil {
		return traffic.Observation{}, fmt.Errorf("observing release %s: %w", r.name, err)
	}
	if told == nil {
		return traefik.Observe(nil, nil), nil
	}
	config := r.of.configured()
	ports := config.portsOf(told.Split)
	programs := make([]traefik.Program, len(config.Programs))
	var all sync.WaitGroup
	for i, program := range config.Programs {
		programs[i] = traefik.Program{Name: program.Name, HasAPI: program.URL != "", Fetched: fetched}
		if program.URL == "" {
			continue
		}
		all.Go(func() { programs[i].States, programs[i].Err = program.states(ctx, config.Client, ports) })
	}
	all.Wait()
	seen := traefik.Observe(told, programs)
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	seen.Starved = r.of.releaseOf(r.name).starved(told.Split)
	return seen, nil
}

// told returns what the release's Traefiks were told, and whether one of them has fetched the configuration of now.
func (r Router) told(ctx context.Context) (*traefik.Told, bool, error) {
	r.of.mu.Lock()
	told := r.of.releaseOf(r.name).told
	r.of.mu.Unlock()
	document, err := r.of.render(ctx)
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	return told, r.of.fetched == sha256.Sum256(document), err
}

func (c Config) portsOf(split traffic.Split) (ports []traefik.Served) {
	for _, s := range c.Served {
		if s.Service.Namespace == split.Namespace && s.Service.Name == split.Service {
			ports = append(ports, s)
		}
	}
	return ports
}
