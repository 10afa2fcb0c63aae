// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"context"
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Report says what differs between the authorized and the live object.
type Report struct {
	Object     string           `json:"object"`
	Namespace  string           `json:"namespace"`
	Different  bool             `json:"different"`
	Authorized *AuthorizedState `json:"authorized,omitempty"`
	Live       *Live            `json:"live,omitempty"`
	Changes    []actions.Change `json:"changes"`
	// Expected are differences by expected writers; they do not count.
	Expected []Expected `json:"expected,omitempty"`
	// Unread says which guards could not be read.
	Unread []string `json:"-"`
}

// Live names the version of an object that was compared.
type Live struct {
	UID             string `json:"uid"`
	Generation      int64  `json:"generation,omitempty"`
	ResourceVersion string `json:"resourceVersion"`
	// Writer is the writer stamp: who last changed guarded content.
	Writer string `json:"writer,omitempty"`
}

// Expected is a difference by an expected writer.
type Expected struct {
	Path  string `json:"path"`
	By    string `json:"by"`
	Rule  string `json:"rule"`
	Value string `json:"value,omitempty"`
}

// Compare compares the live object of a Baseline with its authorized state.
func Compare(ctx context.Context, c Cluster, baseline *v1alpha1.Baseline) (Report, error) {
	report := Report{Object: wording.ObjectOf(baseline), Namespace: baseline.Namespace, Authorized: ReportAuthorized(baseline), Changes: []actions.Change{}}
	live, err := ReadLive(ctx, c, baseline)
	if err != nil {
		return Report{}, err
	}
	if live != nil {
		report.Live = reportLive(live)
	}
	if live == nil || baseline.Spec.Authorized == nil {
		report.compareWhole(baseline, live != nil)
		return report, nil
	}
	revision, err := GetRevision(ctx, c, baseline, baseline.Spec.Authorized.Number)
	if err != nil {
		return Report{}, fmt.Errorf("reading the authorized state of %s: %w", report.Object, err)
	}
	body, err := DecodeBody(revision)
	if err != nil {
		return Report{}, err
	}
	excluded, err := readExclusions(ctx, c, baseline, live)
	if err != nil {
		return Report{}, err
	}
	report.Unread = excluded.unread
	return report, report.compareBodies(body, live.Body, canon.GVK(wording.KindOf(baseline)), excluded)
}

// compareWhole is for an object that is gone or that nobody trusted has made.
func (r *Report) compareWhole(b *v1alpha1.Baseline, exists bool) {
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

func (r *Report) compareBodies(authorized, live []byte, gvk canon.GVK, x exclusions) error {
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
			r.Expected = append(r.Expected, Expected{Path: mask.Path, By: mask.Actor.User, Rule: mask.Rule, Value: mask.Value})
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

func reportLive(l *LiveObject) *Live {
	return &Live{
		UID:             string(l.Metadata.UID),
		Generation:      l.Metadata.Generation,
		ResourceVersion: l.Metadata.ResourceVersion,
		Writer:          l.Metadata.Annotations[v1alpha1.AnnotationWriter],
	}
}
