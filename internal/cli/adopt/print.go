// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/adopt"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// maxListed bounds each table of a report for people; -o json has all.
const maxListed = 50

// maxListedPaths are named in a cell.
const maxListedPaths = 3

func (a *app) printAdoption(out io.Writer, found *adoption, o adoptOptions) error {
	b := &app{Invocation: a.WithOut(out)}
	switch {
	case o.output != "yaml" && invocation.IsStructured(o.output):
		return b.PrintReport(o.output, "AdoptionReport", found)
	case o.output == "yaml":
		manifest, err := found.YAML()
		if err != nil {
			return err
		}
		return b.Print(string(manifest))
	}
	sections := []func(*adoption, invocation.TableOptions) error{
		b.printCoverage, b.printLastWrites, b.printAutoscaled, b.printPastDrift, b.printUndecided, b.printUnread,
	}
	for _, section := range sections {
		if err := section(found, invocation.TableOptions{Wide: o.output == "wide", NoHeaders: o.noHeaders}); err != nil {
			return err
		}
	}
	manifest, err := found.YAML()
	if err != nil {
		return err
	}
	return b.Print("\nProposed guard (alone: --dry-run -o yaml):\n\n", string(manifest))
}

// section prints a heading, a table of the first rows, and the number of the other rows.
func (a *app) section(o invocation.TableOptions, heading string, columns []invocation.Column, rows [][]any) error {
	if heading != "" {
		if err := a.Print("\n", invocation.Printable(heading), "\n"); err != nil {
			return err
		}
	}
	left := len(rows) - maxListed
	if err := a.PrintTable(o, columns, rows[:min(len(rows), maxListed)]); err != nil || left <= 0 {
		return err
	}
	return a.Print(fmt.Sprintf("... and %d more (-o json)\n", left))
}

func (a *app) printCoverage(r *adoption, o invocation.TableOptions) error {
	if err := a.Print(invocation.Printable(fmt.Sprintf("%s would cover %s.", r.Guard, plural.Of(r.Objects, "object"))), "\n"); err != nil {
		return err
	}
	rows := make([][]any, 0, len(r.Coverage))
	for _, c := range r.Coverage {
		if c.Objects == 0 && len(c.Skipped) == 1 && c.Skipped[adopt.SkipExcluded] > 0 {
			continue // the report names it below
		}
		note := skippedWords(c.Skipped)
		if c.Unregistered {
			note = strings.TrimPrefix(note+", not registered in the chart (guard.resources)", ", ")
		}
		kind := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind()
		rows = append(rows, []any{strings.ToLower(kind.String()), c.Namespace, strconv.Itoa(c.Objects), note})
	}
	if len(rows) > 0 {
		if err := a.section(o, "", []invocation.Column{{Name: "Kind"}, {Name: "Namespace"}, {Name: "Objects"}, {Name: "Passed-Over"}}, rows); err != nil {
			return err
		}
	}
	return a.Print("Never guarded: ", strings.Join(r.ExcludedNamespaces, ", "), "\n")
}

var skipWords = map[adopt.SkipReason]string{
	adopt.SkipExcluded:    "in a namespace that is never guarded",
	adopt.SkipOwned:       "made by a controller from an object that is judged itself",
	adopt.SkipNotSelected: "not selected",
}

func skippedWords(skipped map[adopt.SkipReason]int) string {
	words := make([]string, 0, len(skipped))
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		words = append(words, fmt.Sprintf("%d %s", skipped[reason], skipWords[reason]))
	}
	return strings.Join(words, ", ")
}

func (a *app) printLastWrites(r *adoption, o invocation.TableOptions) error {
	if len(r.LastWrites) == 0 {
		return nil
	}
	rows := make([][]any, 0, len(r.LastWrites))
	for _, w := range r.LastWrites {
		rows = append(rows, []any{
			w.Namespace, objectOf(w.ObjectRef), writerWords(w.User, w.Managers), string(w.KnownBy), a.ageOf(w.At), string(w.Class),
			strings.Join(printableAll(w.Managers), ","), invocation.Printable(w.UnprovenStamp),
		})
	}
	heading := "Last writers (a field manager is a hint, not proof; the class is that under the proposal)"
	if !r.StampsProven {
		heading += "; no writer stamp is proof here"
	}
	return a.section(o, heading, []invocation.Column{
		{Name: "Namespace"}, {Name: "Object"}, {Name: "Who"}, {Name: "Known-By"}, {Name: "When"}, {Name: "Class"},
		{Name: "Managers", Wide: true}, {Name: "Unproven-Stamp", Wide: true},
	}, rows)
}

