// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

// Command returns the command "diff".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var output string
	cmd := &cobra.Command{
		Use:   "diff TYPE/NAME",
		Short: "Show the differences between the authorized and the live object",
		Long: `Show, path by path, the differences between the authorized state of an object and
the live object. Fields that the guards ignore are left out; fields that an
expected writer moved are named at the end and do not count. Values that look
like secrets are replaced by their rough length.

Exit status: 0 no differences were found. 1 differences were found.
>1 the command failed.`,
		Example: invocation.Examples(
			"# Show the changes of one object", "%s diff deploy/web",
			"# For a program", "%s diff deploy/web -o json"),
		Annotations: map[string]string{invocation.TroubleAnnotation: "diff"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.diff(cmd, args, output)
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml")
	return cmd
}

// diffReport is what diff answers.
type diffReport struct {
	Object     string                   `json:"object"`
	Namespace  string                   `json:"namespace"`
	Different  bool                     `json:"different"`
	Authorized *guarded.AuthorizedState `json:"authorized,omitempty"`
	Live       *liveReport              `json:"live,omitempty"`
	Changes    []actions.Change         `json:"changes"`
	// Expected are differences by expected writers; they do not count.
	Expected []maskReport `json:"expected,omitempty"`
}

type liveReport struct {
	UID             string `json:"uid"`
	Generation      int64  `json:"generation,omitempty"`
	ResourceVersion string `json:"resourceVersion"`
	// Writer is the writer stamp: who last changed guarded content.
	Writer string `json:"writer,omitempty"`
}

type maskReport struct {
	Path  string `json:"path"`
	By    string `json:"by"`
	Rule  string `json:"rule"`
	Value string `json:"value,omitempty"`
}

func (a *app) diff(cmd *cobra.Command, args []string, output string) error {
	if err := invocation.CheckOutput(cmd, output, "json", "yaml"); err != nil {
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
	report, err := a.compareWithAuthorized(cmd.Context(), c, t)
	if err != nil {
		return err
	}
	if output != "" {
		err = a.PrintStructured(output, report)
	} else {
		err = a.Print(a.renderDiff(report))
	}
	if err == nil && report.Different {
		err = &invocation.ExitError{Code: invocation.ExitDifferent}
	}
	return err
}

func (a *app) compareWithAuthorized(ctx context.Context, c *invocation.Cluster, t guarded.Target) (diffReport, error) {
	baseline, err := guarded.GetBaseline(ctx, c, t)
	if err != nil {
		return diffReport{}, err
	}
	report := diffReport{Object: t.String(), Namespace: t.Namespace, Authorized: guarded.ReportAuthorized(baseline), Changes: []actions.Change{}}
	live, err := guarded.ReadLive(ctx, c, t, baseline)
	if err != nil {
		return diffReport{}, err
	}
	if live != nil {
		report.Live = reportLive(live)
	}
	if live == nil || baseline.Spec.Authorized == nil {
		report.compareWhole(baseline, live != nil)
		return report, nil
	}
	revision, err := guarded.GetRevision(ctx, c, baseline, baseline.Spec.Authorized.Number)
	if err != nil {
		return diffReport{}, fmt.Errorf("reading the authorized state of %s: %w", t, err)
	}
	body, err := guarded.DecodeBody(revision)
	if err != nil {
		return diffReport{}, err
	}
	exclusions, err := a.exclusions(ctx, c, baseline, live)
	if err != nil {
		return diffReport{}, err
	}
	return report, report.compareBodies(body, live.Body, canon.GVK(guarded.KindOf(baseline)), exclusions)
}

// compareWhole is for an object that is gone or that nobody trusted has made.
func (r *diffReport) compareWhole(b *v1alpha1.Baseline, exists bool) {
	authorized := b.Spec.Authorized != nil && b.Status.RetirementTime == nil
	switch {
	case exists && !authorized:
		r.Different = true
		r.Changes = append(r.Changes, actions.Change{Operation: string(diff.Added)})
	case !exists && authorized:
		r.Different = true
		r.Changes = append(r.Changes, actions.Change{Operation: string(diff.Removed)})
	}
}

func (r *diffReport) compareBodies(authorized, live []byte, gvk canon.GVK, x exclusions) error {
	before, err := canon.Parse(authorized, gvk)
	if err != nil {
		return fmt.Errorf("reading the authorized body of %s: %w", r.Object, err)
	}
	defer before.Release()
	after, err := canon.Parse(live, gvk)
	if err != nil {
		return fmt.Errorf("reading %s: %w", r.Object, err)
	}
	defer after.Release()
	excluded := x.ignored
	for _, mask := range x.masks {
		if !maskHolds(mask, after) {
			continue
		}
		if path, err := canon.ParsePath(mask.Path); err == nil {
			excluded = append(excluded, path)
			r.Expected = append(r.Expected, maskReport{Path: mask.Path, By: mask.Actor.User, Rule: mask.Rule, Value: mask.Value})
		}
	}
	r.Changes = append(r.Changes, actions.ReportChanges(diff.Compare(before, after, excluded...))...)
	r.Different = len(r.Changes) > 0
	return nil
}

// maskHolds tells whether the live value is still the one the expected writer
// left: a mask covers a value, not a field. A value that was cut cannot be
// compared, and the assessor's word stands.
func maskHolds(mask v1alpha1.Mask, live *canon.Document) bool {
	path, err := canon.ParsePath(mask.Path)
	if err != nil {
		return false
	}
	value := live.Root().Follow(path)
	if !value.Exists() || mask.Value == "" {
		return mask.Value == ""
	}
	now := value.AppendCanonical(nil)
	return len(now) > len(mask.Value) || string(now) == mask.Value
}

func reportLive(l *guarded.LiveObject) *liveReport {
	return &liveReport{
		UID:             string(l.Metadata.UID),
		Generation:      l.Metadata.Generation,
		ResourceVersion: l.Metadata.ResourceVersion,
		Writer:          l.Metadata.Annotations[v1alpha1.AnnotationWriter],
	}
}
