// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// The longest texts that a status takes, in bytes.
const (
	maxMessage     = 1024
	maxLine        = 512
	maxWorkMessage = 256
)

// Write puts a state into a status.
func (s State) Write(status *v1alpha1.ABReleaseStatus) {
	status.ActiveVariation = v1alpha1.VariationName(s.Active)
	out := &v1alpha1.RolloutStatus{Stage: int32(s.Current())} //nolint:gosec // at most MaxStages
	if s.Run != nil {
		out.Run = s.Run.write()
	}
	if w := s.Waiting; w != nil {
		out.Waiting = &v1alpha1.RolloutWait{Reason: string(w.Reason), StartTime: metav1.NewTime(w.Since), DeadlineTime: timeOrNil(w.Deadline), Message: shorten(w.Message, maxMessage)}
	}
	out.Gates, out.Works, out.Hold = writeGates(s.Gates), writeWorks(s.Works), writeHold(s.Hold)
	if h := s.Handled; h != nil {
		out.Handled = &v1alpha1.HandledControl{RolloutControl: v1alpha1.RolloutControl{
			Verb: v1alpha1.RolloutVerb(h.Verb), Run: h.Run, Stage: int32(h.Stage), Variation: v1alpha1.VariationName(h.Variation), Attempt: h.Attempt, //nolint:gosec // at most MaxStages
			RequestedBy: h.RequestedBy, Reason: h.Reason,
		}, Refusal: shorten(h.Refusal, maxMessage)}
	}
	for variation, revision := range s.Seen {
		out.Seen = append(out.Seen, revisionOf(variation, revision))
	}
	slices.SortFunc(out.Seen, func(a, b v1alpha1.VariationRevision) int {
		return strings.Compare(string(a.Variation), string(b.Variation))
	})
	for _, r := range s.Rejected {
		out.Rejected = append(out.Rejected, v1alpha1.RejectedRevision{
			VariationRevision: revisionOf(r.Variation, r.Revision), Run: r.Run, Reason: string(r.Reason), RejectionTime: metav1.NewTime(r.Time),
		})
	}
	for _, e := range s.History {
		out.History = append(out.History, v1alpha1.RolloutEvent{
			Number: e.Number, EventTime: metav1.NewTime(e.Time), Run: e.Run, Event: string(e.Event),
			TrafficPercentage: hundredths(int(e.Weight)), Message: shorten(e.Message, maxLine),
		})
	}
	status.Rollout = out
}

func (r *Run) write() *v1alpha1.RolloutRun {
	out := &v1alpha1.RolloutRun{
		Number: r.Number, State: v1alpha1.RunState(r.State), From: revisionOf(r.Active, r.From), To: revisionOf(r.Canary, r.To),
		ActiveImages: r.ActiveImages, Approval: v1alpha1.ApprovalPolicy(r.Approval.Policy), Author: r.Approval.Author, StrategyName: r.StrategyName, AutoAdvance: toggle(r.Strategy.AutoAdvance), RollbackOnFailure: toggle(r.Strategy.RollbackOnFailure),
		HealthCheckIntervalSeconds: seconds(r.Strategy.Interval), Queries: writeQueries(r.Strategy.Queries), Capacity: int32(r.Capacity), StartTime: metav1.NewTime(r.StartTime), //nolint:gosec // pods of a namespace
		CompletionTime: timeOrNil(r.EndTime), Reason: string(r.EndReason), Message: shorten(r.EndMessage, maxLine),
		Clone: r.writeClone(), CohortCheck: r.writeCheck(), Division: r.writeDivision(), FreshControl: r.writeControl(),
	}
	for i := range r.Stages {
		stage := &r.Stages[i]
		out.Stages = append(out.Stages, v1alpha1.RolloutStageStatus{
			Number: int32(i + 1), State: v1alpha1.RolloutStageState(stage.State), TrafficPercentage: hundredths(int(stage.Weight)), //nolint:gosec // at most MaxStages
			DurationSeconds: new(seconds(stage.Duration)), HealthThreshold: hundredths(stage.HealthThreshold), RequireApproval: toggle(stage.RequireApproval),
			ShiftTime: timeOrNil(stage.ShiftTime), StartTime: timeOrNil(stage.StartTime), PassTime: timeOrNil(stage.PassTime), CompletionTime: timeOrNil(stage.EndTime),
			StoppedSeconds: seconds(stage.Stopped), StopTime: timeOrNil(stage.StoppedSince), ShortTime: timeOrNil(stage.ShortSince),
			ApprovedBy: stage.ApprovedBy, Message: shorten(stage.Message, maxLine), Restarts: int32(stage.Restarts), //nolint:gosec // one for each verb of a person, or edit of a workload
			RequiredReady: int32(stage.Required), //nolint:gosec // pods of a namespace
		})
	}
	return out
}

