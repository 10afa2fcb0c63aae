// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"maps"
	"slices"
)

// Form asks for one verb. Without a script it works the same.
type Form struct {
	// ID is the verb: the fragment of the form, and the last segment of its path.
	ID, Action string
	// Leads says that the form sends no write, and leads to the page that asks again.
	Leads bool
	// Lines describe the effect of the verb.
	Lines  []string
	Inputs []Input
	Button string
	// Wants are the rights that the verb takes.
	Wants []Want
	// Barred says why the caller cannot press the button; empty for one who can.
	Barred string
	// Error says why the last request was refused.
	Error   string
	Focused bool
}

// Input is a value that a form has.
type Input struct {
	Name, Label, Value string
	Kind               InputKind
	// Choices are those of a list or of boxes.
	Choices []Choice
	// MaxLength is in characters; 0 for no bound.
	MaxLength int
	// Error says why the last value was refused.
	Error   string
	Focused bool
}

// InputKind is the way in which a value is entered.
type InputKind string

// The kinds of inputs.
const (
	TextInput   InputKind = "text"
	HiddenInput InputKind = "hidden"
	ListInput   InputKind = "list"
	BoxesInput  InputKind = "boxes"
)

// Choice is one of several values.
type Choice struct {
	Value, Label string
	Chosen       bool
}

// Want is a right that a verb takes.
type Want struct{ Verb, Resource, Namespace, Name string }

// Missing says that the caller lacks the right, and which role of the chart has it.
func (w *Want) Missing() string {
	where := "in the whole cluster"
	if w.Namespace != "" {
		where = "in namespace " + w.Namespace
	}
	sentence := fmt.Sprintf("You may not %s %s %s", w.Verb, w.Resource, where)
	if role := RoleOf(w.Verb, w.Resource); role != "" {
		sentence += ": the ClusterRole " + role + " has this right"
	}
	return sentence + "."
}

// maxReason is how many characters of a reason the API takes.
const maxReason = 256

// reasonInput asks for the reason of a request.
func reasonInput() Input { return Input{Name: "reason", Label: "Reason", MaxLength: maxReason} }

// hidden is a value that the caller has seen and that the request names.
func hidden(name, value string) Input { return Input{Name: name, Value: value, Kind: HiddenInput} }

// Refusal says why the request of a form was refused.
type Refusal struct {
	// Form is the ID of the form.
	Form, Sentence string
	// Faults are the sentences about single inputs, by name.
	Faults map[string]string
	// Values of the request by the name of the input; nil where the form has them already.
	Values map[string][]string
}

// Refuse shows a form with the values of the request that was refused. The focus is where the fault is.
// Values that the caller has not typed are those of now.
func (p *Page) Refuse(r *Refusal) {
	p.Still = true
	for i := range p.Sections {
		forms := p.Sections[i].Forms
		if at := slices.IndexFunc(forms, func(f Form) bool { return f.ID == r.Form && !f.Leads }); at >= 0 {
			forms[at].refuse(r)
			return
		}
	}
	p.Unread = append(p.Unread, r.Sentence)
}

func (f *Form) refuse(r *Refusal) {
	f.Error, f.Focused = r.Sentence, true
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		at := slices.IndexFunc(f.Inputs, func(in Input) bool { return in.Name == name && in.Kind != HiddenInput })
		if at < 0 { // the caller sees no such input
			f.Error += "; " + r.Faults[name]
			continue
		}
		f.Inputs[at].Error, f.Focused = r.Faults[name], false
	}
	if at := slices.IndexFunc(f.Inputs, func(in Input) bool { return in.Error != "" }); at >= 0 {
		f.Inputs[at].Focused = true
	}
	if r.Values == nil {
		return
	}
	for i := range f.Inputs {
		f.Inputs[i].enter(r.Values[f.Inputs[i].Name])
	}
}

// enter gives an input the values of a request. A hidden value stays that of now.
func (in *Input) enter(values []string) {
	switch in.Kind {
	case TextInput, "":
		if len(values) > 0 {
			in.Value = values[0]
		}
	case ListInput, BoxesInput:
		for n := range in.Choices {
			in.Choices[n].Chosen = slices.Contains(values, in.Choices[n].Value)
		}
	case HiddenInput:
	}
}

// notNow bars a button for a reason, which is a clause: it may begin with the name of a user.
func notNow(why string) string { return "Not now: " + why + "." }

// actionsID is the fragment of the section with the forms of a page.
const actionsID = "actions"

func actionsOf(forms ...Form) Section {
	return Section{ID: actionsID, Title: "Actions", Forms: forms}
}
