// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// evidenceReport is the report of verify.
type evidenceReport struct {
	OK       bool               `json:"ok"`
	Store    string             `json:"store"`
	Keys     []string           `json:"keys"`
	Records  int                `json:"records"`
	Chains   []chainReport      `json:"chains"`
	Plans    *plansReport       `json:"plans,omitempty"`
	Audit    *auditReport       `json:"audit,omitempty"`
	Problems []evidence.Problem `json:"problems"`
	// OpenEnds are the chains with an unknown end.
	OpenEnds []string `json:"openEnds,omitempty"`
}

// chainReport is one chain, and whether its end is known.
type chainReport struct {
	evidence.ChainReport
	Policy string `json:"policy,omitempty"`
	// Releases names the Environment of the releases that the chain is about, or "none" for releases that
	// belong to no Environment.
	Releases string `json:"releases,omitempty"`
	// Head is how far the chain must go; absent where no ledger tells that.
	Head *evidence.Head `json:"head,omitempty"`
	// Anchor is the last of the checkpoints, and Checkpoints how many there are.
	Anchor      *evidence.Checkpoint `json:"anchor,omitempty"`
	Checkpoints int                  `json:"checkpoints,omitempty"`

	name string
}

// plansReport counts the plans with compared statuses, and those that have
// not ended.
type plansReport struct {
	Compared int `json:"compared"`
	Running  int `json:"running"`
}

// auditReport is the result of the comparison with the audit log.
type auditReport struct {
	Writers   []string  `json:"writers"`
	Events    int       `json:"events"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Matched   int       `json:"matched"`
	Unchanged int       `json:"unchanged"`
	Uncertain int       `json:"uncertain"`
	Outside   int       `json:"outside"`
	// Hint names the flag that leaves out records from outside of the log.
	Hint string `json:"hint,omitempty"`

	problems []evidence.Problem
}

// newEvidenceReport sums up the findings.
func newEvidenceReport(store string, known *evidenceKnown, found *records.Found) *evidenceReport {
	r := &evidenceReport{Store: store, Keys: known.Keys.Ring.IDs(), Chains: []chainReport{}, Problems: found.Report.Problems}
	for _, chain := range found.Chains() {
		owner := found.Owners[chain.UID]
		report := chainReport{
			ChainReport: chain.ChainReport, Policy: owner.Policy, Releases: owner.Releases,
			Head: chain.Head, Anchor: chain.Anchor, Checkpoints: chain.Checkpoints, name: found.NameChain(chain.UID),
		}
		if chain.IsOpen() {
			r.OpenEnds = append(r.OpenEnds, chain.UID)
		}
		r.Chains = append(r.Chains, report)
		r.Records += chain.Records
	}
	if !known.offline {
		r.Plans = &plansReport{Compared: len(known.Plans), Running: known.Running}
	}
	return r
}

func newAuditReport(log *evidence.AuditLog, joined *evidence.JoinReport, writers []string, all []evidence.Record, bounds evidence.JoinOptions) *auditReport {
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
	case slices.ContainsFunc(all, early):
		r.Hint = "there are records from before the log begins; --since-time " + log.First.UTC().Format(time.RFC3339) + " leaves them out"
	case slices.ContainsFunc(all, late):
		r.Hint = "there are records from after the log ends; --until-time " + log.Last.UTC().Format(time.RFC3339) + " leaves them out"
	}
	return r
}

// describeEvidence writes the report for people: the records, the problems, and
// the verdict last.
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
		shown[i] = wording.FormatKey(id, false)
	}
	return shown
}

func describeChain(d *invocation.Description, c *chainReport, offline bool) {
	words, details := wording.DescribeChain(&wording.Chain{ChainReport: c.ChainReport, Head: c.Head, Anchor: c.Anchor, Checkpoints: c.Checkpoints}, offline)
	d.Line(1, "%s  %s", c.name, words)
	for _, detail := range details {
		d.Line(2, "%s", detail)
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
	words := wording.ConcludeEvidence(r.Records, len(r.Chains), len(r.Problems), len(r.OpenEnds))
	if r.Audit != nil && len(r.Problems) == 0 && r.Records > 0 {
		words += ", and the writes in the audit log are those of the records"
	}
	return words + "."
}
