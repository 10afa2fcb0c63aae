// SPDX-License-Identifier: Apache-2.0

// Package score counts the mutants of each package that tests notice, and compares the
// percentage with the wanted one.
package score

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/campaign"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/explanation"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

// Wanted is a package and the percentage of its mutants that tests must notice.
type Wanted struct {
	Package string
	Percent int
}

// ReadWanted reads a line for each package: its directory and a percentage. Lines that
// begin with a number sign are comments.
func ReadWanted(r io.Reader) ([]Wanted, error) {
	var out []Wanted
	seen := map[string]bool{}
	scanner := bufio.NewScanner(r)
	for number := 1; scanner.Scan(); number++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d: a line has a directory and a percentage", number)
		}
		percent, err := strconv.Atoi(fields[1])
		if err != nil || percent < 0 || percent > 100 {
			return nil, fmt.Errorf("line %d: %q is not a percentage", number, fields[1])
		}
		if seen[fields[0]] {
			return nil, fmt.Errorf("line %d: %s is there twice", number, fields[0])
		}
		seen[fields[0]] = true
		out = append(out, Wanted{fields[0], percent})
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("reading lines: %w", err)
	}
	return out, nil
}

// Package holds the counts of a package.
type Package struct {
	Wanted
	Killed, Explained, Of int
	// Survivors have no explanation. Needless are explained, but killed.
	Survivors []mutation.Mutant
	Needless  []mutation.Key
}

// CountOutcomes counts the outcomes of a package. An explained survivor counts like one
// that was killed.
func CountOutcomes(wanted Wanted, outcomes []campaign.Outcome, explained explanation.Set) Package {
	p := Package{Wanted: wanted, Of: len(outcomes)}
	for _, o := range outcomes {
		_, ok := explained[o.Mutant.Key]
		switch {
		case o.Verdict == campaign.Killed:
			p.Killed++
			if ok {
				p.Needless = append(p.Needless, o.Mutant.Key)
			}
		case ok:
			p.Explained++
		default:
			p.Survivors = append(p.Survivors, o.Mutant)
		}
	}
	return p
}

// Percent returns the part that is killed or explained, rounded down. Of no mutants
// all are.
func (p *Package) Percent() int {
	if p.Of == 0 {
		return 100
	}
	return 100 * (p.Killed + p.Explained) / p.Of
}

// IsEnough tells whether the score is as high as wanted. Of few mutants one may survive:
// the sample does not tell 90 percent from 100.
func (p *Package) IsEnough() bool {
	return p.Of-p.Killed-p.Explained <= (p.Of*(100-p.Wanted.Percent)+99)/100
}

// significance bounds how often a package that has its wanted score fails the test of a
// sample.
const significance = 0.01

// IsRefuted tells whether the mutants, as a random sample, refute the wanted score: a
// package with exactly this score has so many survivors in fewer than 1 % of its samples
// (one-sided exact binomial test). A sample that is too small to tell refutes nothing.
func (p *Package) IsRefuted() bool {
	survivors := p.Of - p.Killed - p.Explained
	rate := float64(100-p.Wanted.Percent) / 100
	tail := 0.0
	for k := survivors; k <= p.Of; k++ {
		ways, _ := new(big.Float).SetInt(new(big.Int).Binomial(int64(p.Of), int64(k))).Float64()
		tail += ways * math.Pow(rate, float64(k)) * math.Pow(1-rate, float64(p.Of-k))
	}
	return tail < significance
}

// WriteTable writes a line for each package.
func WriteTable(w io.Writer, packages []Package) error {
	tab := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	_, err := fmt.Fprintf(tab, "| package\t| killed\t| explained\t| of\t| score\t| wanted\t|\n|---\t|---\t|---\t|---\t|---\t|---\t|\n")
	for i := range packages {
		if err != nil {
			break
		}
		p := &packages[i]
		_, err = fmt.Fprintf(tab, "| %s\t| %d\t| %d\t| %d\t| %d %%\t| %d %%\t|\n", p.Package, p.Killed, p.Explained, p.Of, p.Percent(), p.Wanted.Percent)
	}
	if err != nil {
		return err
	}
	return tab.Flush()
}
