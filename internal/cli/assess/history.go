// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

type historyOptions struct {
	output    string
	noHeaders bool
}

func (a *app) historyCommand() *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history TYPE/NAME",
		Short: "Show where an object stands after each of its repairs",
		Long: `Show the writes of plans on an object, and the runs of releases that it serves
after, newest first, and the state of the object after each of them. InEffect is
as the write left it, Regression is as it was before, and MovedOn is neither. The
history goes as far as plans are kept.`,
		Example: invocation.Examples("# Is an object repaired again and again?", "%s assess history deploy/web"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.history(cmd, args, o) },

		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml", "wide")
	invocation.AddNoHeadersFlag(cmd, &o.noHeaders)
	return cmd
}

// repairReport is one line of the history.
type repairReport struct {
	Assessment string                  `json:"assessment"`
	Plan       string                  `json:"plan"`
	Policy     string                  `json:"policy"`
	Action     v1alpha1.AssessedAction `json:"action"`
	Written    metav1.Time             `json:"written"`
	PreHash    string                  `json:"preHash,omitempty"`
	PostHash   string                  `json:"postHash,omitempty"`
	Match      effect.Match            `json:"match"`
	Verdict    v1alpha1.EffectVerdict  `json:"verdict,omitempty"`
	Score      *int32                  `json:"score,omitempty"`
}

func (a *app) history(cmd *cobra.Command, args []string, o historyOptions) error {
	if err := invocation.CheckOutput(cmd, o.output, "json", "yaml", "wide"); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	t, err := guarded.ResolveOne(c, cmd, args)
	if err != nil {
		return err
	}
	baseline, err := guarded.GetBaseline(cmd.Context(), c, t)
	if err != nil {
		return err
	}
	all, err := listAssessments(cmd.Context(), c, c.Namespace)
	if err != nil {
		return err
	}
	reports, live := []repairReport{}, baseline.Status.Observed.Hash
	actions.SortAssessments(all)
	for _, x := range actions.SelectAssessments(all, baseline.Name) {
		repair, wrote := actions.RepairOf(&x)
		if !wrote {
			continue
		}
		reports = append(reports, repairReport{
			Assessment: x.Name, Plan: repair.Plan, Policy: x.Spec.Policy.Name, Action: x.Spec.Action, Written: metav1.NewTime(repair.WrittenTime),
			PreHash: repair.PreHash, PostHash: repair.PostHash, Match: effect.MatchOf(repair, actions.FindLiveHash(all, &x, live)), Verdict: x.Status.Verdict, Score: x.Status.Score,
		})
	}
	if invocation.IsStructured(o.output) {
		return a.PrintReport(o.output, "AssessmentHistory", map[string]any{"object": t.String(), "namespace": c.Namespace, "liveHash": live, "items": reports})
	}
	if len(reports) == 0 {
		_, err := fmt.Fprintf(a.ErrOut, "No assessed write of %s found.\n", t)
		return err
	}
	return a.printHistory(reports, o)
}

func (a *app) printHistory(reports []repairReport, o historyOptions) error {
	wide := o.output == "wide"
	rows := make([][]any, 0, len(reports))
	for i := range reports {
		r, score := &reports[i], ""
		if r.Score != nil {
			score = actions.FormatScore(*r.Score)
		}
		rows = append(rows, []any{
			r.Plan, string(r.Action), a.FormatAge(r.Written), wording.FormatHash(r.PreHash, wide), wording.FormatHash(r.PostHash, wide), string(r.Match), string(r.Verdict), score,
			r.Policy, r.Assessment, wording.FormatTimestamp(r.Written),
		})
	}
	return a.PrintTable(invocation.TableOptions{Wide: wide, NoHeaders: o.noHeaders}, []invocation.Column{
		{Name: "Plan"}, {Name: "Action"}, {Name: "Age"}, {Name: "Before"}, {Name: "Written"}, {Name: "Now"}, {Name: "Verdict"}, {Name: "Score"},
		{Name: "Policy", Wide: true}, {Name: "Assessment", Wide: true}, {Name: "At", Wide: true},
	}, rows)
}
