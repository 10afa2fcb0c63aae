// SPDX-License-Identifier: Apache-2.0

package view

import (
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// LedgerOf shows whether remediation is halted, with the forms that halt it and let it go on.
func LedgerOf(l *v1alpha1.RemediationLedger, now time.Time) Page {
	facts := []wording.Field{{Label: "Scope", Value: scopeWords(l)}, {Label: "State", Value: "not halted"}}
	if h := l.Spec.Halt; h != nil {
		facts[1].Value = wording.AppendReason("halted by "+wording.NameActor(h.RequestedBy), h.Reason)
	}
	if from := l.Status.GrantStartTime; from != nil && from.After(now) {
		facts = append(facts, wording.Field{Label: "Grants from", Value: wording.FormatTimestamp(*from)})
	}
	return Page{Title: "Remediation of " + scopeWords(l), Entry: FleetPath, Time: now, Sections: []Section{
		{Title: "Ledger", Facts: facts}, actionsOf(haltForm(l), unhaltForm(l)),
	}}
}

func ledgerForm(l *v1alpha1.RemediationLedger, id, button, line string) Form {
	return Form{
		ID: id, Action: pathOf(LedgersPath, l.Namespace, l.Name, id), Button: button, Lines: []string{line},
		Wants: []Want{{"patch", "remediationledgers", l.Namespace, l.Name}},
	}
}

func haltForm(l *v1alpha1.RemediationLedger) Form {
	f := ledgerForm(l, "halt", "Halt remediation", "The ledger grants no more steps, and plans that have not ended are canceled. The halt holds until a person takes it back.")
	f.Inputs = []Input{reasonInput()}
	if h := l.Spec.Halt; h != nil {
		f.Barred = notNow("remediation is halted already, by " + wording.NameActor(h.RequestedBy))
	}
	return f
}

func unhaltForm(l *v1alpha1.RemediationLedger) Form {
	f := ledgerForm(l, "unhalt", "Let remediation go on", "Plans that the halt canceled stay canceled. While the drift lasts, active policies make new plans.")
	if l.Spec.Halt == nil {
		f.Barred = notNow("remediation is not halted")
	}
	return f
}

// ledgerLinks lead to the forms of each ledger.
func ledgerLinks(in *Fleet) []Cell {
	var links []Cell
	for i := range in.Ledgers {
		l := &in.Ledgers[i]
		words := "Halt remediation of " + scopeWords(l)
		if l.Spec.Halt != nil {
			words = "Let remediation of " + scopeWords(l) + " go on"
		}
		links = append(links, link(pathOf(LedgersPath, l.Namespace, l.Name), words))
	}
	return links
}
