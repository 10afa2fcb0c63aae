// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

// unlisted store: it breaks off its list of names.
type unlisted struct {
	*storetest.Memory
	after int
}

func (s unlisted) List(ctx context.Context, chain string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		n := 0
		for name, err := range s.Memory.List(ctx, chain) {
			if n == s.after {
				yield("", &evidence.StoreError{Op: "list", Reason: evidence.StoreUnreachable, Err: errors.New("no")})
				return
			}
			if n++; !yield(name, err) {
				return
			}
		}
	}
}

// A list that breaks off looks like a chain that was cut.
func TestVerify_AListThatBreaksOffIsNotVerified(t *testing.T) {
	store, _ := chain(t, 3, 3)
	report, err := evidence.Verify(t.Context(), unlisted{store, 2}, keyring(t, key(t, 1)), evidence.Options{})
	var failed *evidence.StoreError
	if !errors.As(err, &failed) || failed.Reason != evidence.StoreUnreachable || report != nil {
		t.Errorf("got %+v, %v", report, err)
	}
}

// vanishing store: the names that it lists are gone when they are read.
type vanishing struct {
	*storetest.Memory
	names []string
}

func (s vanishing) Read(ctx context.Context, name string) ([]byte, error) {
	if slices.Contains(s.names, name) {
		s.Remove(name)
	}
	return s.Memory.Read(ctx, name)
}

// A file that is removed between the list and the read is missing, and no failure of the
// store.
func TestVerify_WhatVanishesMeanwhileIsMissing(t *testing.T) {
	records, _ := chain(t, 3, 3)
	bodies := withBodies(t)
	var body string
	for _, name := range bodies.Names() {
		if _, _, isBody := evidence.ParseBodyName(name); isBody {
			body = name
		}
	}
	for name, tc := range map[string]struct {
		store evidence.Store
		want  []evidence.ProblemKind
	}{
		"a record": {vanishing{records, []string{evidence.Name(policyUID, 2)}}, []evidence.ProblemKind{evidence.ProblemGap}},
		"a body":   {vanishing{bodies, []string{body}}, []evidence.ProblemKind{evidence.ProblemBodyMissing}},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := evidence.Verify(t.Context(), tc.store, keyring(t, key(t, 1)), evidence.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []evidence.ProblemKind
			for _, p := range report.Problems {
				got = append(got, p.Kind)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
