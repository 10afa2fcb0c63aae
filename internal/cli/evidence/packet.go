// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// packetReport is the packet with the signed records that it is made from.
type packetReport struct {
	*packet.Packet
	Records []recordReport `json:"records"`
}

// printPacket prints what an auditor wants to know about a plan.
func (a *app) printPacket(ctx context.Context, s *source, found *recordsFound, output string) error {
	store, closeStore, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer closeStore()
	found.records = lastPlan(found.records)
	bodies, err := readBodies(ctx, store, found.records)
	if err != nil {
		return err
	}
	p := packet.New(found.records, bodies, func(r *evidence.Record) bool { return found.withdrawnBy(r) > 0 })
	if output == "json" || output == "yaml" {
		return a.PrintStructured(output, packetReport{p, reportRecords(found)})
	}
	wide := output == "wide"
	return a.Print(a.describePacket(p, wide) + "\nRecords\n\n" + a.describeRecords(found, wide))
}

// lastPlan returns the records of the plan that the last record is about: two plans may have
// had one name, one after the other. Each of the records has a plan.
func lastPlan(records []evidence.Sealed) []evidence.Sealed {
	last := records[len(records)-1].Record
	return slices.DeleteFunc(slices.Clone(records), func(s evidence.Sealed) bool {
		return s.Record.Plan.UID != last.Plan.UID || s.Record.Chain.UID != last.Chain.UID
	})
}

// readBodies reads the bodies that the records speak of. A body that is missing, or is another
// one than its name says, is told in the packet; a store that cannot be read is an error.
func readBodies(ctx context.Context, store evidence.Store, records []evidence.Sealed) (packet.Bodies, error) {
	named := map[string]bool{}
	for i := range records {
		for _, b := range records[i].Record.Bodies {
			named[b.Digest] = true
		}
	}
	chain, bodies := records[0].Record.Chain.UID, packet.Bodies{}
	for _, digest := range packet.Digests(records) {
		body, err := evidence.ReadBody(ctx, store, chain, digest)
		var mismatch *evidence.BodyError
		switch {
		case errors.Is(err, evidence.ErrNotFound) && named[digest]:
			err = errors.New("the store lacks the body that the records name")
		case errors.Is(err, evidence.ErrNotFound):
			err = errors.New("not stored: no record names a body")
		case errors.As(err, &mismatch):
			err = fmt.Errorf("digest mismatch: the content has the digest %s", mismatch.Have)
		case err != nil:
			return nil, err
		}
		bodies[digest] = packet.Read(body, err)
	}
	return bodies, nil
}

// describePacket is the packet for people, without contents.
func (a *app) describePacket(p *packet.Packet, wide bool) string {
	d := &invocation.Description{}
	d.Field("Packet", p.ID)
	d.Field("Plan", p.Plan.Namespace+"/"+p.Plan.Name)
	d.Field("Status", p.Status)
	d.Field("Policy", fmt.Sprintf("%s (generation %d, %s)", p.Policy.Name, p.Policy.Generation, wording.FormatHash(p.Policy.Digest, wide)))
	d.Field("Drift report", p.DriftReportID)
	d.Field("Correlation", p.CorrelationID)
	by := p.InitiatedBy
	if p.Requester != "" {
		by += ", acting with the permissions of " + p.Requester
	}
	d.Field("Initiated by", by)
	d.Field("Approved by", strings.Join(p.Approvers, ", "))
	d.Field("Initiated", a.FormatTime(new(metav1.NewTime(p.InitiatedAt))))
	if completed := a.FormatTime(new(metav1.NewTime(p.CompletedAt))); completed != "" {
		d.Field("Completed", completed+wording.FormatTook(p.Duration))
	}
	m := &p.Metrics
	d.Field("Targets", fmt.Sprintf("%d: %d succeeded, %d failed, %d skipped", m.TotalTargets, m.Succeeded, m.Failed, m.Skipped))
	d.Field("Targets took", wording.FormatDurations(m.Durations))
	d.Section("Drift")
	for i := range p.DetectedDrift {
		a.describeDrift(d, &p.DetectedDrift[i], wide)
	}
	d.Section("Results")
	for i := range p.Results {
		describeResult(d, &p.Results[i], wide)
	}
	d.Section("Contents")
	describeContent(d, "Policy", p.Policy.Digest, p.Policy.Content, wide)
	describeContent(d, "Plan", p.Plan.Digest, p.Plan.Content, wide)
	for _, artifact := range p.GeneratedArtifacts {
		describeContent(d, string(artifact.Of)+stepsWords(artifact.Steps), artifact.Digest, artifact.Content, wide)
	}
	return d.String()
}

func (a *app) describeDrift(d *invocation.Description, drift *packet.Drift, wide bool) {
	words := fmt.Sprintf("%d  %s  %s", drift.Step, drift.Object, drift.Action)
	if s := drift.Severity; s != nil {
		words += fmt.Sprintf("  %s (%d)", s.Level, s.Score)
	}
	d.Line(1, "%s", words)
	if !drift.FirstSeen.IsZero() {
		d.Line(3, "%s, since %s, by %s", drift.DriftType, a.FormatAge(metav1.NewTime(drift.FirstSeen)), wording.ListActors(drift.Actors))
	}
	for _, path := range drift.Paths {
		d.Line(3, "%s", wording.NamePath(path))
	}
	if drift.DesiredHash != "" {
		d.Line(3, "%s → %s", wording.FormatHash(drift.DriftedHash, wide), wording.FormatHash(drift.DesiredHash, wide))
	}
}

func describeResult(d *invocation.Description, r *packet.Result, wide bool) {
	ended := r.Status
	if r.Reason != "" {
		ended += " (" + r.Reason + ")"
	}
	d.Line(1, "%d  %s  %s: %s%s", r.Step, r.Object, r.Action, ended, wording.FormatTook(r.Duration))
	if r.PreviousDigest != "" {
		d.Line(3, "%s → %s, record #%d", wording.FormatHash(r.PreviousDigest, wide), wording.FormatHash(r.CurrentDigest, wide), r.Record)
	}
	if e := r.Effect; e != nil {
		d.Line(3, "effect %s, record #%d", effectWords(&e.Assessment), e.Record)
	}
}

func describeContent(d *invocation.Description, what, digest string, c packet.Content, wide bool) {
	if c.Problem != "" {
		d.Line(1, "%s  %s  %s", what, wording.FormatHash(digest, wide), c.Problem)
		return
	}
	d.Line(1, "%s  %s  %s", what, wording.FormatHash(digest, wide), plural.Of(len(c.Body), "byte"))
}

func stepsWords(steps []int32) string {
	words := make([]string, len(steps))
	for i, step := range steps {
		words[i] = fmt.Sprint(step)
	}
	if len(steps) == 1 {
		return " of step " + words[0]
	}
	return " of steps " + strings.Join(words, ", ")
}
