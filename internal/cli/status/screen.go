// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/explanation"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// policyTimeout bounds the wait for the decisions of the policies, which need reads of all namespaces.
const policyTimeout = 3 * time.Second

// columns are those of the table of states. The first one has the mark, and the namespace where several are shown.
var columns = []invocation.Column{
	{Name: "Object"}, {Name: "Severity"}, {Name: "Who"}, {Name: "Change"}, {Name: "Since"}, {Name: "Next"},
	{Name: "State", Wide: true}, {Name: "Findings", Wide: true}, {Name: "Score", Wide: true}, {Name: "Path", Wide: true}, {Name: "Authorized-By", Wide: true}, {Name: "Revision", Wide: true}, {Name: "Guards", Wide: true}, {Name: "Last-Check", Wide: true},
}

// printStatus prints the table of states: a summary, the rows, the number of the objects without a row, and the next commands.
func (a *app) printStatus(ctx context.Context, c *invocation.Cluster, found guarded.Selected, o *statusOptions, wide bool) error {
	if len(found.Baselines) == 0 {
		where := fmt.Sprintf(" in %s namespace", c.Namespace)
		if o.AllNamespaces {
			where = ""
		}
		_, err := fmt.Fprintf(a.ErrOut, "No guarded objects found%s. \"%s adopt --dry-run\" proposes a guard, and -A looks in all namespaces.\n", where, invocation.DisplayName)
		return err
	}
	shown := found.Baselines
	if !found.Named && !o.everything {
		shown = slices.DeleteFunc(slices.Clone(shown), func(b v1alpha1.Baseline) bool { return actions.StandingOf(&b) > actions.StandingUnknown })
	}
	outlook := a.askPolicies(ctx, c, shown)
	rows := make([][]any, 0, len(shown))
	for i := range shown {
		rows = append(rows, a.formatRow(&shown[i], &outlook, o, wide))
	}
	if !o.NoHeaders {
		if err := a.Print(invocation.Printable(wording.HeadStatus(found.Baselines, &outlook, a.Now())), "\n"); err != nil {
			return err
		}
	}
	if err := a.printRows(rows, o, wide); err != nil || o.NoHeaders {
		return err
	}
	return a.Print(a.Paint(footStatus(found.Baselines, shown)))
}

func (a *app) printRows(rows [][]any, o *statusOptions, wide bool) error {
	if len(rows) == 0 {
		return nil
	}
	headed := slices.Clone(columns)
	if o.AllNamespaces {
		headed = append([]invocation.Column{{Name: "Namespace"}}, headed...)
	}
	if !o.NoHeaders {
		headed[0].Name = "  " + headed[0].Name
		if err := a.Print("\n"); err != nil {
			return err
		}
	}
	return a.PrintTable(invocation.TableOptions{Wide: wide, NoHeaders: o.NoHeaders}, headed, rows)
}

// formatRow gives the cells of an object.
func (a *app) formatRow(b *v1alpha1.Baseline, outlook *wording.Outlook, o *statusOptions, wide bool) []any {
	severity, score, since := string(cmp.Or(b.Status.State, v1alpha1.StateUnknown)), "", ""
	if b.Status.Severity != nil {
		severity, score = string(b.Status.Severity.Level), fmt.Sprint(b.Status.Severity.Score)
	}
	if b.Status.FirstSeenTime != nil && actions.StandingOf(b) != actions.StandingInSync {
		since = a.FormatAge(*b.Status.FirstSeenTime)
	}
	by, revision := "<none>", "<none>"
	if authorized := b.Spec.Authorized; authorized != nil {
		by, revision = wording.NameActor(authorized.By), fmt.Sprint(authorized.Number)
	}
	lastCheck := wording.Unknown
	if b.Status.LastCheckTime != nil {
		lastCheck = a.FormatAge(*b.Status.LastCheckTime)
	}
	path := ""
	if len(b.Status.Findings) > 0 {
		path = wording.NamePath(b.Status.Findings[0].Path)
	}
	cells := []any{
		wording.ObjectOf(b), severity, wording.ListWriters(b, wide), wording.SummarizeChanges(b), since, outlook.DescribeNext(b, a.Now()),
		wording.DescribeState(b), fmt.Sprint(actions.CountFindings(b)), score, path, by, revision, strings.Join(b.Status.Guards, ","), lastCheck,
	}
	if o.AllNamespaces {
		cells = append([]any{b.Namespace}, cells...)
	}
	if !o.NoHeaders {
		cells[0] = fmt.Sprint(wording.MarkState(b), " ", cells[0])
	}
	return cells
}

// footStatus counts the objects without a row, and names the commands for the worst drift.
func footStatus(all, shown []v1alpha1.Baseline) string {
	var b strings.Builder
	if hidden := len(all) - len(shown); hidden > 0 {
		if len(shown) == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "✓ %s (status --all shows them)\n", wording.CountOthers(all))
	}
	if len(shown) == 0 || actions.StandingOf(&shown[0]) > actions.StandingDrifted {
		return b.String()
	}
	worst := &shown[0]
	named := invocation.Printable(fmt.Sprintf("%s -n %s", wording.ObjectOf(worst), worst.Namespace))
	fmt.Fprintf(&b, "\nWriter and proof:  %s blame %s\n", invocation.DisplayName, named)
	fmt.Fprintf(&b, "Undo or keep:      %s diff %s │ accept %s\n", invocation.DisplayName, named, named)
	return b.String()
}

// askPolicies asks the policies for their decisions about the drifted objects, for a short time.
func (a *app) askPolicies(ctx context.Context, c *invocation.Cluster, shown []v1alpha1.Baseline) wording.Outlook {
	drifted := slices.DeleteFunc(slices.Clone(shown), func(b v1alpha1.Baseline) bool { return actions.StandingOf(&b) > actions.StandingDrifted })
	if len(drifted) == 0 {
		return wording.Outlook{}
	}
	ctx, cancel := context.WithTimeout(ctx, policyTimeout)
	defer cancel()
	policies := &v1alpha1.RemediationPolicyList{}
	if err := c.List(ctx, policies); err != nil {
		return wording.Outlook{Unread: describeUnread(err)}
	}
	if len(policies.Items) == 0 {
		return wording.Outlook{}
	}
	explained, err := remediation.ExplainDrifts(ctx, a.Invocation, c, &explanation.Question{Policies: policies.Items, Objects: drifted}, "")
	var outlook wording.Outlook
	for i := range explained {
		outlook.Explanations = append(outlook.Explanations, explained[i].Drifts...)
	}
	if err != nil {
		outlook.Unread = describeUnread(err)
	}
	return outlook
}

// describeUnread tells why the decisions of policies are unknown.
func describeUnread(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "you may not read all that they depend on"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", policyTimeout)
	}
	return invocation.Message(err)
}
