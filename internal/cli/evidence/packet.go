// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

// packetReport is the packet with the signed records that it is made from.
type packetReport struct {
	*packet.Packet
	Records []recordReport `json:"records"`
}

// printPacket prints the packet of a plan for an auditor.
func (a *app) printPacket(ctx context.Context, s *source, found *records.Found, output string) error {
	store, closeStore, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer closeStore()
	p, err := found.Packet(ctx, store)
	if err != nil {
		return err
	}
	if invocation.IsStructured(output) {
		return a.PrintReport(output, "ChainPacket", packetReport{p, reportRecords(found)})
	}
	wide := output == "wide"
	return a.Print(a.describePacket(p, wide) + "\nRecords\n\n" + a.describeRecords(found, wide))
}

// describePacket is the packet for people, without contents.
func (a *app) describePacket(p *packet.Packet, wide bool) string {
	d := &invocation.Description{}
	for _, field := range wording.DescribePacket(p, wide, a.Now()) {
		d.Field(field.Label, field.Value)
	}
	d.Section("Drift")
	for i := range p.DetectedDrift {
		describeItem(d)(wording.DescribeDetectedDrift(&p.DetectedDrift[i], wide, a.Now()))
	}
	d.Section("Results")
	for i := range p.Results {
		describeItem(d)(wording.DescribeResult(&p.Results[i], wide))
	}
	d.Section("Contents")
	for _, content := range wording.DescribeContents(p, wide) {
		d.Line(1, "%s", content)
	}
	return d.String()
}

// describeItem writes an item with its details below.
func describeItem(d *invocation.Description) func(words string, details []string) {
	return func(words string, details []string) {
		d.Line(1, "%s", words)
		for _, detail := range details {
			d.Line(3, "%s", detail)
		}
	}
}
