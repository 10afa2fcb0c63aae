// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxRows is how many rows a table shows.
const maxRows = 500

func text(s string) Cell { return Cell{Text: s} }

func texts(all ...string) []Cell {
	cells := make([]Cell, 0, len(all))
	for _, s := range all {
		cells = append(cells, text(s))
	}
	return cells
}

func link(path, label string) Cell { return Cell{Path: path, Text: label} }

// age tells a time by its age; an absent time is unknown.
func age(at *metav1.Time, now time.Time) Cell {
	if at.IsZero() {
		return text(wording.FormatAge(metav1.Time{}, now))
	}
	return Cell{Text: wording.FormatAge(*at, now), UTC: wording.FormatTimestamp(*at)}
}

// pathOf joins names to a path, each as one segment.
func pathOf(prefix string, names ...string) string {
	path := prefix
	for i, name := range names {
		if i > 0 || path[len(path)-1] != '/' {
			path += "/"
		}
		path += url.PathEscape(name)
	}
	return path
}

// pathOfObject leads to the page of an object by its Baseline.
func pathOfObject(namespace, baseline string) string { return pathOf(ObjectPath, namespace, baseline) }

// shape is how a standing is drawn: a mark, so that no reader needs the color.
type shape struct{ mark, state string }

func shapeOf(s actions.Standing) shape {
	switch s {
	case actions.StandingMissing:
		return shape{"✖", "missing"}
	case actions.StandingDrifted:
		return shape{"▲", "drifted"}
	case actions.StandingInSync:
		return shape{"●", "synced"}
	case actions.StandingRetired:
		return shape{"◌", "retired"}
	case actions.StandingNotGuarded:
		return shape{"○", "retired"}
	case actions.StandingUnknown:
	}
	return shape{"?", "unknown"}
}

// overdueAfter is how long after its time a check counts as overdue.
const overdueAfter = 5 * time.Minute

// isOverdue says that the state of an object is older than its guards allow.
func isOverdue(b *v1alpha1.Baseline, now time.Time) bool {
	next := b.Status.NextCheckTime
	return next != nil && now.Sub(next.Time) > overdueAfter
}

// stateCell shows the state of an object. A state that is overdue is drawn as unknown, with its words.
func stateCell(b *v1alpha1.Baseline, now time.Time) Cell {
	s := shapeOf(actions.StandingOf(b))
	words := wording.DescribeState(b)
	if isOverdue(b, now) {
		s = shapeOf(actions.StandingUnknown)
		words += ", " + overdueWords(b, now)
	}
	return Cell{Text: words, Mark: s.mark, State: s.state}
}

func overdueWords(b *v1alpha1.Baseline, now time.Time) string {
	return fmt.Sprintf("the check is overdue since %s", wording.FormatAge(*b.Status.NextCheckTime, now))
}

// cut bounds a table.
func (t *Table) cut() *Table { return t.cutTo(maxRows) }

// cutTo bounds a table to a number of rows.
func (t *Table) cutTo(rows int) *Table {
	if more := len(t.Rows) - rows; more > 0 {
		t.Rows, t.More = t.Rows[:rows], fmt.Sprintf("%d more rows are left out: narrow the page down", more)
	}
	return t
}

// Unread says by kind why objects could not be read.
type Unread map[string]string

// sentences are about all kinds, in the order of their names.
func (u Unread) sentences() []string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(u)) {
		all = append(all, fmt.Sprintf("No %s is shown: %s", kind, u[kind]))
	}
	return all
}

// empty is what a table without rows says: that there is none only if all of its kinds were read.
func (u Unread) empty(words string, kinds ...string) string {
	for _, kind := range kinds {
		if why, is := u[kind]; is {
			return "Not known: " + why
		}
	}
	return words
}

// namespaceFilter is the filter that each list has.
func namespaceFilter(value string) Filter {
	return Filter{Name: "namespace", Label: "Namespace", Value: value}
}

// keep returns the items that a filter selects.
func keep[T any](items []T, selects func(*T) bool) []T {
	return slices.DeleteFunc(slices.Clone(items), func(item T) bool { return !selects(&item) })
}

// matches says whether a filter lets a value through; an empty filter lets all through.
func matches(filter, value string) bool { return filter == "" || filter == value }
