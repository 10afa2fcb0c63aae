// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

func (a *app) diffCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "diff TYPE/NAME",
		Short: "Show what differs between the authorized and the live object",
		Long: `Show, path by path, what differs between the authorized state of an object and
what runs now. Fields that the guards ignore are left out; fields that an
expected writer moved are named at the end and do not count. Values that look
like secrets are replaced by their rough length.

Exit status: 0 no differences were found. 1 differences were found.
>1 the command failed.`,
		Example: examples(
			"# What is not as authorized", "%s diff deploy/web",
			"# For a program", "%s diff deploy/web -o json"),
		Annotations: map[string]string{troubleAnnotation: "diff"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.diff(cmd, args, output)
		},
		ValidArgsFunction: a.completeObject(),
	}
	addOutputFlag(cmd, &output, "json", "yaml")
	return cmd
}

// diffReport is what diff answers.
type diffReport struct {
	Object     string            `json:"object"`
	Namespace  string            `json:"namespace"`
	Different  bool              `json:"different"`
	Authorized *authorizedReport `json:"authorized,omitempty"`
	Live       *liveReport       `json:"live,omitempty"`
	Changes    []changeReport    `json:"changes"`
	// Expected are differences by expected writers; they do not count.
	Expected []maskReport `json:"expected,omitempty"`
}

type authorizedReport struct {
	Revision int64           `json:"revision"`
	By       string          `json:"by,omitempty"`
	At       metav1.Time     `json:"at,omitzero"`
	Origin   v1alpha1.Origin `json:"origin,omitempty"`
	Hash     string          `json:"hash"`
}

type liveReport struct {
	UID             string `json:"uid"`
	Generation      int64  `json:"generation,omitempty"`
	ResourceVersion string `json:"resourceVersion"`
	// Writer is the writer stamp: who last changed guarded content.
	Writer string `json:"writer,omitempty"`
}

// changeReport is one difference; before and after are canonical JSON,
// redacted.
type changeReport struct {
	Path      string `json:"path"`
	Operation string `json:"operation"`
	Before    string `json:"before,omitempty"`
	After     string `json:"after,omitempty"`
	// Reordered: the same elements in another order.
	Reordered bool `json:"reordered,omitempty"`
}

type maskReport struct {
	Path  string `json:"path"`
	By    string `json:"by"`
	Rule  string `json:"rule"`
	Value string `json:"value,omitempty"`
}

func (a *app) diff(cmd *cobra.Command, args []string, output string) error {
	if err := checkOutput(cmd, output, "json", "yaml"); err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	t, err := c.oneTarget(cmd, args)
	if err != nil {
		return err
	}
	report, err := a.compareWithAuthorized(cmd.Context(), c, t)
	if err != nil {
		return err
	}
	if output != "" {
		err = a.printStructured(output, report)
	} else {
		err = a.print(a.renderDiff(report))
	}
	if err == nil && report.Different {
		err = &exitError{code: exitDifferent}
	}
	return err
}

func (a *app) compareWithAuthorized(ctx context.Context, c *cluster, t target) (diffReport, error) {
	baseline, err := c.baseline(ctx, t)
	if err != nil {
		return diffReport{}, err
	}
	report := diffReport{Object: t.String(), Namespace: t.namespace, Authorized: reportAuthorized(baseline), Changes: []changeReport{}}
	live, err := c.liveOf(ctx, t, baseline)
	if err != nil {
		return diffReport{}, err
	}
	if live != nil {
		report.Live = live.report()
	}
	if live == nil || baseline.Spec.Authorized == nil {
		report.compareWhole(baseline, live != nil)
		return report, nil
	}
	revision, err := c.revision(ctx, baseline, baseline.Spec.Authorized.Number)
	if err != nil {
		return diffReport{}, fmt.Errorf("reading the authorized state of %s: %w", t, err)
	}
	body, err := revisionBody(revision)
	if err != nil {
		return diffReport{}, err
	}
	exclusions, err := a.exclusions(ctx, c, baseline, live)
	if err != nil {
		return diffReport{}, err
	}
	return report, report.compareBodies(body, live.body, canon.GVK(targetKind(baseline)), exclusions)
}

// compareWhole is for an object that is gone or that nobody trusted has made.
func (r *diffReport) compareWhole(b *v1alpha1.Baseline, exists bool) {
	authorized := b.Spec.Authorized != nil && b.Status.RetirementTime == nil
	switch {
	case exists && !authorized:
		r.Different = true
		r.Changes = append(r.Changes, changeReport{Operation: string(diff.Added)})
	case !exists && authorized:
		r.Different = true
		r.Changes = append(r.Changes, changeReport{Operation: string(diff.Removed)})
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
	r.Changes = append(r.Changes, reportChanges(diff.Compare(before, after, excluded...))...)
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

func reportChanges(changes []diff.Change) []changeReport {
	reports := make([]changeReport, 0, len(changes))
	for _, change := range changes {
		redacted := diff.Redact(change)
		reports = append(reports, changeReport{
			Path: redacted.Path.String(), Operation: string(redacted.Op),
			Before: string(redacted.Before), After: string(redacted.After),
			Reordered: redacted.Reordered(),
		})
	}
	return reports
}

func reportAuthorized(b *v1alpha1.Baseline) *authorizedReport {
	authorized := b.Spec.Authorized
	if authorized == nil {
		return nil
	}
	return &authorizedReport{
		Revision: authorized.Number, By: authorized.By, At: authorized.AuthorizationTime,
		Origin: authorized.Origin, Hash: authorized.Hash,
	}
}

// exclusions are the differences that are none.
type exclusions struct {
	ignored []canon.Path
	masks   []v1alpha1.Mask
}
