// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/campaign"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/explanation"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/score"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/trial"
)

var errStopped = errors.New("stopped before the end; the same command carries on")

// measurement holds the inputs of a run, which are the same for each package.
type measurement struct {
	options
	*workplace
	explained explanation.Set
	skipped   int // of the mutants of each package, in their order
	stale     []mutation.Key
}

func (o *options) measure(ctx context.Context, w *workplace) error {
	wanted, explained, err := o.readTables()
	if err != nil {
		return err
	}
	m := measurement{options: *o, workplace: w, explained: explained}
	wanted, m.skipped, m.count = o.chooseTenth(wanted)
	packages, stopped := m.measureAll(ctx, wanted)
	return cmp.Or(m.report(packages), stopped, m.judge(packages))
}

// tenths of the mutants of a package are what rotations try.
const tenths = 10

// chooseTenth cuts a run down to a tenth of the mutants of one package. As many
// rotations in a row as there are packages try each package.
func (o *options) chooseTenth(wanted []score.Wanted) (of []score.Wanted, skipped, count int) {
	if o.rotation < 0 || len(wanted) == 0 {
		return wanted, 0, o.count
	}
	i := o.rotation % len(wanted)
	count = max(o.count/tenths, 1)
	return wanted[i : i+1], o.rotation / len(wanted) % tenths * count, count
}

// skipMutants moves the first mutants behind the others. A skip of more than all mutants
// begins anew, so that each rotation of a small package tries mutants.
func skipMutants(mutants []mutation.Mutant, skipped int) []mutation.Mutant {
	if len(mutants) == 0 {
		return nil
	}
	begin := skipped % len(mutants)
	return slices.Concat(mutants[begin:], mutants[:begin])
}

// readTables reads the wanted scores of the packages that were asked for, and the
// explanations.
func (o *options) readTables() ([]score.Wanted, explanation.Set, error) {
	wanted, err := readFile(o.wanted, score.ReadWanted)
	if err != nil {
		return nil, nil, err
	}
	explained, err := readFile(o.explained, explanation.ReadSet)
	if err != nil {
		return nil, nil, err
	}
	for key := range explained {
		if !slices.ContainsFunc(wanted, func(w score.Wanted) bool { return w.Package == filepath.Dir(key.File) }) {
			return nil, nil, fmt.Errorf("reading %s: %s has no wanted score", o.explained, filepath.Dir(key.File))
		}
	}
	if len(o.packages) == 0 {
		return wanted, explained, nil
	}
	var asked []score.Wanted
	for _, name := range o.packages {
		i := slices.IndexFunc(wanted, func(w score.Wanted) bool { return w.Package == name })
		if i < 0 {
			return nil, nil, fmt.Errorf("reading %s: %s has no wanted score", o.wanted, name)
		}
		asked = append(asked, wanted[i])
	}
	return asked, explained, nil
}

func readFile[T any](path string, read func(io.Reader) (T, error)) (T, error) {
	var none T
	file, err := os.Open(path)
	if err != nil {
		return none, fmt.Errorf("reading a table: %w", err)
	}
	defer func() { _ = file.Close() }()
	table, err := read(file)
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", path, err)
	}
	return table, nil
}

// measureAll measures one package after the other, until it is stopped.
func (m *measurement) measureAll(ctx context.Context, wanted []score.Wanted) ([]score.Package, error) {
	m.say("seed %d, %d mutants per package\n", m.seed, m.count)
	var packages []score.Package
	for i, w := range wanted {
		p, err := m.measurePackage(ctx, w)
		if p.Of > 0 || err == nil {
			packages = append(packages, p)
		}
		if err != nil && ctx.Err() == nil {
			return packages, err
		}
		if err != nil {
			m.say("stopped in %s after %d mutants: %v; packages that are not done: %s\n", w.Package, p.Of, context.Cause(ctx), listNames(wanted[i:]))
			return packages, errStopped
		}
	}
	return packages, nil
}

