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
	entries map[mutation.Key]safeguard.Entry

	mu      sync.Mutex
	runners map[string]*onceRunner
	// simulated are the mutants that the simulator alone noticed.
	simulated map[mutation.Key]bool
	// broken are the mutants that do not compile.
	broken []string
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
		options: *o, workplace: w, entries: map[mutation.Key]safeguard.Entry{},
		runners: map[string]*onceRunner{}, simulated: map[mutation.Key]bool{},
	}
	mutants, err := s.mutate(list)
	if err != nil {
		return err
	}
	outcomes, err := campaign.TryMutants(ctx, mutants, len(mutants), o.workers, s.try)
	stopped := ctx.Err() != nil
	if err != nil && !stopped {
		return err
	}
	low := s.report(outcomes)
	switch {
	case stopped:
		s.say("stopped after %d of %d safeguards: %v\n", len(outcomes), len(mutants), context.Cause(ctx))
		return errStopped
	case len(s.broken) > 0:
		return fmt.Errorf("%d entries do not compile: %s", len(s.broken), strings.Join(s.broken, " "))
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
func (s *safeguards) mutate(list []safeguard.Entry) ([]mutation.Mutant, error) {
	var out []mutation.Mutant
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
		out, s.entries[m.Key] = append(out, m), list[i]
	}
	return out, errors.Join(stale...)
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
	runner, err := s.runnerOf(ctx, path, arguments)
	if err != nil {
		return "", err
	}
	verdict, known := s.verdicts.Find(runner.target.Digest, m.Key)
	if !known {
		r, err := runner.get(ctx)
		if err != nil {
			return "", err
		}
		if verdict, err = r.TryMutant(ctx, m); err != nil {
			return "", err
		}
		if err := s.verdicts.Write(runner.target.Digest, m.Key, verdict); err != nil {
			return "", err
		}
	}
	if verdict == campaign.NotCompiled {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.broken = append(s.broken, fmt.Sprintf("%q", m.Function))
	}
	return verdict, nil
}

func (s *safeguards) runnerOf(ctx context.Context, path string, arguments []string) (*onceRunner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runners[path]; r != nil {
		return r, nil
	}
	target, err := trial.LoadTarget(ctx, s.root, path, arguments...)
	if err != nil {
		return nil, err
	}
	s.runners[path] = &onceRunner{target: target, scratch: s.scratch}
	return s.runners[path], nil
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