// StateOf reads what a status says.
func StateOf(status *v1alpha1.ABReleaseStatus) State {
	s := State{Active: string(status.ActiveVariation), Seen: map[string]Revision{}}
	in := status.Rollout
	if in == nil {
		return s
	}
	if in.Run != nil {
		s.Run = runOf(in.Run)
	}
	if w := in.Waiting; w != nil {
		s.Waiting = &Wait{WaitReason(w.Reason), w.StartTime.Time, timeOf(w.DeadlineTime), w.Message}
	}
	s.Gates, s.Works, s.Hold = readGates(in.Gates), readWorks(in.Works), readHold(in.Hold)
	if h := in.Handled; h != nil {
		s.Handled = &Handled{*ControlOf(&h.RolloutControl), h.Refusal}
	}
	for i := range in.Seen {
		s.Seen[string(in.Seen[i].Variation)] = readRevision(&in.Seen[i])
	}
	for i := range in.Rejected {
		r := &in.Rejected[i]
		s.Rejected = append(s.Rejected, Rejected{readRevision(&r.VariationRevision), string(r.Variation), r.Run, EndReason(r.Reason), r.RejectionTime.Time})
	}
	for i := range in.History {
		e := &in.History[i]
		s.History = append(s.History, Entry{e.Number, e.EventTime.Time, e.Run, EventName(e.Event), weightOf(e.TrafficPercentage), e.Message})
	}
	return s
}

func runOf(in *v1alpha1.RolloutRun) *Run {
	run := &Run{
		Number: in.Number, State: RunState(in.State), Active: string(in.From.Variation), Canary: string(in.To.Variation),
		From: readRevision(&in.From), To: readRevision(&in.To), ActiveImages: in.ActiveImages, Approval: Approval{ApprovalPolicy(in.Approval), in.Author}, StrategyName: in.StrategyName,
		Strategy: Strategy{AutoAdvance: in.AutoAdvance == v1alpha1.Enabled, RollbackOnFailure: in.RollbackOnFailure == v1alpha1.Enabled, Interval: time.Duration(in.HealthCheckIntervalSeconds) * time.Second, Queries: readQueries(in.Queries)},
		Capacity: int(in.Capacity), StartTime: in.StartTime.Time, EndTime: timeOf(in.CompletionTime), EndReason: EndReason(in.Reason), EndMessage: in.Message,
	}
	run.readClone(in.Clone)
	run.Check, run.Division, run.Control = checkIn(in.CohortCheck), divisionIn(in.Division), controlIn(in.FreshControl)
	for i := range in.Stages {
		stage := &in.Stages[i]
		status := StageStatus{
			Stage: Stage{Weight: weightOf(stage.TrafficPercentage), HealthThreshold: int(weightOf(stage.HealthThreshold)), RequireApproval: stage.RequireApproval == v1alpha1.Enabled},
			State: StageState(stage.State), ShiftTime: timeOf(stage.ShiftTime), StartTime: timeOf(stage.StartTime), EndTime: timeOf(stage.CompletionTime),
			Stopped: time.Duration(stage.StoppedSeconds) * time.Second, StoppedSince: timeOf(stage.StopTime), PassTime: timeOf(stage.PassTime),
			ApprovedBy: stage.ApprovedBy, ShortSince: timeOf(stage.ShortTime), Restarts: int(stage.Restarts), Message: stage.Message,
			Required: int(stage.RequiredReady),
		}
		if stage.DurationSeconds != nil {
			status.Duration = time.Duration(*stage.DurationSeconds) * time.Second
		}
		run.Stages = append(run.Stages, status)
		run.Strategy.Stages = append(run.Strategy.Stages, status.Stage)
	}
	return run
}

// ControlOf reads the request of a person; nil if there is none.
func ControlOf(in *v1alpha1.RolloutControl) *Control {
	if in == nil {
		return nil
	}
	return &Control{Verb: Verb(in.Verb), Run: in.Run, Stage: int(in.Stage), Variation: string(in.Variation), Attempt: in.Attempt, RequestedBy: in.RequestedBy, Reason: in.Reason}
}

func revisionOf(variation string, r Revision) v1alpha1.VariationRevision {
	return v1alpha1.VariationRevision{Variation: v1alpha1.VariationName(variation), Hash: r.Hash, Label: r.Label, Image: shorten(r.Image, maxLine)}
}

func readRevision(r *v1alpha1.VariationRevision) Revision {
	return Revision{r.Hash, r.Label, r.Image}
}

// hundredths of a percent as a percentage of the API.
func hundredths(n int) *v1alpha1.Percentage {
	if n%100 == 0 {
		return new(v1alpha1.Percent(int32(n / 100))) //nolint:gosec // at most 100
	}
	return &v1alpha1.Percentage{IntOrString: intstr.FromString(percent(traffic.Weight(n)))}
}

// weightOf returns a percentage as a weight; 0 for one that is missing.
func weightOf(p *v1alpha1.Percentage) traffic.Weight {
	if p == nil {
		return 0
	}
	weight, _ := release.WeightOf(*p) // the schema lets nothing else in
	return weight
}

func toggle(on bool) v1alpha1.Toggle {
	if on {
		return v1alpha1.Enabled
	}
	return v1alpha1.Disabled
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t))
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// shorten cuts a text to so many bytes, between two characters.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
