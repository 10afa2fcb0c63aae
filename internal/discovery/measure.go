// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

// measured is how many cells of a replica are looked at for one measurement.
const measured = 20_000

// part is a replica whose cells are known here.
type part interface {
	Cells(after signals.Position, limit int) (cells []signals.Told, lost bool)
}

// Measure implements traffic.Router: the parts are the replicas of the discovery server.
func (e *Envoy) Measure(ctx context.Context, since traffic.Cursor) (traffic.Measurement, error) {
	on, err := e.of.ground()
	if err != nil {
		return traffic.Measurement{}, err
	}
	service, r, err := on.serviceOf(ctx, e.release)
	if err != nil {
		return traffic.Measurement{}, fmt.Errorf("measuring release %s: %w", e.release, err)
	}
	parts, unheard, known := on.parts()
	if !known {
		return traffic.Measurement{}, fmt.Errorf("measuring release %s: %w", e.release, errNotLeading)
	}
	wanted, err := on.wanted(ctx, service, &r)
	if err != nil {
		return traffic.Measurement{}, fmt.Errorf("measuring release %s: %w", e.release, err)
	}
	_, shared := on.catalog.Edge()
	_, applied := e.since(service.Sequence, shared)
	m := read(types.NamespacedName{Namespace: service.Namespace, Name: service.Name}, applied, parts, since)
	m.Unheard, m.Wanted = unheard, len(wanted)
	return m, nil
}

// parts are all replicas; false when it is not known which there are.
func (g *ground) parts() (parts map[string]part, unheard []string, known bool) {
	mirrors, known := g.others.all()
	parts = map[string]part{g.others.Name: g.counts}
	for name, mirror := range mirrors {
		parts[name] = mirror
		if !mirror.Heard(g.clock.Now()) {
			unheard = append(unheard, name)
		}
	}
	slices.Sort(unheard)
	return parts, unheard, known
}

// read the cells of a service after a cursor.
func read(service types.NamespacedName, applied []acknowledged.Applied, parts map[string]part, since traffic.Cursor) traffic.Measurement {
	m := traffic.Measurement{Next: traffic.Cursor{}}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		position := since[name]
		cells, lost := parts[name].Cells(signals.Position{Epoch: position.Epoch, Number: position.Cell}, measured)
		if lost {
			m.Lost = append(m.Lost, name)
		}
		m.More = m.More || len(cells) == measured
		for _, told := range cells {
			position = traffic.Position{Epoch: told.Epoch, Cell: told.Number}
			if told.Slot.Namespace != service.Namespace || told.Slot.Service != service.Name {
				continue
			}
			if cell, err := signals.DecodeCell(told.Data); err == nil { // it was read when it was told
				m.Cells = append(m.Cells, cellOf(name, position, &cell, applied))
			}
		}
		if position != (traffic.Position{}) {
			m.Next[name] = position
		}
	}
	for name := range since {
		if parts[name] == nil { // it has ended, and what it counted last is not known
			m.Lost = append(m.Lost, name)
		}
	}
	slices.Sort(m.Lost)
	return m
}

func cellOf(part string, at traffic.Position, c *signals.Cell, applied []acknowledged.Applied) traffic.Cell {
	over, failed := c.Counts.Outcomes()
	sequence := c.Stratum.Sequence
	if c.Stratum.Shared {
		sequence = acknowledged.Within(applied, sequence)
	}
	return traffic.Cell{
		Part: part, Position: at, Variation: c.Variation, Port: c.Port, Start: c.Start, From: c.From, To: c.To, Sequence: sequence,
		Over: over, Failed: failed, ClientErrors: c.Counts[signals.Class4], FailedOver: c.Counts[signals.FailedOver],
		Latency: slices.Clone(c.Counts.Latency()), Spread: traffic.Spread(c.Spread), Coverage: traffic.Coverage(c.Coverage),
		Loudest: traffic.Reporter(c.Loudest), Busiest: traffic.Reporter(c.Busiest),
	}
}

// stratumOf is what a proxy of this replica has acknowledged of the route of a slot: its own one, or
// that of gateways.
func (s *service) stratumOf(podUID string, of signals.Slot) signals.Stratum {
	if v, has := s.told.index.Acknowledged(podUID, envoyname.RouteName(of.Namespace, of.Service, of.Port)); has {
		return signals.Stratum{Sequence: v.Sequence}
	}
	routes, _ := s.catalog.Edge()
	var lowest ads.Version
	for _, name := range routes {
		v, has := s.told.index.Acknowledged(podUID, name)
		if has && (lowest.Sequence == 0 || v.Sequence < lowest.Sequence) {
			lowest = v
		}
	}
	return signals.Stratum{Sequence: lowest.Sequence, Shared: lowest.Sequence > 0}
}
