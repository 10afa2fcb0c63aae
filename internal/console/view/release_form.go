// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// releaseForms ask for the verbs of a release. Promote and approve lead to pages that ask again.
func releaseForms(r *v1alpha1.ABRelease) Section {
	start, advance := releaseForm(r, "start", "Start the run", "Start"), releaseForm(r, "advance", "Advance the run", "Advance")
	rollback := releaseForm(r, "rollback", "Roll back", "Rollback")
	start.Inputs, rollback.Inputs = []Input{reasonInput()}, []Input{reasonInput()}
	advance.Inputs = []Input{stagesInput(r), reasonInput()}
	if in := r.Status.Rollout; start.Barred == "" && in.Run.State != "Created" {
		start.Barred = notNow("the run has started already")
	}
	approve, promote := releaseForm(r, "approve", "Approve the stage", "Approve"), releaseForm(r, "promote", "Promote a variation", "Promote")
	approve.Leads, promote.Leads = true, true
	barApproval(r, &approve)
	promote.Inputs = []Input{{Name: "variation", Label: "Variation", Kind: ListInput, Choices: variationChoices(&r.Spec)}}
	return actionsOf(start, advance, approve, skipForm(r), retryForm(r), pauseForm(r), promote, rollback)
}

// skipForm names the stage that the page shows: the request is about no other one.
func skipForm(r *v1alpha1.ABRelease) Form {
	f := releaseForm(r, "skip", "Skip the stage", "Skip")
	f.Inputs = []Input{reasonInput()}
	stage := stageUnderWay(r)
	switch {
	case stage != nil:
		f.Lines = append(f.Lines, fmt.Sprintf("You skip stage %d%s of run %d.", stage.Number, shareWords(stage), r.Status.Rollout.Run.Number))
		f.Inputs = append(f.Inputs, hidden("runNumber", fmt.Sprint(r.Status.Rollout.Run.Number)), hidden("stageNumber", fmt.Sprint(stage.Number)))
	case f.Barred == "": // the cohort check has no number
		f.Inputs = append(f.Inputs, hidden("runNumber", fmt.Sprint(r.Status.Rollout.Run.Number)))
	}
	return f
}

func retryForm(r *v1alpha1.ABRelease) Form {
	f := releaseForm(r, "retry", "Retry", "Retry")
	f.Inputs = []Input{reasonInput()}
	return f
}

// pauseForm keeps a run from going forward, or lets a paused one go on.
func pauseForm(r *v1alpha1.ABRelease) Form {
	id, button, words := "pause", "Pause the run", wording.ReleasePause
	if actions.IsPauseAsWanted(r, v1alpha1.Enabled) {
		id, button, words = "resume", "Let the run go on", wording.ReleaseResume
	}
	f := Form{
		ID: id, Action: pathOf(ReleasesPath, r.Namespace, r.Name, id), Button: button, Lines: words.Paragraphs(), Wants: []Want{{"patch", "abreleases", r.Namespace, r.Name}},
	}
	if r.Spec.Rollout == nil {
		f.Barred = notNow((&actions.ReleaseRefusedError{Reason: actions.ReleaseHasNoRollout}).Error())
	}
	return f
}

// releaseForm is the form of a verb without its inputs.
func releaseForm(r *v1alpha1.ABRelease, id, button string, verb v1alpha1.RolloutVerb) Form {
	f := Form{
		ID: id, Action: pathOf(ReleasesPath, r.Namespace, r.Name, id), Button: button, Lines: wording.ReleaseVerbs[verb].Paragraphs(),
		Wants: []Want{{"patch", "abreleases", r.Namespace, r.Name}},
	}
	if verb == "Approve" || verb == "Promote" || verb == "Skip" || verb == "Retry" {
		f.Wants = append(f.Wants, Want{id, "abreleases", r.Namespace, r.Name})
		if who := rollout.Approver(r); who != "" && verb != "Retry" {
			f.Lines = append(f.Lines, "It takes "+who+".")
		}
	}
	if _, err := actions.PlanReleaseVerb(r, verb, 0, "", "", ""); err != nil {
		f.Barred = notNow(err.Error())
	}
	return f
}

