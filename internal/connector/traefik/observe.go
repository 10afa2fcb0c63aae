// SPDX-License-Identifier: Apache-2.0

package traefik

import (
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Program is what is known of one Traefik.
type Program struct {
	Name string
	// HasAPI says that the Traefik can be asked. Without it the configuration was Fetched at best.
	HasAPI, Fetched bool
	// States are those of the ports of the split's Service; Err is why these are not known.
	States []State
	Err    error
}

// Told is what Traefik was told, and when.
type Told struct {
	Split traffic.Split
	At    time.Time
	// Settle is how long after At a split counts that cannot be read back.
	Settle time.Duration
}

// Observe returns what all programs know of a split; told is nil where none was applied.
func Observe(told *Told, programs []Program) traffic.Observation {
	if told == nil {
		return traffic.Observation{Knowledge: traffic.Unknown}
	}
	seen := traffic.Observation{Sequence: told.Split.Sequence, Knowledge: traffic.Proven, Wanted: len(programs)}
	if len(programs) == 0 {
		seen.Sequence, seen.Knowledge = 0, traffic.NoProxies
	}
	for _, share := range told.Split.Shares {
		seen.Arms = append(seen.Arms, traffic.Arm{Variation: share.Variation})
	}
	for _, p := range programs {
		has, knowledge, why := p.knows(told.Split)
		seen.Knowledge, seen.Sequence = seen.Knowledge.Weaker(knowledge), min(seen.Sequence, has)
		if knowledge == traffic.Accepted {
			seen.SettledAt = told.At.Add(told.Settle)
		}
		if has > told.Split.Sequence {
			seen.Ahead = max(seen.Ahead, has)
		}
		if why == "" {
			seen.Acknowledged++
			continue
		}
		seen.OutOfSync = append(seen.OutOfSync, traffic.OutOfSync{Name: p.Name, Has: has, Why: why, Since: told.At})
	}
	slices.SortStableFunc(seen.OutOfSync, func(a, b traffic.OutOfSync) int { return strings.Compare(a.Name, b.Name) })
	if seen.Knowledge == traffic.Contradicted {
		seen.Sequence = 0
	}
	return seen
}

// knows returns the sequence that a program has, how it is known, and why the split is not in force there.
func (p Program) knows(split traffic.Split) (has uint64, knowledge traffic.Knowledge, why string) {
	switch {
	case !p.HasAPI && p.Fetched:
		return split.Sequence, traffic.Accepted, ""
	case !p.HasAPI:
		return 0, traffic.Unknown, "no Traefik has fetched the configuration yet"
	case p.Err != nil:
		return 0, traffic.Unknown, p.Err.Error()
	case len(p.States) == 0:
		return 0, traffic.Unknown, "it serves no port of the Service"
	}
	has, knowledge = split.Sequence, traffic.Proven
	for _, s := range p.States {
		switch {
		case s.Divides(split):
		case s.Sequence > split.Sequence:
			return s.Sequence, traffic.Contradicted, "it has a split of a later sequence"
		case s.Sequence == split.Sequence:
			has, knowledge, why = 0, knowledge.Weaker(traffic.Contradicted), "it has other weights under the sequence"
		default:
			has, knowledge, why = min(has, s.Sequence), knowledge.Weaker(traffic.Unknown), "it has another split, or is without one"
		}
	}
	return has, knowledge, why
}