func (m *measurement) measurePackage(ctx context.Context, wanted score.Wanted) (score.Package, error) {
	target, err := trial.LoadTarget(ctx, m.root, wanted.Package)
	if err != nil {
		return score.Package{}, err
	}
	mutants, err := listMutants(target)
	if err != nil {
		return score.Package{}, err
	}
	m.findStale(wanted.Package, mutants)
	chosen := skipMutants(mutation.Shuffle(mutants, m.seed), m.skipped)
	outcomes, err := campaign.TryMutants(ctx, chosen, m.count, m.workers, m.tryOnce(target))
	p := score.CountOutcomes(wanted, outcomes, m.explained)
	for i := range p.Survivors {
		m.say("survived %s\n", &p.Survivors[i])
	}
	for _, key := range p.Needless {
		m.say("explained, but killed: %s\n", key)
	}
	m.say("%s: %d of %d killed, %d explained, of %d candidates\n", wanted.Package, p.Killed, p.Of, p.Explained, len(mutants))
	return p, err
}

// tryOnce returns a try that asks the journal first. The tests run without a mutant
// when the first mutant has no verdict yet.
func (m *measurement) tryOnce(target trial.Target) campaign.Try {
	runner := onceRunner{target: target, scratch: m.scratch}
	return func(ctx context.Context, mutant *mutation.Mutant) (campaign.Verdict, error) {
		if verdict, ok := m.verdicts.Find(target.Digest, mutant.Key); ok {
			return verdict, nil
		}
		r, err := runner.get(ctx)
		if err != nil {
			return "", err
		}
		verdict, err := r.TryMutant(ctx, mutant)
		if err != nil {
			return "", err
		}
		return verdict, m.verdicts.Write(target.Digest, mutant.Key, verdict)
	}
}

func listMutants(target trial.Target) ([]mutation.Mutant, error) {
	var out []mutation.Mutant
	for _, name := range target.Files {
		source, err := os.ReadFile(filepath.Join(target.Root, name))
		if err != nil {
			return nil, fmt.Errorf("reading a source file: %w", err)
		}
		mutants, err := mutation.ListMutants(name, source)
		if err != nil {
			return nil, fmt.Errorf("listing mutants of %s: %w", name, err)
		}
		out = append(out, mutants...)
	}
	return out, nil
}

// findStale finds the explanations of a package that fit none of its mutants.
func (m *measurement) findStale(path string, mutants []mutation.Mutant) {
	there := map[mutation.Key]bool{}
	for i := range mutants {
		there[mutants[i].Key] = true
	}
	for key := range maps.Keys(m.explained) {
		if filepath.Dir(key.File) == path && !there[key] {
			m.stale = append(m.stale, key)
		}
	}
}

// report writes the table, the stale explanations, and the survivors as paragraphs.
func (m *measurement) report(packages []score.Package) error {
	slices.SortFunc(m.stale, func(a, b mutation.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range m.stale {
		m.say("stale explanation: %s\n", key)
	}
	if err := score.WriteTable(m.out, packages); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	if m.unexplained == "" {
		return nil
	}
	var text strings.Builder
	for _, p := range packages {
		for i := range p.Survivors {
			_ = explanation.WriteParagraph(&text, p.Survivors[i].Key, "")
		}
	}
	if err := os.WriteFile(m.unexplained, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("writing survivors: %w", err)
	}
	return nil
}

// judge returns an error if a score is too low or an explanation is stale. The few mutants
// of a rotation cannot show a score; they can refute the wanted one.
func (m *measurement) judge(packages []score.Package) error {
	var low []score.Wanted
	for i := range packages {
		isLow := !packages[i].IsEnough()
		if m.rotation >= 0 {
			isLow = packages[i].IsRefuted()
		}
		if isLow {
			low = append(low, packages[i].Wanted)
		}
	}
	var errs []error
	if len(low) > 0 {
		errs = append(errs, fmt.Errorf("too many mutants survive in %s", listNames(low)))
	}
	if len(m.stale) > 0 {
		errs = append(errs, fmt.Errorf("%d explanations are stale", len(m.stale)))
	}
	return errors.Join(errs...)
}

func listNames(packages []score.Wanted) string {
	var names []string
	for _, p := range packages {
		names = append(names, p.Package)
	}
	return strings.Join(names, " ")
}