// barApproval bars the approval of a run that waits for none.
func barApproval(r *v1alpha1.ABRelease, f *Form) {
	if f.Barred != "" {
		return
	}
	switch stage := stageUnderWay(r); {
	case stage == nil:
		f.Barred = notNow("no stage is under way")
	case stage.RequireApproval != v1alpha1.Enabled:
		f.Barred = notNow(fmt.Sprintf("stage %d needs no approval", stage.Number))
	case stage.ApprovedBy != "":
		f.Barred = notNow(fmt.Sprintf("stage %d is approved already, by %s", stage.Number, stage.ApprovedBy))
	}
}

// stageUnderWay returns the stage of the run that is under way; nil without one.
func stageUnderWay(r *v1alpha1.ABRelease) *v1alpha1.RolloutStageStatus {
	in := r.Status.Rollout
	if in == nil || in.Run == nil || in.Stage < 1 || int(in.Stage) > len(in.Run.Stages) {
		return nil
	}
	return &in.Run.Stages[in.Stage-1]
}

// stagesInput has the next stage, and each later one.
func stagesInput(r *v1alpha1.ABRelease) Input {
	in := Input{Name: "stageNumber", Label: "To stage", Kind: ListInput, Choices: []Choice{{Value: "", Label: "the next one"}}}
	if status := r.Status.Rollout; status != nil && status.Run != nil {
		for i := range status.Run.Stages {
			if s := &status.Run.Stages[i]; s.Number > status.Stage {
				in.Choices = append(in.Choices, Choice{Value: fmt.Sprint(s.Number), Label: fmt.Sprintf("%d%s", s.Number, shareWords(s))})
			}
		}
	}
	return in
}

// shareWords gives the share of the requests in a stage; empty for a stage of a run that divides no requests.
func shareWords(s *v1alpha1.RolloutStageStatus) string {
	if s.TrafficPercentage == nil {
		return ""
	}
	return " (" + s.TrafficPercentage.String() + " % of the requests)"
}

// variationChoices are the variations by the letters of the API, the stable one first.
func variationChoices(spec *v1alpha1.ABReleaseSpec) []Choice {
	var choices []Choice
	for letter := 'A'; letter <= 'H'; letter++ {
		if name, found := wire.VariationOf(spec, string(letter)); found {
			choices = append(choices, Choice{Value: string(letter), Label: string(name)})
		}
	}
	return choices
}

// ApprovalOf shows the stage, and has the form that approves it. The request names the run and the
// stage that the page shows.
func ApprovalOf(in *Release) Page {
	r := in.Release
	f := releaseForm(r, "approve", "Approve the stage now", "Approve")
	barApproval(r, &f)
	f.Inputs = []Input{reasonInput()}
	title := "Approve release " + r.Namespace + "/" + r.Name
	if stage := stageUnderWay(r); stage != nil {
		run := r.Status.Rollout.Run
		title = fmt.Sprintf("Approve stage %d of release %s/%s", stage.Number, r.Namespace, r.Name)
		f.Lines = append(f.Lines, fmt.Sprintf("You approve stage %d%s of run %d, which brings variation %s.", stage.Number, shareWords(stage), run.Number, run.To.Variation))
		f.Inputs = append(f.Inputs, hidden("runNumber", fmt.Sprint(run.Number)), hidden("stageNumber", fmt.Sprint(stage.Number)))
	}
	return askAgain(in, title, f)
}

// PromotionOf shows the run that a promotion ends, and has the form that gives all requests to a variation.
func PromotionOf(in *Release, letter string) Page {
	r := in.Release
	f := releaseForm(r, "promote", "Promote the variation now", "Promote")
	name, found := wire.VariationOf(&r.Spec, letter)
	if !found {
		f.Barred = notNow("the release has no such variation")
	}
	f.Inputs = []Input{reasonInput(), hidden("variation", letter)}
	f.Lines = append(f.Lines, fmt.Sprintf("You give all requests to variation %s.", wording.NameActor(string(name))))
	return askAgain(in, fmt.Sprintf("Promote variation %s of release %s/%s", wording.NameActor(string(name)), r.Namespace, r.Name), f)
}

// askAgain is the page of a release with one form.
func askAgain(in *Release, title string, f Form) Page {
	page := ReleaseOf(in)
	page.Title, page.Still = title, true
	for i := range page.Sections {
		if page.Sections[i].ID == actionsID {
			page.Sections[i] = actionsOf(f)
		}
	}
	return page
}
