// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/spf13/cobra"
)

// An interrupted command printed "error: context canceled", and exited with 1.
func TestRun_AnInterruptedCommandPrintsNoError(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		interrupted bool
		err         error
		trouble     bool
		code        int
		stderr      string
	}{
		"a wait":                                {interrupted: true, err: context.Canceled, code: 130},
		"a request":                             {interrupted: true, err: &url.Error{Op: "Get", URL: "https://example", Err: context.Canceled}, code: 130},
		"a command whose exit code 1 is answer": {interrupted: true, err: fmt.Errorf("reading: %w", context.Canceled), trouble: true, code: 130},
		"an error that came before the end":     {interrupted: true, err: refused, code: 1, stderr: "error: refused\n"},
		"a command that was done":               {interrupted: true, code: 0},
		"a deadline of the command's own":       {err: context.Canceled, code: 1, stderr: "error: context canceled\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			inv := New(Environment{Out: &out, Err: &errOut})
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			verb := &cobra.Command{Use: "act", RunE: func(*cobra.Command, []string) error {
				if tc.interrupted {
					interrupt()
				}
				return tc.err
			}}
			if tc.trouble {
				verb.Annotations = map[string]string{TroubleAnnotation: "act"}
			}
			code := inv.Run(ctx, inv.NewRoot(Group{Title: "Commands", Verbs: []*cobra.Command{verb}}), []string{"act"})
			if code != tc.code || errOut.String() != tc.stderr || out.String() != "" {
				t.Errorf("exit code %d and %q, want %d and %q", code, errOut.String(), tc.code, tc.stderr)
			}
		})
	}
}
