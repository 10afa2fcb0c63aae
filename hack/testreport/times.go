// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// row is a line of the table of times: how long a package took before, or the median of a
// hot path in a package.
type row struct {
	Stage, Name string
	Seconds     float64
}

const header = "stage\tpackage\tseconds\n"

// A package is slower when it takes more than half as long again, and slack more. So is a
// hot path, with a slack of its own.
const (
	slower   = 1.5
	slack    = 10 // seconds
	hotSlack = 1  // seconds
)

// readTimes reads the table; one that does not exist is empty.
func readTimes(path string) ([]row, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the times of before: %w", err)
	}
	rows, err := parseTimes(string(content))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return rows, nil
}

func parseTimes(text string) (rows []row, err error) {
	rest, found := strings.CutPrefix(text, header)
	if !found {
		return nil, errors.New("the header is missing")
	}
	for line := range strings.Lines(rest) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("the line %q has %d fields, not 3", line, len(fields))
		}
		seconds, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			return nil, fmt.Errorf("the line %q: %w", line, err)
		}
		rows = append(rows, row{fields[0], fields[1], seconds})
	}
	return rows, nil
}

func writeTimes(path string, rows []row) error {
	var b strings.Builder
	b.WriteString(header)
	for _, r := range rows {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", r.Stage, r.Name, formatSeconds(r))
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil { //nolint:gosec // a file of the repository
		return fmt.Errorf("writing the times: %w", err)
	}
	return nil
}

// formatSeconds writes hot paths with milliseconds, since some take a few.
func formatSeconds(r row) string {
	digits := 1
	if isHot(r.Name) {
		digits = 3
	}
	return strconv.FormatFloat(r.Seconds, 'f', digits, 64)
}

// rewritten is the table with the rows of a stage made anew. A package whose result
// came from the cache keeps its row, and so does a hot path on which no test waited.
func rewritten(before []row, stage string, packages []packageTime, hot []hotTime) []row {
	now, tested := sums(packages), map[string]bool{}
	for _, p := range packages {
		tested[p.Name] = true
		if p.Cached {
			delete(now, p.Name)
		}
	}
	for i := range hot {
		now[hot[i].name()] = hot[i].Median
	}
	rows := slices.DeleteFunc(slices.Clone(before), func(r row) bool {
		_, measured := now[r.Name]
		return r.Stage == stage && (measured || !tested[r.Name] && !isHot(r.Name))
	})
	for name, seconds := range now {
		rows = append(rows, row{stage, name, seconds})
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// sums adds up the runs of each package that were not cached: a stage may test a
// package more than once.
func sums(packages []packageTime) map[string]float64 {
	total := map[string]float64{}
	for _, p := range packages {
		if !p.Cached {
			total[p.Name] += p.Seconds
		}
	}
	return total
}

// difference is a package, or a hot path, that takes longer than before.
type difference struct {
	Name        string
	Before, Now float64
}

func slowerThanBefore(before []row, stage string, packages []packageTime, hot []hotTime) (found []difference) {
	now := sums(packages)
	for i := range hot {
		now[hot[i].name()] = hot[i].Median
	}
	for _, r := range before {
		seconds, more := now[r.Name], float64(slack)
		if isHot(r.Name) {
			more = hotSlack
		}
		if r.Stage == stage && seconds > slower*r.Seconds && seconds > r.Seconds+more {
			found = append(found, difference{r.Name, r.Seconds, seconds})
		}
	}
	return found
}
