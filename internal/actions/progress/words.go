// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// MarkGate returns the mark of a gate: one column.
func MarkGate(state GateState) string {
	switch state {
	case GateOK:
		return "✓"
	case GateHolds:
		return "✗"
	case GateUnknown:
	}
	return "?"
}

// MarkStage returns the mark of a stage: one column.
func MarkStage(state v1alpha1.RolloutStageState) string {
	switch state {
	case "Pending":
		return "○"
	case "Running":
		return "▶"
	case "Succeeded":
		return "✓"
	case "Failed":
		return "✗"
	case "Skipped":
		return "»"
	}
	return "?"
}

// DescribeWait says what a run waits for, and until when.
func DescribeWait(w *Wait) string {
	text := w.Reason
	if w.Deadline != nil {
		left := FormatClock(w.Left.Duration) + " more"
		if w.Left.Duration == 0 {
			left = "the deadline is over"
		}
		text += fmt.Sprintf(", %s (until %s)", left, wording.FormatTimestamp(*w.Deadline))
	}
	return text + ": " + w.Message
}

// FormatClock returns a duration in seconds up to days, with at most two units: 40s, 5m02s, 2h05m, 3d04h.
func FormatClock(d time.Duration) string {
	d = d.Truncate(time.Second)
	for _, u := range []struct {
		large, small time.Duration
		names        [2]string
	}{
		{24 * time.Hour, time.Hour, [2]string{"d", "h"}}, {time.Hour, time.Minute, [2]string{"h", "m"}}, {time.Minute, time.Second, [2]string{"m", "s"}},
	} {
		if d < u.large {
			continue
		}
		text := fmt.Sprintf("%d%s", d/u.large, u.names[0])
		if rest := d % u.large / u.small; rest > 0 {
			text += fmt.Sprintf("%02d%s", rest, u.names[1])
		}
		return text
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// FormatShare returns a percentage with at most so many decimals.
func FormatShare(percent *float64, decimals int) string {
	if percent == nil {
		return Unknown
	}
	text := strconv.FormatFloat(*percent, 'f', decimals, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + " %"
}

// FormatRate returns a rate with two decimals, or with all of its digits when two would show 0.
func FormatRate(r v1alpha1.Rate) string {
	n, err := strconv.ParseFloat(string(r), 64)
	if err != nil {
		return cmp.Or(string(r), Unknown)
	}
	text := strconv.FormatFloat(n, 'f', 2, 64)
	if n > 0 && text == "0.00" {
		return string(r)
	}
	return text
}

// FormatLatency returns a latency; [Unknown] for none.
func FormatLatency(milliseconds int64) string {
	if milliseconds == 0 {
		return Unknown
	}
	return GroupDigits(milliseconds) + " ms"
}

// DescribeStage returns the notes of a stage: its clock, its approval and its restarts; nothing where none is due.
func DescribeStage(stage *Stage) string {
	var notes []string
	switch wanted, measured := stage.Wanted.Duration, stage.Measured.Duration; {
	case stage.State == "Pending" && wanted > 0:
		notes = append(notes, FormatClock(wanted))
	case stage.State == "Running" && wanted > 0:
		notes = append(notes, FormatClock(measured)+" of "+FormatClock(wanted))
	case stage.State != "Pending" && measured > 0:
		notes = append(notes, FormatClock(measured))
	}
	switch {
	case stage.ApprovedBy != "":
		notes = append(notes, "approved by "+stage.ApprovedBy)
	case stage.NeedsApproval && stage.State != "Failed" && stage.State != "Skipped":
		notes = append(notes, "approval")
	}
	if stage.Restarts > 0 {
		notes = append(notes, plural.Of(int(stage.Restarts), "restart"))
	}
	return strings.Join(notes, ", ")
}

// DescribeProxies says how many proxies have acknowledged what is in force.
func DescribeProxies(p *Proxies) string {
	text := fmt.Sprintf("%d of %d %s acknowledged", p.Acknowledged, p.All, plural.Verb(int(p.Acknowledged), "has", "have"))
	switch {
	case p.All == 0 && p.Noun == "proxies":
		text = "no proxy has to acknowledge the split"
	case p.All == 0:
		text = "no router has to acknowledge the split"
	case p.Sequence > 0:
		text += fmt.Sprintf(" sequence %d", p.Sequence)
	}
	if p.Knowledge != v1alpha1.AcknowledgedProven {
		text += fmt.Sprintf(" (%s)", p.Knowledge)
	}
	return text
}

// NoRun is the text about a rollout without a run.
const NoRun = "no run yet"

// DescribeNoRollout returns the text about a release without a rollout.
func DescribeNoRollout(s *Screen) string {
	return "no rollout: " + s.Routers + " get the percentages of the spec"
}

// DescribeQueued says since when another change waits for the end of a run.
func DescribeQueued(run *Run) string {
	return "the next run, since " + wording.FormatTimestamp(*run.QueuedTime) + ": it takes up the change of the spec when this run has ended"
}

// DescribeRejected names a revision that no run takes up again until a person asks for it.
func DescribeRejected(r *v1alpha1.RejectedRevision) string {
	return fmt.Sprintf("%s of %s since %s (%s)", cmp.Or(r.Image, r.Hash), r.Variation, wording.FormatTimestamp(r.RejectionTime), r.Reason)
}

func nameVariation(name v1alpha1.VariationName, isCanary bool) string {
	if isCanary {
		return string(name) + " (canary)"
	}
	return string(name)
}

// VariationRow returns what is known of a variation: its name, the wanted, the acknowledged and the observed
// share, ready endpoints, requests in flight, the error rate with its bounds, p50, p99, and requests.
func VariationRow(v *Variation) []string {
	row := []string{nameVariation(v.Name, v.IsCanary), FormatShare(v.Wanted, 2), FormatShare(v.Acknowledged, 2), FormatShare(v.Observed, 1), Unknown, Unknown}
	if v.Ready != nil && v.Targets != nil {
		row[4] = fmt.Sprintf("%d/%d", *v.Ready, *v.Targets)
	}
	if v.InFlight != nil {
		row[5] = GroupDigits(*v.InFlight)
	}
	h := v.Health
	if h == nil {
		return append(row, Unknown, Unknown, Unknown, Unknown, Unknown)
	}
	return append(row, FormatRate(h.ErrorRate)+" %", "["+FormatRate(h.ErrorRateLow)+", "+FormatRate(h.ErrorRateHigh)+"]",
		FormatLatency(h.LatencyP50Milliseconds), FormatLatency(h.LatencyP99Milliseconds), GroupDigits(h.Samples))
}

// GroupRow returns what is known of a group: its name, its Deployment, and the wanted replicas, those that
// the Deployment asks for, the ready pods, and the pods that have restarted.
func GroupRow(g *Group) []string {
	row := []string{nameVariation(g.Name, g.IsCanary), g.Deployment}
	for _, n := range []*int32{g.Wanted, g.Replicas, g.Ready, g.Restarted} {
		row = append(row, FormatCount(n))
	}
	return row
}

// FormatCount returns a count; [Unknown] for none.
func FormatCount(n *int32) string {
	if n == nil {
		return Unknown
	}
	return strconv.Itoa(int(*n))
}
