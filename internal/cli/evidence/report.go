// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// evidenceReport is what verify answers.
type evidenceReport struct {
	OK       bool               `json:"ok"`
	Store    string             `json:"store"`
	Keys     []string           `json:"keys"`
	Records  int                `json:"records"`
	Chains   []chainReport      `json:"chains"`
	Plans    *plansReport       `json:"plans,omitempty"`
	Audit    *auditReport       `json:"audit,omitempty"`
	Problems []evidence.Problem `json:"problems"`
	// OpenEnds are the chains whose end is not known.
	OpenEnds []string `json:"openEnds,omitempty"`
}

// chainReport is one chain, and whether its end is known.
type chainReport struct {
	evidence.ChainReport
	Policy string `json:"policy,omitempty"`
	// Releases names the Environment whose releases the chain is about, or "none" for releases that
	// belong to no Environment.
	Releases string `json:"releases,omitempty"`
	// Head is how far the chain must go; absent where nobody says so.
	Head *evidence.Head `json:"head,omitempty"`
	// Anchor is the last of the checkpoints, and Checkpoints how many there are.
	Anchor      *evidence.Checkpoint `json:"anchor,omitempty"`
	Checkpoints int                  `json:"checkpoints,omitempty"`
}

// noEnvironment stands for releases that belong to no Environment.
const noEnvironment = "none"

// plansReport counts the plans whose statuses were compared, and those that have
// not ended.
type plansReport struct {
	Compared int `json:"compared"`
	Running  int `json:"running"`
}

