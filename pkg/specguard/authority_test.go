// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// judge relies on this for an object that was created again: if its creator is not
// trusted, none of its differences may be authorized.
func TestTrustDoesNotDependOnThePath(t *testing.T) {
	users := []string{"ci", "bob", "alice"}
	paths := []string{"/spec", "/spec/replicas", "/spec/paused", "/spec/template/metadata/labels/app"}
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		for i := range rapid.IntRange(1, 3).Draw(r, "guards") {
			spec := v1alpha1.GuardSpec{
				TrustedWriters: v1alpha1.Writers{Users: rapid.SliceOfNDistinct(rapid.SampledFrom(users), 0, 2, rapid.ID[string]).Draw(r, "trusted")},
			}
			for j := range rapid.IntRange(0, 2).Draw(r, "expectations") {
				spec.ExpectedWriters = append(spec.ExpectedWriters, v1alpha1.ExpectedWriter{
					Name: fmt.Sprintf("rule-%d", j), Paths: []string{rapid.SampledFrom(paths).Draw(r, "expected path")},
					Writers: v1alpha1.Writers{Users: []string{rapid.SampledFrom(users).Draw(r, "expected")}},
				})
			}
			w.guard(fmt.Sprintf("guard-%d", i), spec, testNow)
		}
		by := writer{
			id: Identity{User: rapid.SampledFrom(users).Draw(r, "user")}, proven: rapid.Bool().Draw(r, "proven"), guessed: rapid.Bool().Draw(r, "guessed"),
		}
		s := &step{in: Input{Rules: w.rules}, gvk: w.gvk}
		path, err := canon.ParsePath(rapid.SampledFrom(paths).Draw(r, "path"))
		if err != nil {
			r.Fatal(err)
		}
		if j := s.judge(diff.Change{Path: path, Op: diff.Changed}, by); j.authorized && !s.trustedAuthor(by) {
			r.Errorf("a write of %s by %s is authorized, though its creation of the object would not be", path, by.id.User)
		}
	})
}
