// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Safeguards holds the counts of the safeguards of a package.
type Safeguards struct {
	Package string
	// Unit and Simulated count what unit tests noticed, and what the simulator alone did.
	Unit, Simulated int
	// Explained and Survived were not noticed, with a reason and without.
	Explained, Survived int
}

// Count counts one safeguard.
func (s *Safeguards) Count(noticed, bySimulator, explained bool) {
	switch {
	case bySimulator:
		s.Simulated++
	case noticed:
		s.Unit++
	case explained:
		s.Explained++
	default:
		s.Survived++
	}
}

// Percent returns the part that is noticed, rounded down, of those that have no reason not
// to be. Of no safeguards all are.
func (s *Safeguards) Percent() int {
	noticed := s.Unit + s.Simulated
	if noticed+s.Survived == 0 {
		return 100
	}
	return 100 * noticed / (noticed + s.Survived)
}

// WriteSafeguards writes a line for each package.
func WriteSafeguards(w io.Writer, rows []Safeguards) error {
	tab := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	_, err := fmt.Fprintf(tab, "| package\t| unit tests\t| simulator\t| explained\t| not noticed\t| score\t|\n|---\t|---\t|---\t|---\t|---\t|---\t|\n")
	for i := range rows {
		if err != nil {
			return err
		}
		r := &rows[i]
		_, err = fmt.Fprintf(tab, "| %s\t| %d\t| %d\t| %d\t| %d\t| %d %%\t|\n", r.Package, r.Unit, r.Simulated, r.Explained, r.Survived, r.Percent())
	}
	if err != nil {
		return err
	}
	return tab.Flush()
}
