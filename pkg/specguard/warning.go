// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

const (
	// maxWarningBytes is the longest text that every client shows uncut.
	maxWarningBytes = 256
	// maxWarnedFields are named in a warning, the others counted.
	maxWarnedFields = 3
)

// warnings tell the writer the effect of the write, the guards behind it, and a way out.
// Admission does not know the Baseline, which the write may restore, nor always the
// labels by which a guard selects: the warnings name these conditions.
func warnings(rules Rules, r Review, drifting []canon.Path) []string {
	if len(drifting) == 0 { // the object as a whole
		drifting = []canon.Path{{}}
	}
	object, effect := "this object", "is drift unless it restores the baseline"
	if r.OfWorkload {
		object, effect = "the workload", "makes the pod differ from its workload and is recorded"
	}
	effect = fmt.Sprintf("this %s %s%s", nameWrite(r.Operation), effect, listWarned(drifting))
	if len(rules.untested) > 0 && Judge(rules.WithoutUntestedGuards(), r).Drift == 0 {
		effect = fmt.Sprintf("if a guard selects %s by label, %s", object, effect)
	}
	advice := fmt.Sprintf("%q is not trusted by %s; a trusted writer has to make the change",
		diff.TruncateText(r.Identity.User, 64), strings.Join(sortedNames(rules.distrusting(r.Identity, drifting)), ", "))
	if !r.OfWorkload {
		advice += fmt.Sprintf(", or: kubectl plumbline accept -n %s %s %s", r.Namespace, strings.ToLower(r.Kind), r.Name)
	}
	return []string{
		diff.TruncateText("plumbline: "+effect, maxWarningBytes),
		diff.TruncateText("plumbline: "+advice, maxWarningBytes),
	}
}

// nameWrite names the effect of an operation on an object.
func nameWrite(op Operation) string {
	switch op {
	case OperationCreate:
		return "creation"
	case OperationDelete:
		return "deletion"
	case OperationUpdate:
		return "change"
	default:
		return "write"
	}
}

// listWarned lists the paths of a change, none for the object as a whole.
func listWarned(paths []canon.Path) string {
	var names []string
	for _, p := range paths[:min(len(paths), maxWarnedFields)] {
		if !p.IsRoot() {
			names = append(names, p.String())
		}
	}
	switch more := len(paths) - maxWarnedFields; {
	case len(names) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf(": %s and %d more", strings.Join(names, ", "), more)
	default:
		return ": " + strings.Join(names, ", ")
	}
}