func (a *app) printAutoscaled(r *adoption, o invocation.TableOptions) error {
	if len(r.Autoscaled) == 0 {
		return nil
	}
	rows := make([][]any, 0, len(r.Autoscaled))
	for _, s := range r.Autoscaled {
		seen := "no write of it is recorded"
		if s.Seen {
			seen = "managedFields show that it wrote"
		}
		if s.Note != "" {
			seen = s.Note
		}
		rows = append(rows, []any{s.Namespace, objectOf(s.ObjectRef), string(s.Autoscaler) + "/" + s.By, strings.Join(s.Paths, ","), seen})
	}
	return a.section(o, "Fields that autoscalers own", []invocation.Column{{Name: "Namespace"}, {Name: "Object"}, {Name: "Autoscaler"}, {Name: "Field"}, {Name: "Evidence"}}, rows)
}

func (a *app) printPastDrift(r *adoption, o invocation.TableOptions) error {
	heading := fmt.Sprintf("Would have been drift since %s: %d of %s; %d authorized, %d expected, %d benign",
		wording.FormatTimestamp(r.From), r.Writes.Drift, plural.Of(r.Writes.Total, "write"), r.Writes.Authorized, r.Writes.Expected, r.Writes.Benign)
	if r.Writes.NotJudged > 0 {
		heading += fmt.Sprintf(", %d too many to be judged one by one", r.Writes.NotJudged)
	}
	rows := make([][]any, 0, len(r.Drift)+len(r.Undated))
	for _, w := range slices.Concat(r.Drift, r.Undated) {
		via := w.Manager
		if w.Subresource != "" {
			via += " (" + w.Subresource + ")"
		}
		rows = append(rows, []any{
			a.ageOf(w.At), w.Namespace, objectOf(w.ObjectRef), writerWords(w.User, []string{w.Manager}), string(w.Class), pathWords(w, o.Wide), invocation.Printable(via), string(w.Operation),
		})
	}
	if len(rows) == 0 {
		return a.Print("\n", heading, "\n")
	}
	if len(r.Undated) > 0 {
		heading += fmt.Sprintf("\n(and %s through /scale, which leaves no time)", plural.Of(len(r.Undated), "write"))
	}
	if err := a.Print("\n", heading, "\n"); err != nil {
		return err
	}
	return a.section(o, "", []invocation.Column{
		{Name: "When"}, {Name: "Namespace"}, {Name: "Object"}, {Name: "Who"}, {Name: "Class"}, {Name: "Fields-Owned"},
		{Name: "Manager", Wide: true}, {Name: "Operation", Wide: true},
	}, rows)
}

func (a *app) printUndecided(r *adoption, o invocation.TableOptions) error {
	if len(r.Undecided) == 0 {
		return nil
	}
	rows := make([][]any, 0, len(r.Undecided))
	for _, u := range r.Undecided {
		rows = append(rows, []any{invocation.Printable(u.Name()), strconv.Itoa(u.Objects), a.ageOf(u.Last), invocation.Printable(u.Why)})
	}
	return a.section(o, "To decide: not trusted as it stands", []invocation.Column{{Name: "Who"}, {Name: "Objects"}, {Name: "Last"}, {Name: "Why"}}, rows)
}

func (a *app) printUnread(r *adoption, o invocation.TableOptions) error {
	if len(r.Unread) == 0 {
		return nil
	}
	rows := make([][]any, 0, len(r.Unread))
	for _, u := range r.Unread {
		rows = append(rows, []any{u.What, u.Then, invocation.Printable(u.Why)})
	}
	return a.section(o, "Not read, so not known", []invocation.Column{{Name: "What"}, {Name: "Therefore"}, {Name: "Why", Wide: true}}, rows)
}

func objectOf(ref adopt.ObjectRef) string {
	return actions.NameObject(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name)
}

// writerWords names a user, else the field managers that are all that is known.
func writerWords(user string, managers []string) string {
	switch {
	case user != "":
		return invocation.Printable(user)
	case len(managers) > 0:
		return "manager " + strings.Join(printableAll(managers), ", ")
	default:
		return wording.NameActor("")
	}
}

func printableAll(texts []string) []string {
	shown := make([]string, len(texts))
	for i, text := range texts {
		shown[i] = invocation.Printable(text)
	}
	return shown
}

func pathWords(w adopt.Write, all bool) string {
	if w.Created {
		return "(the object itself)"
	}
	listed := len(w.Paths)
	if !all {
		listed = min(listed, maxListedPaths)
	}
	words := strings.Join(printableAll(w.Paths[:listed]), ", ")
	if words == "" {
		words = wording.NamePath("")
	}
	if more := w.PathsTotal - listed; more > 0 && listed > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	return words
}

func (a *app) ageOf(at *metav1.Time) string {
	if at == nil {
		return "<unknown>"
	}
	return a.FormatAge(*at)
}
