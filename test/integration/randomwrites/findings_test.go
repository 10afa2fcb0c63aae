// SPDX-License-Identifier: Apache-2.0

//go:build integration

package randomwrites

import (
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// compareFindings holds the paths and the authors of the findings against the truth: each
// value that differs has a finding, each finding has such a value, and nobody is named for
// the write of another user.
func (w *twin) compareFindings(findings []v1alpha1.Finding) error {
	switch {
	case w.live == nil: // no stamp tells who deleted it
		return nil
	case w.authorized == nil:
		if len(findings) != 1 || findings[0].Path != "" {
			return fmt.Errorf("the findings are %v, want one about the object", listOf(findings))
		}
		return w.compareActor(findings[0].Actor, w.creator, w.unseen[""], []string{w.creator})
	}
	for field, value := range w.live {
		if w.authorized[field] == value {
			continue
		}
		if !slices.ContainsFunc(findings, func(f v1alpha1.Finding) bool { return w.covers(f.Path, field) }) {
			return fmt.Errorf("%s differs, and the findings are %v", field, listOf(findings))
		}
	}
	for i := range findings {
		if err := w.compareFinding(&findings[i]); err != nil {
			return err
		}
	}
	return nil
}

// covers tells whether a finding at a path speaks of a field.
func (w *twin) covers(text, field string) bool {
	path, err := canon.ParsePath(text)
	if err != nil {
		return false
	}
	at, err := canon.ParsePath(w.pathOf(field))
	return err == nil && path.Covers(at)
}

// compareFinding checks that a finding has a value that differs, and its author.
func (w *twin) compareFinding(f *v1alpha1.Finding) error {
	var about []string
	for field, value := range w.live {
		if w.authorized[field] != value && w.covers(f.Path, field) {
			about = append(about, field)
		}
	}
	switch {
	case len(about) == 0:
		return fmt.Errorf("a finding at %s, where nothing differs", f.Path)
	case w.atomic, len(about) > 1: // whose it is, is not one question
		return nil
	}
	field := about[0]
	err := w.compareActor(f.Actor, w.writers[field], w.unseen[field], w.wrote[[2]string{field, w.live[field]}])
	if err != nil {
		return fmt.Errorf("at %s: %w", f.Path, err)
	}
	return nil
}

// compareActor checks who is named for a write. While no assessor watched, any of those who
// ever wrote the value may be named, or none.
func (w *twin) compareActor(actor v1alpha1.Actor, author string, unseen bool, all []string) error {
	named := actor.Class != v1alpha1.ActorUnknown
	switch {
	case !named && (unseen || author == ""), named && unseen && slices.Contains(all, actor.User), named && actor.User == author:
		return nil
	default:
		return fmt.Errorf("the author is %q (%s), want %q", actor.User, actor.Class, author)
	}
}

func listOf(findings []v1alpha1.Finding) []string {
	var list []string
	for i := range findings {
		list = append(list, fmt.Sprintf("%s by %q (%s)", findings[i].Path, findings[i].Actor.User, findings[i].Actor.Class))
	}
	return list
}
