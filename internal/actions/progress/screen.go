// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Screen is a release at a glance.
type Screen struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Service   string `json:"service"`
	// HasRollout says whether the release has a spec.rollout.
	HasRollout bool `json:"hasRollout"`
	// Run is the run that began last; nil before the first.
	Run        *Run        `json:"run,omitempty"`
	Stages     []Stage     `json:"stages,omitempty"`
	Variations []Variation `json:"variations,omitempty"`
	// Groups are there if runs divide replicas, and in the place of Variations if runs divide no requests.
	Groups []Group `json:"groups,omitempty"`
	// Routers is the noun of the routers of the release: proxies, routers, or proxies and routers.
	Routers string `json:"-"`
	// Proxies says which proxies have what is in force; nil when the status does not say it.
	Proxies *Proxies `json:"proxies,omitempty"`
	// Judge is the verdict about the stage under way, or the last one about a run that has ended; nil without a
	// verdict.
	Judge *Judge `json:"judge,omitempty"`
	// Trail has the e-values that a watch has seen; none without a watch.
	Trail Trail `json:"-"`
	// Wait is what the run waits for; nil while the run waits for nothing.
	Wait *Wait `json:"wait,omitempty"`
	// Next says what follows the stage under way; empty when no stage is under way.
	Next string `json:"next,omitempty"`
}

// Run is one revision on its way.
type Run struct {
	Number int64             `json:"number"`
	State  v1alpha1.RunState `json:"state"`
	// From and To name the revisions: by the image, or by the hash when the image is not known.
	From string `json:"from"`
	To   string `json:"to"`
	// Strategy is the RolloutStrategy by name; empty when the release has a strategy of its own.
	Strategy string `json:"strategy,omitempty"`
	// Age is the time from the begin of the run until its end, or until now.
	Age Duration `json:"age"`
	// EndTime is when the run ended; nil while the run is under way.
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// QueuedTime is since when another change waits for the end of the run; nil while none does.
	QueuedTime *metav1.Time `json:"queuedTime,omitempty"`
	// Message is about the end, for people.
	Message string `json:"message,omitempty"`
}

// Stage is one stage of the run.
type Stage struct {
	Number int32                      `json:"number"`
	State  v1alpha1.RolloutStageState `json:"state"`
	// Percentage of the requests that the canary gets, such as "25".
	Percentage string `json:"percentage"`
	// Measured is for how long the clock of the stage has run, without the times in which the clock stood.
	Measured Duration `json:"measured"`
	// Wanted is the shortest time that the stage is measured.
	Wanted Duration `json:"wanted"`
	// NeedsApproval says whether a person still has to approve the stage.
	NeedsApproval bool   `json:"needsApproval,omitempty"`
	ApprovedBy    string `json:"approvedBy,omitempty"`
	// Restarts counts measurements that began anew.
	Restarts int32  `json:"restarts,omitempty"`
	Message  string `json:"message,omitempty"`
}

// Judge is the verdict about a stage.
type Judge struct {
	Verdict v1alpha1.HealthVerdict `json:"verdict"`
	Message string                 `json:"message,omitempty"`
	// Errors and Latency compare both variations; nil when the status has no comparison.
	Errors  *v1alpha1.HealthComparison `json:"errors,omitempty"`
	Latency *v1alpha1.HealthComparison `json:"latency,omitempty"`
	// SlowerThanMilliseconds is the latency above which a request is slow; 0 while latency is not judged.
	SlowerThanMilliseconds int64 `json:"slowerThanMilliseconds,omitempty"`
	// Gaps counts the proxies and replicas of which some counts of the run were lost.
	Gaps int64 `json:"gaps,omitempty"`
	// Variations are the health of both, the active one first.
	Variations []v1alpha1.VariationHealth `json:"-"`
}

// Wait is what the run waits for.
type Wait struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Deadline is when something follows; nil when no time ends the wait.
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// Left is the time until the deadline; 0 when the deadline is over or absent.
	Left Duration `json:"left"`
}

// Duration is a length of time that JSON shows as a Kubernetes duration, such as "4m40s".
type Duration = metav1.Duration

// IsOver tells whether a run goes no further.
func (r *Run) IsOver() bool { return hasEnded(r.State) }

func hasEnded(state v1alpha1.RunState) bool { return state == "Completed" || state == "RolledBack" }

