// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"strconv"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// releaseFilter selects records of one release, and of one run of the release if run is above 0.
type releaseFilter struct {
	namespace, name string
	run             int64
}

// matches says whether a record is about the release. Records about lost lines of the history
// belong to no run.
func (f releaseFilter) matches(r *evidence.Record) bool {
	d := r.Delivery
	if d == nil || d.Release == nil || d.Release.Namespace != f.namespace || d.Release.Name != f.name {
		return false
	}
	return f.run == 0 || f.run == runOf(d)
}

func (f releaseFilter) String() string {
	words := fmt.Sprintf("release %s/%s", f.namespace, f.name)
	if f.run > 0 {
		words = fmt.Sprintf("run %d of %s", f.run, words)
	}
	return words
}

// runOf returns the run that a record is about, or 0.
func runOf(d *evidence.Delivery) int64 {
	switch {
	case d.Decision != nil:
		return d.Decision.Run
	case d.Work != nil:
		return d.Work.Run
	}
	return 0
}

// describeDelivery adds the fields that only a record of a release has.
func describeDelivery(d *invocation.Description, r *evidence.Delivery, wide bool) {
	if r == nil || r.Release == nil {
		return
	}
	if run := runOf(r); run > 0 {
		d.Field("  Run", strconv.FormatInt(run, 10))
	}
	switch {
	case r.Decision != nil:
		d.Field("  Decision", decisionWords(r.Decision))
	case r.Work != nil:
		d.Field("  Work", workWords(r.Work))
		describeWorkIntent(d, r.Work.Intent, wide)
	case r.Range != nil:
		d.Field("  History", fmt.Sprintf("lines %d to %d", r.Range.First, r.Range.Last))
	}
}

// decisionWords formats a line of the history: canary.stage_started, 10 % → 25 %, sequence 1042.
func decisionWords(e *evidence.Decision) string {
	words := e.Event
	switch {
	case e.From != "" && e.To != "":
		words += fmt.Sprintf(", %s %% → %s %%", e.From, e.To)
	case e.To != "":
		words += fmt.Sprintf(", %s %%", e.To)
	}
	if e.Sequence > 0 {
		words += fmt.Sprintf(", sequence %d", e.Sequence)
	}
	return words
}

// workWords formats a work: web-1-2, Scale of canary to 3 replicas.
func workWords(w *evidence.Work) string {
	words := fmt.Sprintf("%s, %s of %s", w.Name, w.Verb, w.Variation)
	if w.Replicas != nil {
		words += fmt.Sprintf(" to %d replicas", *w.Replicas)
	}
	return words
}

func describeWorkIntent(d *invocation.Description, i *evidence.WorkIntent, wide bool) {
	if i == nil {
		return
	}
	words := "creation"
	if i.ResourceVersion != "" {
		words = "version " + i.ResourceVersion
	}
	if i.TemplateHash != "" {
		words += ", pod template " + wording.FormatHash(i.TemplateHash, wide)
	}
	d.Field("  Intent", words)
}
