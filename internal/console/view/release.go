// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
)

// ReleasesOf lists releases: what is in force, their stage, and what they wait for.
func ReleasesOf(releases []v1alpha1.ABRelease, namespace string, now time.Time) Page {
	releases = slices.Clone(releases)
	slices.SortFunc(releases, func(x, y v1alpha1.ABRelease) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	t := &Table{
		Caption: "Releases", Columns: []string{"Release", "Service", "Split", "State", "Stage", "Verdict", "Waiting for", "To", "Age"}, Empty: "There is no release.",
	}
	for i := range releases {
		r := &releases[i]
		s := progress.ScreenOf(r, now)
		state, to, verdict := "", "", ""
		if s.Run != nil {
			state, to = fmt.Sprintf("run %d, %s", s.Run.Number, s.Run.State), s.Run.To
		}
		if s.Judge != nil {
			verdict = string(s.Judge.Verdict)
		}
		t.Rows = append(t.Rows, []Cell{
			link(pathOf(ReleasesPath, r.Namespace, r.Name), r.Namespace+"/"+r.Name), text(r.Spec.ServiceName), text(r.Status.Split), text(state), text(stageWords(&s)),
			text(verdict), text(waitWords(&s)), text(to), age(&r.CreationTimestamp, now),
		})
	}
	return Page{Title: "Releases", Entry: ReleasesPath, Time: now, Filters: []Filter{namespaceFilter(namespace)}, Sections: []Section{{Title: "Releases", Table: t.cut()}}}
}

// stageWords names the stage under way; nothing without one.
func stageWords(s *progress.Screen) string {
	for i := range s.Stages {
		if s.Stages[i].State == "Running" {
			return fmt.Sprintf("%d of %d, %s %%", s.Stages[i].Number, len(s.Stages), s.Stages[i].Percentage)
		}
	}
	return ""
}

// Release is what the page of a release is made from.
type Release struct {
	*progress.Question
	// Hour is the last hour of the release; nil where the page has no charts. HourUnread says why it could not be read.
	Hour       *history.Series
	HourUnread string
}

// ReleaseOf shows the stages of a release, the shares of its variations, the bets of the judge with their last hour,
// and why the run goes on or does not, with the verbs of the release.
func ReleaseOf(in *Release) Page {
	r := in.Release
	s := progress.ScreenOf(r, in.Now)
	page := Page{Title: "Release " + r.Namespace + "/" + r.Name, Entry: ReleasesPath, Time: in.Now}
	page.Sections = []Section{
		{Title: "Run", Facts: runFacts(&s), Links: []Cell{
			link(pathOf(EvidencePath+"/releases", r.Namespace, r.Name), "Signed records of the release"),
			link(ProxiesPath+"?"+url.Values{"namespace": {r.Namespace}}.Encode(), "Proxies of the namespace"),
		}},
		releaseForms(r),
		{Title: "Stages", Table: stagesOf(&s)},
	}
	if len(s.Variations) > 0 {
		page.Sections = append(page.Sections, Section{Title: "Requests", Table: variationsOf(&s), Lines: proxyLines(&s)})
	}
	if len(s.Groups) > 0 {
		page.Sections = append(page.Sections, Section{Title: "Groups", Table: groupsOf(&s)})
	}
	if s.Judge != nil {
		page.Sections = append(page.Sections, Section{Title: "Judge", Lines: judgeLines(s.Judge), Table: betsOf(s.Judge)})
	}
	if in.Hour != nil || in.HourUnread != "" {
		page.Sections = append(page.Sections, lastHourOf(in))
	}
	explanation := progress.Explain(in.Question)
	page.Sections = append(page.Sections, Section{Title: "Why", Table: whyOf(&explanation), Lines: endLines(&explanation)})
	if in := r.Status.Rollout; in != nil {
		page.Sections = append(page.Sections, Section{Title: "History", Table: historyOf(in)})
	}
	return page
}

func runFacts(s *progress.Screen) []wording.Field {
	facts := []wording.Field{{Label: "Service", Value: s.Service}}
	switch run := s.Run; {
	case !s.HasRollout:
		return append(facts, wording.Field{Label: "Run", Value: progress.DescribeNoRollout(s)})
	case run == nil:
		return append(facts, wording.Field{Label: "Run", Value: progress.NoRun})
	default:
		facts = append(facts,
			wording.Field{Label: "Run", Value: fmt.Sprintf("run %d, %s", run.Number, run.State)}, wording.Field{Label: "Revision", Value: run.From + " → " + run.To},
			wording.Field{Label: "Strategy", Value: run.Strategy}, wording.Field{Label: "For", Value: progress.FormatClock(run.Age.Duration)})
		if run.EndTime != nil {
			facts = append(facts, wording.Field{Label: "Ended", Value: wording.FormatTimestamp(*run.EndTime) + ": " + run.Message})
		}
		if run.QueuedTime != nil {
			facts = append(facts, wording.Field{Label: "Queued", Value: progress.DescribeQueued(run)})
		}
	}
	return append(facts, wording.Field{Label: "Waiting for", Value: waitWords(s)}, wording.Field{Label: "Then", Value: s.Next})
}

func stagesOf(s *progress.Screen) *Table {
	t := &Table{Caption: "Stages", Columns: []string{"Stage", "State", "Requests", "Clock", "Message"}, Empty: "No run has begun."}
	for i := range s.Stages {
		stage := &s.Stages[i]
		t.Rows = append(t.Rows, []Cell{
			text(fmt.Sprint(stage.Number)), {Text: string(stage.State), Mark: progress.MarkStage(stage.State), State: "stage-" + strings.ToLower(string(stage.State))},
			text(stage.Percentage + " %"), text(progress.DescribeStage(stage)), text(stage.Message),
		})
	}
	return t
}

func variationsOf(s *progress.Screen) *Table {
	t := &Table{
		Caption: "Requests by variation; – is not known",
		Columns: []string{"Variation", "Wanted", "Acknowledged", "Observed", "Ready", "In flight", "Errors", "95 % bounds", "p50", "p99", "Requests"},
	}
	for i := range s.Variations {
		t.Rows = append(t.Rows, texts(progress.VariationRow(&s.Variations[i])...))
	}
	return t
}

func proxyLines(s *progress.Screen) []string {
	if s.Proxies == nil {
		return []string{"Which proxies have the split is not known."}
	}
	lines := []string{strings.ToUpper(s.Proxies.Noun[:1]) + s.Proxies.Noun[1:] + ": " + progress.DescribeProxies(s.Proxies)}
	for i := range s.Proxies.OutOfSync {
		lines = append(lines, "Out of sync: "+wording.AppendReason(s.Proxies.OutOfSync[i].Name, s.Proxies.OutOfSync[i].Why))
	}
	return lines
}

func groupsOf(s *progress.Screen) *Table {
	t := &Table{Caption: "Replicas by group; – is not known", Columns: []string{"Group", "Deployment", "Wanted", "Replicas", "Ready", "Restarted"}}
	for i := range s.Groups {
		t.Rows = append(t.Rows, texts(progress.GroupRow(&s.Groups[i])...))
	}
	return t
}

func judgeLines(j *progress.Judge) []string {
	lines := []string{wording.AppendReason(string(j.Verdict), j.Message)}
	if counts := progress.DescribeCounts(j); len(counts) > 0 {
		lines = append(lines, strings.Join(counts, ", "))
	}
	if slow := progress.DescribeSlow(j); slow != "" {
		lines = append(lines, slow)
	}
	return lines
}

// betsOf has the e-values of the judge with their thresholds, and the ratios with bounds of 95 %.
func betsOf(j *progress.Judge) *Table {
	t := &Table{Caption: "Bets of the judge", Columns: []string{"Metric", "e-value", "Ratio and 95 % bounds", "Dispersion"}, Empty: "The status has no comparison."}
	for _, bet := range []struct {
		name string
		of   *v1alpha1.HealthComparison
	}{{"Errors", j.Errors}, {"Latency", j.Latency}} {
		if bet.of != nil {
			t.Rows = append(t.Rows, append(texts(bet.name), texts(progress.DescribeComparison(bet.of)...)...))
		}
	}
	return t
}

func whyOf(e *progress.Explanation) *Table {
	t := &Table{Caption: "Gates of the run, in the order in which the discovery server looks at them", Columns: []string{"Gate", "State", "Value", "Next"}, Empty: "The release has no gate."}
	for i := range e.Gates {
		g := &e.Gates[i]
		t.Rows = append(t.Rows, []Cell{text(g.Name), {Text: string(g.State), Mark: progress.MarkGate(g.State), State: "gate-" + strings.ToLower(string(g.State))}, text(g.Value), text(g.Next)})
	}
	return t
}

func endLines(e *progress.Explanation) []string {
	if e.End == nil {
		return nil
	}
	lines := []string{wording.AppendReason(e.End.Reason, e.End.Message)}
	if e.End.Judge != nil {
		lines = append(lines, "Last verdict: "+wording.AppendReason(string(e.End.Judge.Verdict), e.End.Judge.Message))
	}
	if rejected := e.End.Rejected; rejected != nil {
		lines = append(lines, "Rejected: "+progress.DescribeRejected(rejected))
	}
	return lines
}

func historyOf(in *v1alpha1.RolloutStatus) *Table {
	t := &Table{Caption: "Events, the newest first", Columns: []string{"Time", "Run", "Event", "Message"}, Empty: "The status has no history."}
	for _, e := range slices.Backward(in.History) {
		stamp := wording.FormatTimestamp(e.EventTime)
		t.Rows = append(t.Rows, []Cell{{Text: stamp, UTC: stamp}, text(fmt.Sprint(e.Run)), text(e.Event), text(e.Message)})
	}
	return t.cut()
}
