// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// admission is what a webhook does to a write that gives a target another spec.
type admission int

const (
	// admitting lets each write through as it is.
	admitting admission = iota
	// defaulting sets a field that the write lacks.
	defaulting
	// changing sets another image, or another selector, than the write has.
	changing
	// refusing refuses the write.
	refusing
)

var admissions = map[admission]string{defaulting: "defaults", changing: "changes", refusing: "refuses"}

// turnsAdmission has the webhook at work for a while, or not at work for a while.
func (p *person) turnsAdmission() {
	p.w.count("webhook that " + admissions[p.w.admission])
	p.forAWhile(2*time.Minute, func() { p.w.turnAdmission(true) }, func() { p.w.turnAdmission(false) })
}

// turnAdmission notes the turn: a dry run of before says nothing about a write after it.
func (w *World) turnAdmission(works bool) {
	if w.webhook.Swap(works) != works {
		w.turnsMu.Lock()
		w.turns = append(w.turns, time.Now())
		w.turnsMu.Unlock()
	}
}

// mutates is the webhook that changes writes.
func (w *World) mutates(_ string, before, after apiserver.Object) {
	spec := specOf(after)
	if !w.webhook.Load() || spec == nil || before != nil && fmt.Sprint(before["spec"]) == fmt.Sprint(spec) {
		return
	}
	switch w.admission {
	case admitting, refusing:
	case defaulting:
		if spec["sessionAffinity"] == nil && spec["revisionHistoryLimit"] == nil {
			spec[defaultedIn(spec)] = defaults[defaultedIn(spec)]
		}
	case changing:
		replaceContent(spec)
	}
}

var defaults = map[string]any{"sessionAffinity": "None", "revisionHistoryLimit": int64(10)}

// defaultedIn is the field that the webhook defaults.
func defaultedIn(spec apiserver.Object) string {
	if spec["template"] == nil {
		return "sessionAffinity"
	}
	return "revisionHistoryLimit"
}

// replaceContent gives a spec content that no writer sent.
func replaceContent(spec apiserver.Object) {
	if spec["template"] == nil {
		spec["selector"] = map[string]any{"app": "webhook"}
		return
	}
	containers := spec["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)
	containers[0].(map[string]any)["image"] = "shop:webhook"
}

// refuses is the webhook that refuses writes.
func (w *World) refuses(before, after apiserver.Object) []metav1.StatusCause {
	if w.admission != refusing || !w.webhook.Load() || before != nil && fmt.Sprint(before["spec"]) == fmt.Sprint(after["spec"]) {
		return nil
	}
	return []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Message: "the webhook refuses it", Field: "spec"}}
}

// watchedByWebhook gives the kinds of targets their webhook.
func (w *World) watchedByWebhook(all []apiserver.Resource) []apiserver.Resource {
	for i := range all {
		if kindOf(all[i].Group, all[i].Resource) == nil {
			continue
		}
		validate := all[i].Validate
		all[i].Mutate = w.mutates
		all[i].Validate = func(before, after apiserver.Object) []metav1.StatusCause {
			if causes := w.refuses(before, after); causes != nil || validate == nil {
				return causes
			}
			return validate(before, after)
		}
	}
	return all
}
