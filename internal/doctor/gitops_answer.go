// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/gitops"
)

// addTo introduces YAML that goes into the spec of a tool's object.
func addTo(id string) string { return "add this to spec of " + id + ", to the lists that it has:\n" }

// ignoreAnswer is what the rules of one tool leave uncovered.
type ignoreAnswer struct {
	gaps []gitops.Gap
	// unknown are findings on what could not be judged.
	unknown []Finding
}

func judge(objects []gitops.Object, tool func(*gitops.Object) (gitops.Verdict, error)) ignoreAnswer {
	var out ignoreAnswer
	for i := range objects {
		o := &objects[i]
		verdict, err := tool(o)
		switch {
		case err != nil:
			out.cannotTell(o, verdict.Missing, err.Error())
		case verdict.Covered():
		case verdict.Unjudged != "":
			out.cannotTell(o, verdict.Missing, verdict.Unjudged)
		default:
			out.gaps = append(out.gaps, gitops.Gap{Object: o, Pointers: verdict.Missing})
		}
	}
	return out
}

func (a *ignoreAnswer) complete() bool { return len(a.gaps)+len(a.unknown) == 0 }

func (a *ignoreAnswer) cannotTell(o *gitops.Object, pointers []string, why string) {
	a.unknown = append(a.unknown, Finding{Severity: Unknown, Object: o.ID(),
		Message: fmt.Sprintf("cannot tell whether %s is ignored: %s", named(pointers), why)})
}

// gapsAreUnknown says of each gap that rules elsewhere, which could not be read,
// may cover it.
func (a *ignoreAnswer) gapsAreUnknown(why Finding) {
	for _, gap := range a.gaps {
		why.Object = gap.Object.ID()
		why.Message = fmt.Sprintf("the Application does not ignore %s; %s", named(gap.Pointers), why.Message)
		a.unknown = append(a.unknown, why)
	}
	a.gaps = nil
}

// findings are one for each gap; tool is whose rules they are.
func (a *ignoreAnswer) findings(tool, fix string) []Finding {
	out := a.unknown
	for _, gap := range a.gaps {
		out = append(out, Finding{Severity: Warning, Object: gap.Object.ID(), Fix: fix,
			Message: fmt.Sprintf("%s does not ignore %s, which is written at run time", tool, named(gap.Pointers))})
	}
	return out
}
