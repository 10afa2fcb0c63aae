// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// specCase is one spec and the API server's answer to it. A refusal must name
// exactly the given fields, so that a rule which fires beside another one shows.
type specCase struct {
	// spec fields in YAML, laid over the kind's smallest valid spec.
	spec string
	// fields that the refusal names; none: accepted.
	fields []string
	// message is part of what the refusal says of the first field.
	message string
}

// runSpecCases dry-runs each case as a new object of the kind.
func runSpecCases(t *testing.T, kind, smallest string, cases map[string]specCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := dryCreate(t, object(t, kind, "case", smallest, tc.spec))
			if len(tc.fields) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			assertRefused(t, err, tc.message, tc.fields...)
		})
	}
}

// assertRefused demands a refusal that names exactly these fields and says
// message of the first one.
func assertRefused(t *testing.T, err error, message string, fields ...string) {
	t.Helper()
	got := refusal(t, err)
	want := slices.Sorted(slices.Values(fields))
	if diff := cmp.Diff(want, keys(got)); diff != "" {
		t.Errorf("fields named by the refusal (-want +got):\n%s\n%v", diff, err)
	}
	if message == "" {
		t.Error("the case checks no message")
	}
	if !strings.Contains(got[fields[0]], message) {
		t.Errorf("%s: got message %q, want one with %q", fields[0], got[fields[0]], message)
	}
}

// patchCase is a merge patch of a stored object and the API server's answer.
type patchCase struct {
	patch string
	// fields that the refusal names; none: accepted.
	fields []string
	// message is part of what the refusal says of the first field.
	message string
}

// runPatchCases dry-runs each case as a patch of the object or of its status.
func runPatchCases(t *testing.T, kind, name string, patch func(t *testing.T, kind, name, patch string) error, cases map[string]patchCase) {
	t.Helper()
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			err := patch(t, kind, name, tc.patch)
			if len(tc.fields) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			assertRefused(t, err, tc.message, tc.fields...)
		})
	}
}
