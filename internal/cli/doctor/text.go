// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/doctor"
)

// doctorText draws a report: what is wrong first and in full, what is good last
// and in one line each.
func doctorText(r *doctor.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Namespace: %s   Kubernetes: %s   User: %s\n",
		invocation.Printable(cmp.Or(r.Namespace, "<none>")), invocation.Printable(cmp.Or(r.ServerVersion, "<unknown>")), invocation.Printable(cmp.Or(r.User, "<unknown>")))
	for _, severity := range doctor.Severities() {
		writeSeverity(&b, severity, r.Findings)
	}
	if len(r.Skipped) > 0 {
		fmt.Fprintf(&b, "\nSkipped: %s\n", strings.Join(r.Skipped, ", "))
	}
	s := r.Summary
	fmt.Fprintf(&b, "\n%d critical, %d warning, %d unknown, %d info, %d ok\n", s.Critical, s.Warning, s.Unknown, s.Info, s.OK)
	return b.String()
}

func writeSeverity(b *strings.Builder, severity doctor.Severity, all []doctor.Finding) {
	var found []doctor.Finding
	for _, f := range all {
		if f.Severity == severity {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", strings.ToUpper(string(severity)))
	for i, f := range found {
		switch {
		case severity == doctor.OK:
			fmt.Fprintf(b, "  %-24s %s\n", f.ID, invocation.Printable(f.Message))
		case i+1 < len(found) && found[i+1].ID == f.ID && found[i+1].Fix == f.Fix: // said once, below the last
			f.Fix = ""
			fallthrough
		default:
			writeFinding(b, f)
		}
	}
}

func writeFinding(b *strings.Builder, f doctor.Finding) {
	fmt.Fprintf(b, "  %-24s %s\n", f.ID, invocation.Printable(cmp.Or(f.Object, "(cluster)")))
	for line := range strings.SplitSeq(f.Message, "\n") {
		fmt.Fprintf(b, "      %s\n", invocation.Printable(line))
	}
	if f.Fix == "" {
		return
	}
	label := "fix:"
	for line := range strings.SplitSeq(f.Fix, "\n") {
		fmt.Fprintf(b, "      %-4s %s\n", label, invocation.Printable(line))
		label = ""
	}
	fmt.Fprintf(b, "      see: %s\n", f.Docs)
}
