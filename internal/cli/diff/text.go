// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/plumbline-dev/plumbline/internal/actions/difference"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/comparison"
)

func (a *app) renderDiff(r difference.Report) string {
	w := &comparison.Writer{Color: printers.AllowsColorOutput(a.Out)}
	if !r.Different && len(r.Expected) == 0 {
		return ""
	}
	if r.Different {
		w.WriteLine(comparison.ColorHeader, "--- "+r.Object+"  "+a.authorizedWords(r.Authorized))
		w.WriteLine(comparison.ColorHeader, "+++ "+r.Object+"  "+liveWords(r.Live))
	}
	w.WriteChanges(r.Changes)
	for _, mask := range r.Expected {
		w.WriteLine("", fmt.Sprintf("# expected: %s %s by %s (rule %s)", mask.Path, mask.Value, wording.NameActor(mask.By), mask.Rule))
	}
	return w.String()
}

func (a *app) authorizedWords(r *difference.AuthorizedState) string {
	if r == nil {
		return "never authorized"
	}
	return fmt.Sprintf("authorized (revision %d, by %s, %s)", r.Revision, wording.NameActor(r.By), a.FormatAgo(r.At))
}

func liveWords(r *difference.Live) string {
	if r == nil {
		return "gone"
	}
	if r.Writer == "" {
		return fmt.Sprintf("live (generation %d)", r.Generation)
	}
	return fmt.Sprintf("live (generation %d, last written by %s)", r.Generation, r.Writer)
}