// ScreenOf returns the release at a glance. now is the time of the API server.
func ScreenOf(r *v1alpha1.ABRelease, now time.Time) Screen {
	s := Screen{
		Namespace: r.Namespace, Name: r.Name, Service: r.Spec.ServiceName, HasRollout: r.Spec.Rollout != nil,
		Variations: variationsOf(r), Routers: r.Spec.RouterNoun(), Proxies: proxiesOf(r),
	}
	if s.Groups = groupsOf(r); !r.Spec.HasRequests() {
		s.Variations = nil
	}
	in := r.Status.Rollout
	if in == nil || !s.HasRollout {
		return s
	}
	s.Wait = waitOf(in.Waiting, now)
	if in.Run == nil {
		return s
	}
	s.Run = runOf(in.Run, now)
	for i := range in.Run.Stages {
		s.Stages = append(s.Stages, stageOf(&in.Run.Stages[i], now))
	}
	if a := analysisOf(in); a != nil && a.Verdict != "" {
		s.Judge = judgeOf(a)
	} else if a := in.Analysis; s.Run.IsOver() && a != nil && a.Run == in.Run.Number && a.Verdict != "" && a.Verdict != "NoData" {
		s.Judge = judgeOf(a)
	}
	s.Next = nextOf(r)
	return s
}

func runOf(in *v1alpha1.RolloutRun, now time.Time) *Run {
	end := now
	if !in.CompletionTime.IsZero() {
		end = in.CompletionTime.Time
	}
	var queued *metav1.Time
	if in.Clone != nil {
		queued = in.Clone.QueuedTime
	}
	return &Run{
		QueuedTime: queued, Number: in.Number, State: in.State, From: cmp.Or(in.From.Image, in.From.Hash), To: cmp.Or(in.To.Image, in.To.Hash),
		Strategy: in.StrategyName, Age: between(in.StartTime.Time, end), EndTime: in.CompletionTime, Message: in.Message,
	}
}

func stageOf(in *v1alpha1.RolloutStageStatus, now time.Time) Stage {
	return Stage{
		Number: in.Number, State: in.State, Percentage: percentOf(in.TrafficPercentage), Measured: measured(in, now), Wanted: seconds(in.DurationSeconds),
		NeedsApproval: in.RequireApproval == v1alpha1.Enabled && in.ApprovedBy == "", ApprovedBy: in.ApprovedBy, Restarts: in.Restarts, Message: in.Message,
	}
}

// measured returns for how long the clock of a stage has run.
func measured(in *v1alpha1.RolloutStageStatus, now time.Time) Duration {
	if in.StartTime.IsZero() {
		return Duration{}
	}
	end := now
	switch {
	case !in.CompletionTime.IsZero():
		end = in.CompletionTime.Time
	case !in.StopTime.IsZero():
		end = in.StopTime.Time
	}
	return between(in.StartTime.Add(time.Duration(in.StoppedSeconds)*time.Second), end)
}

func waitOf(in *v1alpha1.RolloutWait, now time.Time) *Wait {
	if in == nil {
		return nil
	}
	w := &Wait{Reason: in.Reason, Message: in.Message, Deadline: in.DeadlineTime}
	if !in.DeadlineTime.IsZero() {
		w.Left = between(now, in.DeadlineTime.Time)
	}
	return w
}

// nextOf says what follows the stage under way, and which person has to come before.
func nextOf(r *v1alpha1.ABRelease) string {
	in := r.Status.Rollout
	i := int(in.Stage) - 1
	if i < 0 || i >= len(in.Run.Stages) || hasEnded(in.Run.State) {
		return ""
	}
	next := fmt.Sprintf("all %s to %s for good", divided(in.Run), in.Run.To.Variation)
	isLast := i+1 == len(in.Run.Stages)
	if !isLast {
		next = percentOf(in.Run.Stages[i+1].TrafficPercentage) + " %"
	}
	stage := &in.Run.Stages[i]
	switch {
	case stage.RequireApproval == v1alpha1.Enabled && stage.ApprovedBy == "":
		next += ", after an approval"
		if by := rollout.Approver(r); by != "" {
			next += " by " + by
		}
	case in.Run.AutoAdvance == v1alpha1.Disabled && !isLast:
		next += ", after the verb Advance"
	}
	return next
}

// analysisOf returns the analysis if it is about the stage under way; nil otherwise.
func analysisOf(in *v1alpha1.RolloutStatus) *v1alpha1.RolloutAnalysis {
	if a := in.Analysis; a != nil && in.Run != nil && in.Stage > 0 && a.Run == in.Run.Number && a.Stage == in.Stage {
		return a
	}
	return nil
}

func judgeOf(a *v1alpha1.RolloutAnalysis) *Judge {
	return &Judge{
		Verdict: a.Verdict, Message: a.Message, Errors: a.Errors, Latency: a.Latency,
		SlowerThanMilliseconds: a.SlowerThanMilliseconds, Gaps: a.Gaps, Variations: a.Variations,
	}
}

func percentOf(p *v1alpha1.Percentage) string {
	if p == nil {
		return ""
	}
	return p.String()
}

func seconds(n *int64) Duration {
	if n == nil {
		return Duration{}
	}
	return Duration{Duration: time.Duration(*n) * time.Second}
}

// between returns the time from one point to a later one; 0 when the second is not later.
func between(from, to time.Time) Duration { return Duration{Duration: max(0, to.Sub(from))} }
