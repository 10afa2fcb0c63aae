// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// maxCells bounds the cells of a release that are kept: two hours of eight variations at one Traefik.
const maxCells = 6_000

// look is what one Traefik told at one time.
type look struct {
	at      time.Time
	metrics traefik.Metrics
	// sequences are those in force before the metrics were read, by release.
	sequences map[types.NamespacedName]uint64
	err       error
}

// counts are what was counted of one release.
type counts struct {
	epoch int64
	next  uint64
	cells []traffic.Cell
	// lost is the last cell of each part that is not kept.
	lost map[string]traffic.Position
	// seen is what each Traefik did under one sequence.
	seen map[string]traefik.Seen
	of   uint64
}

// LastFailure returns the errors of the last look at each Traefik; "" if all looks succeeded.
func (p *Provider) LastFailure() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var failures []string
	for _, program := range slices.Sorted(maps.Keys(p.looks)) {
		if err := p.looks[program].err; err != nil {
			failures = append(failures, err.Error())
		}
	}
	return strings.Join(failures, "; ")
}

// Count looks at the metrics of each Traefik, and counts what came since the look before. The first look at a Traefik
// counts nothing.
func (p *Provider) Count(ctx context.Context) {
	config := p.configured()
	for _, program := range config.Programs {
		if program.URL == "" {
			continue
		}
		before, released := p.sequences(ctx, config, program)
		metrics, err := program.metrics(ctx, config.Client)
		after, _ := p.sequences(ctx, config, program)
		p.mu.Lock()
		last, looked := p.looks[program.Name]
		now := look{p.now(), metrics, before, err}
		switch {
		case err != nil: // what came meanwhile is counted by the next look that succeeds
			last.err = err
			p.looks[program.Name] = last
		case looked && last.sequences != nil:
			p.count(program, last, now, after, released)
			fallthrough
		default:
			p.looks[program.Name] = now
		}
		p.mu.Unlock()
	}
}

// sequences returns the sequence in force of each release at a Traefik, and the split that each was told. An unknown
// sequence is 0.
func (p *Provider) sequences(ctx context.Context, config Config, program Program) (map[types.NamespacedName]uint64, map[types.NamespacedName]traffic.Split) {
	p.mu.Lock()
	splits := map[types.NamespacedName]traffic.Split{}
	for name, r := range p.releases {
		if r.told != nil {
			splits[name] = r.told.Split
		}
	}
	p.mu.Unlock()
	sequences := map[types.NamespacedName]uint64{}
	for name, split := range splits {
		states, err := program.states(ctx, config.Client, config.portsOf(split))
		if err != nil || len(states) == 0 {
			continue
		}
		sequences[name] = states[0].Sequence
		for _, s := range states[1:] {
			if s.Sequence != states[0].Sequence {
				sequences[name] = 0
			}
		}
	}
	return sequences, splits
}

// count adds what came between two looks to each release. The caller has the lock.
func (p *Provider) count(program Program, last, now look, after map[types.NamespacedName]uint64, splits map[types.NamespacedName]traffic.Split) {
	came := now.metrics.Since(last.metrics)
	id := fnv.New64a()
	_, _ = fmt.Fprintf(id, "%s %f", program.Name, now.metrics.Started) // a hash takes all bytes
	for name, split := range splits {
		own, known := p.releases[name]
		if !known { // the release is gone
			continue
		}
		sequence := last.sequences[name]
		if after[name] != sequence || now.metrics.Started != last.metrics.Started {
			sequence = 0
		}
		seen := traefik.Seen{Reloads: came.Reloads, By: map[string]uint64{}}
		for _, port := range p.config.portsOf(split) {
			for _, share := range split.Shares {
				c, failedOver := came.Of(port, share.Variation)
				seen.Requests += c.Answered
				seen.By[share.Variation] += c.Answered
				own.add(cellOf(c, failedOver, id.Sum64()|1, traffic.Cell{
					Part: program.Name, Variation: share.Variation, Port: port.Port, Sequence: sequence,
					Start: now.at.Truncate(p.every), From: last.at, To: now.at,
				}))
			}
		}
		if sequence != 0 {
			own.saw(program.Name, sequence, seen)
		}
	}
}

func cellOf(c, failedOver traefik.Counts, id uint64, cell traffic.Cell) traffic.Cell {
	cell.Over, cell.Failed, cell.ClientErrors, cell.FailedOver = c.Answered, c.Failed, c.ClientErrors, failedOver.Answered
	n, x := float64(c.Answered), float64(c.Failed)
	cell.Spread = traffic.Spread{Proxies: 1, N: c.Answered, X: c.Failed, NN: n * n, XN: x * n, XX: x * x}
	cell.Busiest = traffic.Reporter{ID: id, N: c.Answered, X: c.Failed}
	if c.Failed > 0 {
		cell.Loudest = cell.Busiest
	}
	cell.Coverage = traffic.Coverage{Expected: 1, Telling: 1}
	return cell
}

// add keeps a cell that has counted something.
func (c *counts) add(cell traffic.Cell) {
	if cell.Over+cell.FailedOver == 0 {
		return
	}
	c.next++
	cell.Position = traffic.Position{Epoch: c.epoch, Cell: c.next}
	c.cells = append(c.cells, cell)
	if len(c.cells) > maxCells {
		if c.lost == nil {
			c.lost = map[string]traffic.Position{}
		}
		c.lost[c.cells[0].Part] = c.cells[0].Position
		c.cells = c.cells[1:]
	}
}

// saw adds what a Traefik did under a sequence, and forgets what was done under another one.
func (c *counts) saw(program string, sequence uint64, seen traefik.Seen) {
	if c.of != sequence || c.seen == nil {
		c.of, c.seen = sequence, map[string]traefik.Seen{}
	}
	all := c.seen[program]
	all.Requests, all.Reloads = all.Requests+seen.Requests, all.Reloads+seen.Reloads
	by := maps.Clone(seen.By)
	for variation, n := range all.By {
		by[variation] += n
	}
	all.By = by
	c.seen[program] = all
}

// starved returns the variations of a split that cannot have their share, by Traefik.
func (c *counts) starved(split traffic.Split) (all []traffic.Starved) {
	if c.of != split.Sequence {
		return nil
	}
	for _, program := range slices.Sorted(maps.Keys(c.seen)) {
		for _, s := range traefik.FindStarved(split.Shares, c.seen[program]) {
			s.Part = program
			all = append(all, s)
		}
	}
	return all
}

// Measure implements traffic.Router.
func (r Router) Measure(_ context.Context, since traffic.Cursor) (traffic.Measurement, error) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	own := r.of.releaseOf(r.name)
	m := traffic.Measurement{Next: since, Wanted: len(r.of.config.Programs)}
	for _, c := range own.cells {
		if isAfter(c.Position, since[c.Part]) {
			m.Cells, m.Next = append(m.Cells, c), m.Next.Advance(c.Part, c.Position)
		}
	}
	for part, lost := range own.lost {
		if isAfter(lost, since[part]) {
			m.Lost = append(m.Lost, part)
		}
	}
	for _, program := range r.of.config.Programs {
		if program.URL == "" || r.of.looks[program.Name].err != nil {
			m.Unheard = append(m.Unheard, program.Name)
		}
	}
	slices.SortFunc(m.Lost, strings.Compare)
	return m, nil
}

func isAfter(p, read traffic.Position) bool {
	return p.Epoch > read.Epoch || p.Epoch == read.Epoch && p.Cell > read.Cell
}
