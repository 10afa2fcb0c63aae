// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/difference"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/comparison"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

func (a *app) renderRevisionDiff(object string, changes []actions.Change, from, to string) string {
	if len(changes) == 0 {
		return ""
	}
	w := &comparison.Writer{Color: printers.AllowsColorOutput(a.Out)}
	w.WriteLine(comparison.ColorHeader, "--- "+object+"  revision "+from)
	w.WriteLine(comparison.ColorHeader, "+++ "+object+"  revision "+to)
	w.WriteChanges(changes)
	return w.String()
}

type historyOptions struct {
	output    string
	noHeaders bool
	revision  int64
	diff      string
}

// Command returns the command "history".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history TYPE/NAME",
		Short: "Show the authorized states of an object",
		Long: `Show the authorized states of an object that are still kept, newest first: the user
that authorized each, the time, and the hash. The object is compared with the newest.

--revision prints the body of one as YAML, or JSON with -o json: everything but
apiVersion, kind, metadata and status, in canonical order, unredacted. --diff
compares two, with values that look like secrets redacted.`,
		Example: invocation.Examples(
			"# Show the authorized states, with users and times", "%s history deploy/web",
			"# The body of revision 3", "%s history deploy/web --revision 3",
			"# Show the changes from 2 to 3", "%s history deploy/web --diff 2..3"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.history(cmd, args, o)
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml", "wide")
	invocation.AddNoHeadersFlag(cmd, &o.noHeaders)
	cmd.Flags().Int64Var(&o.revision, "revision", 0, "Print the body of this revision.")
	cmd.Flags().StringVar(&o.diff, "diff", "", "Compare two revisions, given as A..B.")
	return cmd
}

var revisionRange = regexp.MustCompile(`^([0-9]{1,18})\.\.([0-9]{1,18})$`)

func (a *app) history(cmd *cobra.Command, args []string, o historyOptions) error {
	if err := invocation.CheckOutput(cmd, o.output, "json", "yaml", "wide"); err != nil {
		return err
	}
	wantRevision, wantDiff := cmd.Flags().Changed("revision"), cmd.Flags().Changed("diff")
	between := revisionRange.FindStringSubmatch(o.diff)
	switch {
	case wantRevision && wantDiff:
		return invocation.UsageErrorf(cmd, "--revision and --diff exclude each other")
	case wantRevision && o.revision < 1:
		return invocation.UsageErrorf(cmd, "revisions are numbered from 1, not %d", o.revision)
	case wantDiff && between == nil:
		return invocation.UsageErrorf(cmd, "invalid --diff %q, want A..B", o.diff)
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
	switch {
	case wantRevision:
		return a.printBody(cmd, c, baseline, o)
	case wantDiff:
		return a.diffRevisions(cmd, c, baseline, between[1:], o.output)
	default:
		return a.printHistory(cmd, c, t, baseline, o)
	}
}

// revisionReport is one line of the history.
type revisionReport struct {
	Revision   int64       `json:"revision"`
	Name       string      `json:"name"`
	Authorized bool        `json:"authorized"`
	By         string      `json:"by,omitempty"`
	At         metav1.Time `json:"at"`
	Hash       string      `json:"hash"`
	Size       int64       `json:"size"`
	// Release names the run that authorized it in the name of By; nil without such a run.
	Release *v1alpha1.AuthorizedRelease `json:"release,omitempty"`
}

func (a *app) printHistory(cmd *cobra.Command, c *invocation.Cluster, t guarded.Target, b *v1alpha1.Baseline, o historyOptions) error {
	revisions, err := difference.ListRevisions(cmd.Context(), c, b)
	if err != nil {
		return err
	}
	reports := make([]revisionReport, 0, len(revisions))
	for i := range revisions {
		s := &revisions[i].Spec
		reports = append(reports, revisionReport{
			Revision: s.Number, Name: revisions[i].Name, Authorized: s.Number == b.Spec.Authorized.Number,
			By: s.By, At: s.AuthorizationTime, Hash: s.Hash, Size: s.Size, Release: s.Release,
		})
	}
	if invocation.IsStructured(o.output) {
		return a.PrintReport(o.output, "RevisionList", map[string]any{"object": t.String(), "namespace": b.Namespace, "items": reports})
	}
	if len(reports) == 0 {
		_, err := fmt.Fprintf(a.ErrOut, "No authorized state of %s found: no trusted writer has created it.\n", t)
		return err
	}
	rows := make([][]any, 0, len(reports))
	for _, r := range reports {
		mark := ""
		if r.Authorized {
			mark = "authorized"
		}
		rows = append(rows, []any{strconv.FormatInt(r.Revision, 10), wording.NameAuthor(r.By, r.Release), a.FormatAge(r.At), r.Hash, strconv.FormatInt(r.Size, 10), mark, wording.FormatTimestamp(r.At)})
	}
	return a.PrintTable(invocation.TableOptions{Wide: o.output == "wide", NoHeaders: o.noHeaders},
		[]invocation.Column{{Name: "Revision"}, {Name: "By"}, {Name: "Age"}, {Name: "Hash"}, {Name: "Size"}, {Name: "Now"}, {Name: "At", Wide: true}}, rows)
}

func (a *app) bodyOf(cmd *cobra.Command, c *invocation.Cluster, b *v1alpha1.Baseline, number int64) ([]byte, error) {
	revision, err := difference.GetRevision(cmd.Context(), c, b, number)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("revision %d of %s does not exist or is no longer kept", number, wording.ObjectOf(b))
	}
	if err != nil {
		return nil, err
	}
	return difference.DecodeBody(revision)
}

func (a *app) printBody(cmd *cobra.Command, c *invocation.Cluster, b *v1alpha1.Baseline, o historyOptions) error {
	body, err := a.bodyOf(cmd, c, b, o.revision)
	if err != nil {
		return err
	}
	output := "yaml"
	if invocation.IsStructured(o.output) {
		output = o.output
	}
	return a.PrintStructured(output, json.RawMessage(body))
}

func (a *app) diffRevisions(cmd *cobra.Command, c *invocation.Cluster, b *v1alpha1.Baseline, numbers []string, output string) error {
	var documents [2]*canon.Document
	for i, text := range numbers {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return invocation.UsageErrorf(cmd, "invalid --diff: %v", err)
		}
		body, err := a.bodyOf(cmd, c, b, number)
		if err != nil {
			return err
		}
		if documents[i], err = canon.Parse(body, canon.GVK(wording.KindOf(b))); err != nil {
			return fmt.Errorf("reading revision %d: %w", number, err)
		}
	}
	changes := actions.ReportChanges(diff.Compare(documents[0], documents[1]))
	if invocation.IsStructured(output) {
		return a.PrintReport(output, "RevisionDiff", map[string]any{"object": wording.ObjectOf(b), "from": numbers[0], "to": numbers[1], "changes": changes})
	}
	return a.Print(a.renderRevisionDiff(wording.ObjectOf(b), changes, numbers[0], numbers[1]))
}
