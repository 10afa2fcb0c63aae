// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// doctorText draws a report: failed checks first and in full, passed checks last
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
	found = writePermissions(b, found)
	for i, f := range found {
		switch {
		case severity == doctor.OK, severity == doctor.Unknown && f.Object == "" && f.Fix == "":
			fmt.Fprintf(b, "  %-24s %s\n", f.ID, invocation.Printable(f.Message))
		case i+1 < len(found) && found[i+1].ID == f.ID && found[i+1].Fix == f.Fix: // said once, below the last
			f.Fix = ""
			fallthrough
		default:
			writeFinding(b, f)
		}
	}
}

// writePermissions writes the checks that lack a permission of the user, once for each permission, and returns the
// other findings.
func writePermissions(b *strings.Builder, found []doctor.Finding) []doctor.Finding {
	checks := map[string][]string{}
	others := make([]doctor.Finding, 0, len(found))
	for _, f := range found {
		switch ids := checks[f.Permission]; {
		case f.Permission == "":
			others = append(others, f)
		case !slices.Contains(ids, f.ID):
			checks[f.Permission] = append(ids, f.ID)
		}
	}
	for _, permission := range slices.Sorted(maps.Keys(checks)) {
		ids := checks[permission]
		need := "needs"
		if len(ids) > 1 {
			need = "need"
		}
		fmt.Fprintf(b, "  %s %s the permission to %s, which your user does not have:\n", plural.Of(len(ids), "check"), need, invocation.Printable(permission))
		fmt.Fprintf(b, "      %s\n", strings.Join(ids, ", "))
		b.WriteString("      fix: run as a user with the permission, ask a user with the permission, or leave the checks out by --skip\n")
	}
	return others
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