// auditReport is what the comparison with the audit log came to.
type auditReport struct {
	Writers   []string  `json:"writers"`
	Events    int       `json:"events"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Matched   int       `json:"matched"`
	Unchanged int       `json:"unchanged"`
	Uncertain int       `json:"uncertain"`
	Outside   int       `json:"outside"`
	// Hint says what would make sense of records that the log cannot have.
	Hint string `json:"hint,omitempty"`

	problems []evidence.Problem
}

// newEvidenceReport sums up; policies are their names by the uid of the chain.
func newEvidenceReport(store string, known *evidenceKnown, found *evidence.Report, policies map[string]string) *evidenceReport {
	r := &evidenceReport{Store: store, Keys: known.keys.ring.IDs(), Chains: []chainReport{}, Problems: found.Problems}
	for _, chain := range found.Chains {
		points := known.anchors[chain.UID]
		report := chainReport{ChainReport: chain, Policy: policies[chain.UID], Anchor: noted(points), Checkpoints: len(points)}
		if environment, is := known.releases[chain.UID]; is {
			report.Releases = cmp.Or(environment, noEnvironment)
		}
		if head, ok := known.heads[chain.UID]; ok {
			report.Head = &head
		} else if report.Anchor == nil {
			r.OpenEnds = append(r.OpenEnds, chain.UID)
		}
		r.Chains = append(r.Chains, report)
		r.Records += chain.Records
	}
	if !known.offline {
		r.Plans = &plansReport{Compared: len(known.plans), Running: known.running}
	}
	return r
}

func newAuditReport(log *evidence.AuditLog, joined *evidence.JoinReport, writers []string, records []evidence.Record, bounds evidence.JoinOptions) *auditReport {
	r := &auditReport{
		Writers: writers, Events: log.Events, First: log.First, Last: log.Last,
		Matched: joined.Matched, Unchanged: joined.Unchanged, Uncertain: joined.Uncertain, Outside: joined.Outside,
		problems: joined.Problems,
	}
	early := func(e evidence.Record) bool { return e.Wrote() && e.At.Before(log.First) && !e.At.Before(bounds.Since) }
	late := func(e evidence.Record) bool {
		return e.Wrote() && e.At.After(log.Last) && (bounds.Until.IsZero() || !e.At.After(bounds.Until))
	}
	switch {
	case slices.ContainsFunc(records, early):
		r.Hint = "there are records from before the log begins; --since-time " + log.First.UTC().Format(time.RFC3339) + " leaves them out"
	case slices.ContainsFunc(records, late):
		r.Hint = "there are records from after the log ends; --until-time " + log.Last.UTC().Format(time.RFC3339) + " leaves them out"
	}
	return r
}

// describeEvidence is the report for people: what was looked at, what is wrong,
// and the verdict last.
func (a *app) describeEvidence(r *evidenceReport) string {
	d := &invocation.Description{}
	d.Field("Store", r.Store)
	d.Field("Keys", strings.Join(shortKeys(r.Keys), ", "))
	if r.Plans != nil {
		d.Field("Plans", fmt.Sprintf("%s compared, %d that have not ended left out", plural.Of(r.Plans.Compared, "ended plan"), r.Plans.Running))
	}
	d.Section("Chains")
	for i := range r.Chains {
		describeChain(d, &r.Chains[i], r.Plans == nil)
	}
	if r.Audit != nil {
		describeAudit(d, r.Audit)
	}
	if len(r.Problems) > 0 {
		d.Section("Problems")
		for _, p := range r.Problems {
			d.Line(1, "%-20s %s", p.Kind, p)
		}
	}
	d.Line(0, "")
	d.Line(0, "%s", evidenceVerdict(r))
	return d.String()
}

func shortKeys(ids []string) []string {
	shown := make([]string, len(ids))
	for i, id := range ids {
		shown[i] = shortKey(id, false)
	}
	return shown
}

// nameChain says whose chain it is.
func nameChain(c *chainReport) string {
	switch {
	case c.Policy != "":
		return c.Policy + " (" + c.UID + ")"
	case c.Releases == noEnvironment:
		return "releases of no Environment (" + c.UID + ")"
	case c.Releases != "":
		return "releases of " + c.Releases + " (" + c.UID + ")"
	}
	return c.UID
}

func describeChain(d *invocation.Description, c *chainReport, offline bool) {
	end := "its end is not known: no ledger tells it"
	switch {
	case c.Head != nil && c.Ahead > 0:
		end = fmt.Sprintf("%d more than the ledger knows of, as a dying writer may leave", c.Ahead)
	case c.Head != nil && c.Last.Sequence >= c.Head.Sequence:
		end = "goes as far as the ledger says"
	case c.Head != nil:
		end = fmt.Sprintf("should go to %d", c.Head.Sequence)
	case c.Anchor != nil && c.Last.Sequence >= c.Anchor.Sequence:
		end = "goes as far as the anchor says"
	case c.Anchor != nil:
		end = fmt.Sprintf("should go to %d", c.Anchor.Sequence)
	case offline:
		end = "its end was not compared"
	}
	d.Line(1, "%s  %s, last #%d; %s", nameChain(c), plural.Of(c.Records, "good record"), c.Last.Sequence, end)
	if c.Anchor != nil {
		d.Line(2, "compared with %s, the last one at #%d of %s", plural.Of(c.Checkpoints, "checkpoint"), c.Anchor.Sequence, c.Anchor.At.Format(time.RFC3339))
	}
	for _, w := range c.Withdrawn {
		d.Line(2, "#%d is withdrawn by #%d: it was decided and never stored", w.Sequence, w.By)
	}
	if len(c.Keys) > 1 {
		for _, span := range c.Keys {
			d.Line(2, "#%d to #%d signed by key %s", span.From, span.To, shortKey(span.KeyID, false))
		}
	}
}

func describeAudit(d *invocation.Description, r *auditReport) {
	d.Section("Audit log")
	d.Line(1, "%s, from %s to %s", plural.Of(r.Events, "event"), r.First.UTC().Format(time.RFC3339), r.Last.UTC().Format(time.RFC3339))
	d.Line(1, "writes of %s: %d with their record, %d without a change, %d with an unknown answer, %d outside of the time", strings.Join(r.Writers, ", "), r.Matched, r.Unchanged, r.Uncertain, r.Outside)
	if r.Hint != "" {
		d.Line(1, "hint: %s", r.Hint)
	}
}

func evidenceVerdict(r *evidenceReport) string {
	if n := len(r.Problems); n > 0 {
		return fmt.Sprintf("NOT WHOLE: %s; the first is where to look.", plural.Of(n, "problem"))
	}
	if r.Records == 0 {
		return "No records were found to verify."
	}
	words := fmt.Sprintf("Whole: %s in %s", plural.Of(r.Records, "record"), plural.Of(len(r.Chains), "chain"))
	if n := len(r.OpenEnds); n > 0 {
		words = fmt.Sprintf("UNKNOWN: %s in %s are valid, but the end of %s is not known",
			plural.Of(r.Records, "record"), plural.Of(len(r.Chains), "chain"), plural.Of(n, "chain"))
	}
	if r.Audit != nil {
		words += ", and the writes in the audit log are those of the records"
	}
	return words + "."
}
