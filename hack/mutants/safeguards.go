// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/campaign"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/safeguard"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/score"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/trial"
)

// wantedSafeguards is the part of the safeguards, in percent, whose loss tests must notice.
const wantedSafeguards = 95

// safeguards holds the inputs of a run over the list of safeguards.
type safeguards struct {
	options
	*workplace
	// mutants lack one safeguard each; numbers count them from 1.
	mutants []mutation.Mutant
	entries map[mutation.Key]safeguard.Entry
	numbers map[mutation.Key]int

	mu       sync.Mutex
	packages map[string]*testedPackage
	// simulated are the mutants that the simulator alone noticed.
	simulated map[mutation.Key]bool
}

// measureSafeguards removes one safeguard at a time. The unit tests have to notice, and
// where they do not, the simulator.
func (o *options) measureSafeguards(ctx context.Context, w *workplace) error {
	list, err := readFile(o.safeguards, safeguard.ReadList)
	if err != nil {
		return err
	}
	if list, err = o.chooseEntries(list); err != nil {
		return err
	}
	s := &safeguards{
		options: *o, workplace: w, entries: map[mutation.Key]safeguard.Entry{}, numbers: map[mutation.Key]int{},
		packages: map[string]*testedPackage{}, simulated: map[mutation.Key]bool{},
	}
	if err := s.mutate(list); err != nil {
		return err
	}
	outcomes, err := campaign.TryMutants(ctx, s.mutants, len(s.mutants), o.workers, s.try)
	stopped := ctx.Err() != nil
	if err != nil && !stopped {
		return err
	}
	low := s.report(outcomes)
	switch {
	case stopped:
		s.say("stopped after %d of %d safeguards: %v\n", len(outcomes), len(s.mutants), context.Cause(ctx))
		return errStopped
	case low:
		return errors.New("the loss of too many safeguards is not noticed")
	}
	return nil
}

// chooseEntries keeps the entries of the packages that were asked for, with a name that
// matches.
func (o *options) chooseEntries(list []safeguard.Entry) ([]safeguard.Entry, error) {
	match, err := regexp.Compile(o.match)
	if err != nil {
		return nil, fmt.Errorf("reading --match: %w", err)
	}
	return slices.DeleteFunc(list, func(e safeguard.Entry) bool {
		return !match.MatchString(e.Name) || len(o.packages) > 0 && !slices.Contains(o.packages, filepath.Dir(e.File))
	}), nil
}

// mutate makes the mutants of the list. An entry that does not fit its file is an error: the
// safeguard has moved, and so must the entry.
func (s *safeguards) mutate(list []safeguard.Entry) error {
	var stale []error
	for i := range list {
		source, err := os.ReadFile(filepath.Join(s.root, list[i].File))
		if err != nil {
			stale = append(stale, fmt.Errorf("reading a source file: %w", err))
			continue
		}
		m, err := list[i].Mutate(source)
		if err != nil {
			stale = append(stale, err)
			continue
		}
		s.mutants, s.entries[m.Key] = append(s.mutants, m), list[i]
		s.numbers[m.Key] = len(s.mutants)
	}
	return errors.Join(stale...)
}

// try tries the unit tests, and then the simulator.
func (s *safeguards) try(ctx context.Context, m *mutation.Mutant) (campaign.Verdict, error) {
	e := s.entries[m.Key]
	for _, path := range e.Packages {
		if verdict, err := s.tryPackage(ctx, m, path); err != nil || verdict != campaign.Survived {
			return verdict, err
		}
	}
	if s.simulator == "" {
		return campaign.Survived, nil
	}
	verdict, err := s.tryPackage(ctx, m, s.simulator, strings.Fields(s.simulatorFlags)...)
	if err == nil && verdict == campaign.Killed {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.simulated[m.Key] = true
	}
	return verdict, err
}

// tryPackage tries the tests of one package, unless the journal has their verdict.
func (s *safeguards) tryPackage(ctx context.Context, m *mutation.Mutant, path string, arguments ...string) (campaign.Verdict, error) {
	p, err := s.packageOf(ctx, path, arguments)
	if err != nil {
		return "", err
	}
	if verdict, known := s.verdicts.Find(p.target.Digest, m.Key); known {
		return verdict, nil
	}
	p.once.Do(func() { p.schemata, p.err = trial.NewSchemata(ctx, p.target, s.scratch, s.mutants) })
	if p.err != nil {
		return "", p.err
	}
	verdict, err := p.schemata.TryMutant(ctx, s.numbers[m.Key])
	if err != nil {
		return "", err
	}
	return verdict, s.verdicts.Write(p.target.Digest, m.Key, verdict)
}

// testedPackage is a package whose tests try the mutants. They are built when the first
// mutant has no verdict yet.
type testedPackage struct {
	target   trial.Target
	once     sync.Once
	schemata *trial.Schemata
	err      error
}

func (s *safeguards) packageOf(ctx context.Context, path string, arguments []string) (*testedPackage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.packages[path]; p != nil {
		return p, nil
	}
	target, err := trial.LoadTarget(ctx, s.root, path, arguments...)
	if err != nil {
		return nil, err
	}
	s.packages[path] = &testedPackage{target: target}
	return s.packages[path], nil
}

// report writes what was noticed, by package, and says whether that is too little.
func (s *safeguards) report(outcomes []campaign.Outcome) (low bool) {
	rows := map[string]*score.Safeguards{}
	all := &score.Safeguards{Package: "all"}
	for i := range outcomes {
		m := &outcomes[i].Mutant
		path := filepath.Dir(m.File)
		rows[path] = cmp.Or(rows[path], &score.Safeguards{Package: path})
		for _, row := range []*score.Safeguards{rows[path], all} {
			row.Count(outcomes[i].Verdict == campaign.Killed, s.simulated[m.Key], s.entries[m.Key].Why != "")
		}
		switch why := s.entries[m.Key].Why; {
		case outcomes[i].Verdict == campaign.Survived && why == "":
			s.say("not noticed: %s:%d %s\n", m.File, m.Line, m.Function)
		case outcomes[i].Verdict == campaign.Killed && why != "":
			s.say("explained, but noticed: %s\n", m.Function)
		}
	}
	table := make([]score.Safeguards, 0, len(rows)+1)
	for _, row := range rows {
		table = append(table, *row)
	}
	slices.SortFunc(table, func(a, b score.Safeguards) int { return strings.Compare(a.Package, b.Package) })
	if err := score.WriteSafeguards(s.out, append(table, *all)); err != nil {
		s.say("writing the table: %v\n", err)
	}
	return all.Percent() < wantedSafeguards
}
