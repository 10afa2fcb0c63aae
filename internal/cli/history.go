// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

type historyOptions struct {
	output    string
	noHeaders bool
	revision  int64
	diff      string
}

func (a *app) historyCommand() *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history TYPE/NAME",
		Short: "Show the authorized states of an object",
		Long: `Show the authorized states of an object that are still kept, newest first: who
authorized each, when, and its hash. The newest is what the object is compared
with.

--revision prints the body of one as YAML, or JSON with -o json: everything but
apiVersion, kind, metadata and status, in canonical order, unredacted. --diff
compares two, with values that look like secrets redacted.`,
		Example: examples(
			"# Who authorized what, when", "%s history deploy/web",
			"# The body of revision 3", "%s history deploy/web --revision 3",
			"# What changed from 2 to 3", "%s history deploy/web --diff 2..3"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.history(cmd, args, o)
		},
		ValidArgsFunction: a.completeObject(),
	}
	addOutputFlag(cmd, &o.output, "json", "yaml", "wide")
	addNoHeadersFlag(cmd, &o.noHeaders)
	cmd.Flags().Int64Var(&o.revision, "revision", 0, "Print the body of this revision.")
	cmd.Flags().StringVar(&o.diff, "diff", "", "Compare two revisions, given as A..B.")
	return cmd
}

var revisionRange = regexp.MustCompile(`^([0-9]{1,18})\.\.([0-9]{1,18})$`)

func (a *app) history(cmd *cobra.Command, args []string, o historyOptions) error {
	if err := checkOutput(cmd, o.output, "json", "yaml", "wide"); err != nil {
		return err
	}
	wantRevision, wantDiff := cmd.Flags().Changed("revision"), cmd.Flags().Changed("diff")
	between := revisionRange.FindStringSubmatch(o.diff)
	switch {
	case wantRevision && wantDiff:
		return usageErrorf(cmd, "--revision and --diff exclude each other")
	case wantRevision && o.revision < 1:
		return usageErrorf(cmd, "revisions are numbered from 1, not %d", o.revision)
	case wantDiff && between == nil:
		return usageErrorf(cmd, "invalid --diff %q, want A..B", o.diff)
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	t, err := c.oneTarget(cmd, args)
	if err != nil {
		return err
	}
	baseline, err := c.baseline(cmd.Context(), t)
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
}

func (a *app) printHistory(cmd *cobra.Command, c *cluster, t target, b *v1alpha1.Baseline, o historyOptions) error {
	revisions, err := c.revisions(cmd.Context(), b)
	if err != nil {
		return err
	}
	reports := make([]revisionReport, 0, len(revisions))
	for i := range revisions {
		s := &revisions[i].Spec
		reports = append(reports, revisionReport{
			Revision: s.Number, Name: revisions[i].Name, Authorized: s.Number == b.Spec.Authorized.Number,
			By: s.By, At: s.AuthorizationTime, Hash: s.Hash, Size: s.Size,
		})
	}
	if o.output == "json" || o.output == "yaml" {
		return a.printStructured(o.output, map[string]any{"object": t.String(), "namespace": b.Namespace, "items": reports})
	}
	if len(reports) == 0 {
		_, err := fmt.Fprintf(a.ErrOut, "No authorized state of %s found: nobody trusted has created it.\n", t)
		return err
	}
	rows := make([][]any, 0, len(reports))
	for _, r := range reports {
		mark := ""
		if r.Authorized {
			mark = "authorized"
		}
		rows = append(rows, []any{strconv.FormatInt(r.Revision, 10), actorName(r.By), a.age(r.At), r.Hash, strconv.FormatInt(r.Size, 10), mark, timestamp(r.At)})
	}
	return a.printTable(tableOptions{wide: o.output == "wide", noHeaders: o.noHeaders},
		[]column{{name: "Revision"}, {name: "By"}, {name: "Age"}, {name: "Hash"}, {name: "Size"}, {name: "Now"}, {name: "At", wide: true}}, rows)
}

func (a *app) bodyOf(cmd *cobra.Command, c *cluster, b *v1alpha1.Baseline, number int64) ([]byte, error) {
	revision, err := c.revision(cmd.Context(), b, number)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("revision %d of %s does not exist or is no longer kept", number, baselineObject(b))
	}
	if err != nil {
		return nil, err
	}
	return revisionBody(revision)
}

func (a *app) printBody(cmd *cobra.Command, c *cluster, b *v1alpha1.Baseline, o historyOptions) error {
	body, err := a.bodyOf(cmd, c, b, o.revision)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return a.printStructured("json", json.RawMessage(body))
	}
	return a.printStructured("yaml", json.RawMessage(body))
}

func (a *app) diffRevisions(cmd *cobra.Command, c *cluster, b *v1alpha1.Baseline, numbers []string, output string) error {
	var documents [2]*canon.Document
	for i, text := range numbers {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return usageErrorf(cmd, "invalid --diff: %v", err)
		}
		body, err := a.bodyOf(cmd, c, b, number)
		if err != nil {
			return err
		}
		if documents[i], err = canon.Parse(body, canon.GVK(targetKind(b))); err != nil {
			return fmt.Errorf("reading revision %d: %w", number, err)
		}
	}
	changes := reportChanges(diff.Compare(documents[0], documents[1]))
	if output == "json" || output == "yaml" {
		return a.printStructured(output, map[string]any{"object": baselineObject(b), "from": numbers[0], "to": numbers[1], "changes": changes})
	}
	return a.print(a.renderRevisionDiff(baselineObject(b), changes, numbers[0], numbers[1]))
}
