// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// Evidence has the values of a page about signed records.
type Evidence struct {
	// Found has the wanted records, and the report about all that were read.
	Found *records.Found
	// Known has the facts that they were compared with, and Warnings name the facts that were missing.
	Known    *records.Known
	Warnings []string
	Now      time.Time
}

// EvidenceOf shows all chains of records, and whether they are whole.
func EvidenceOf(in *Evidence) Page {
	report, chains := in.Found.Report, in.Found.Chains()
	total, open := 0, 0
	for i := range chains {
		total += chains[i].Records
		if chains[i].IsOpen() {
			open++
		}
	}
	return Page{
		Title: "Evidence", Entry: EvidencePath, Time: in.Now, Paused: true, Unread: in.Warnings,
		Sections: []Section{
			{Title: "Verdict", Lines: []string{
				wording.ConcludeEvidence(total, len(chains), len(report.Problems), open) + ".",
				fmt.Sprintf("%s compared, %d that have not ended left out.", plural.Of(len(in.Known.Plans), "ended plan"), in.Known.Running),
			}},
			{Title: "Chains", Table: chainsOf(in.Found, chains)},
			{Title: "Problems", Table: problemsOf(report.Problems)},
		},
	}
}

func chainsOf(found *records.Found, chains []wording.Chain) *Table {
	t := &Table{Caption: "Chains of signed records", Columns: []string{"Chain", "Verdict", "Records and end", "Details"}, Empty: "The store has no record."}
	for i := range chains {
		words, details := wording.DescribeChain(&chains[i], false)
		t.Rows = append(t.Rows, []Cell{text(found.NameChain(chains[i].UID)), verdictOf(found, &chains[i]), text(words), {Lines: details}})
	}
	return t.cut()
}

// verdictOf says whether a chain is whole.
func verdictOf(found *records.Found, c *wording.Chain) Cell {
	switch problems := problemsIn(found, c.UID); {
	case len(problems) > 0:
		return Cell{Text: "not whole", Mark: "✗", State: "gate-holds"}
	case c.IsOpen():
		return Cell{Text: "unknown", Mark: "?", State: "gate-unknown"}
	}
	return Cell{Text: "whole", Mark: "✓", State: "gate-ok"}
}

func problemsIn(found *records.Found, chain string) []evidence.Problem {
	return keep(found.Report.Problems, func(p *evidence.Problem) bool { return p.Chain == chain })
}

func problemsOf(problems []evidence.Problem) *Table {
	t := &Table{Caption: "Problems of the records", Columns: []string{"Problem", "Reason"}, Empty: "No problem was found."}
	for _, p := range problems {
		t.Rows = append(t.Rows, texts(string(p.Kind), p.String()))
	}
	return t.cut()
}

// PlanEvidenceOf shows the facts of the records of a plan, and whether their chain is whole.
func PlanEvidenceOf(p *packet.Packet, in *Evidence) Page {
	name := p.Plan.Namespace + "/" + p.Plan.Name
	page := recordsPage("Evidence of plan "+name, p.Chain.UID, in)
	page.Sections[0].Links = []Cell{
		link(pathOf(packetsPath, p.Plan.Namespace+"."+p.Plan.Name)+"/evidence", "Download the packet with its signed records"),
		link(pathOf(PlansPath, p.Plan.Namespace, p.Plan.Name), "Plan "+name+", while it is kept"),
	}
	drift := &Table{Caption: "Drift that the plan was made for", Columns: []string{"Step, object, action and severity", "Details"}, Empty: "The records name no drift."}
	for i := range p.DetectedDrift {
		drift.Rows = append(drift.Rows, itemRow(wording.DescribeDetectedDrift(&p.DetectedDrift[i], false, in.Now)))
	}
	results := &Table{Caption: "Results of the steps", Columns: []string{"Step, object, action and end", "Details"}, Empty: "No step has ended."}
	for i := range p.Results {
		results.Rows = append(results.Rows, itemRow(wording.DescribeResult(&p.Results[i], false)))
	}
	page.Sections = slices.Insert(page.Sections, 1,
		Section{Title: "Packet", Facts: wording.DescribePacket(p, false, in.Now)},
		Section{Title: "Drift", Table: drift}, Section{Title: "Results", Table: results},
		Section{Title: "Contents", Lines: wording.DescribeContents(p, false)})
	return page
}

func itemRow(words string, details []string) []Cell { return []Cell{text(words), {Lines: details}} }

// ReleaseEvidenceOf shows the records of a release, and whether their chain is whole. There is one record at least.
func ReleaseEvidenceOf(namespace, name string, in *Evidence) Page {
	page := recordsPage("Evidence of release "+namespace+"/"+name, in.Found.Records[0].Record.Chain.UID, in)
	page.Sections[0].Links = []Cell{link(pathOf(ReleasesPath, namespace, name), "Release "+namespace+"/"+name+", while it is kept")}
	return page
}

// recordsPage shows the verdict about a chain, its problems, and the wanted records.
func recordsPage(title, chain string, in *Evidence) Page {
	verdict := Section{Title: "Verdict"}
	for _, c := range in.Found.Chains() {
		if c.UID != chain {
			continue
		}
		words, details := wording.DescribeChain(&c, false)
		open := 0
		if c.IsOpen() {
			open = 1
		}
		verdict.Lines = append([]string{
			wording.ConcludeEvidence(c.Records, 1, len(problemsIn(in.Found, chain)), open) + ".",
			"Chain " + in.Found.NameChain(chain) + ": " + words,
		}, details...)
	}
	return Page{
		Title: title, Entry: EvidencePath, Time: in.Now, Paused: true, Unread: in.Warnings,
		Sections: []Section{verdict, {Title: "Problems", Table: problemsOf(problemsIn(in.Found, chain))}, {Title: "Records", Table: recordsOf(in)}},
	}
}

func recordsOf(in *Evidence) *Table {
	t := &Table{Caption: "Signed records, in the order of their chain", Columns: []string{"Record", "Event", "Time", "Details"}, Empty: "There is no record."}
	for i := range in.Found.Records {
		s := &in.Found.Records[i]
		r := &s.Record
		at := metav1.NewTime(r.At)
		var details []string
		for _, field := range wording.DescribeRecord(s, in.Found.WithdrawnBy(r), false) {
			details = append(details, strings.TrimSpace(field.Label+": "+field.Value))
		}
		t.Rows = append(t.Rows, []Cell{
			text(fmt.Sprintf("#%d", r.Chain.Sequence)), text(wording.NameRecord(r)), {Text: wording.FormatAgo(at, in.Now), UTC: wording.FormatTimestamp(at)}, {Lines: details},
		})
	}
	return t.cut()
}
