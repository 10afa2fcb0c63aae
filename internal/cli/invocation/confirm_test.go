// SPDX-License-Identifier: Apache-2.0

package invocation_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

func TestConfirm_TakesYesAlone(t *testing.T) {
	question := invocation.Question{Ask: "Accept 2 objects?", Otherwise: "nothing was accepted", What: "accepting in bulk"}
	const asked = "Accept 2 objects? (y/N): "
	cases := map[string]struct {
		stdin    string
		yes      bool
		terminal bool
		want     string // the error
		stderr   string
	}{
		"y":                        {stdin: "y\n", terminal: true, stderr: asked},
		"yes, in any case":         {stdin: " YES \n", terminal: true, stderr: asked},
		"no":                       {stdin: "n\n", terminal: true, want: "nothing was accepted", stderr: asked},
		"an empty line":            {stdin: "\n", terminal: true, want: "nothing was accepted", stderr: asked},
		"the end of the input":     {terminal: true, want: "nothing was accepted", stderr: asked},
		"the flag --yes":           {yes: true},
		"an input that is no user": {stdin: "y\n", want: "nothing was accepted: accepting in bulk needs a confirmation, and standard input is no terminal; use --yes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inv, finish := clitest.NewInvocation(t, tc.stdin)
			inv.IsInteractive = func() bool { return tc.terminal }
			said := ""
			if err := inv.Confirm(t.Context(), tc.yes, question); err != nil {
				said = err.Error()
			}
			if got := finish(0); said != tc.want || got.Stderr != tc.stderr || got.Stdout != "" {
				t.Errorf("got %q and %+v, want %q and %q", said, got, tc.want, tc.stderr)
			}
		})
	}
}

func TestConfirm_EndsWithItsContext(t *testing.T) {
	inv, _ := clitest.NewInvocation(t, "")
	unanswered, end := io.Pipe()
	defer end.Close()
	inv.In, inv.IsInteractive = unanswered, func() bool { return true }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := inv.Confirm(ctx, false, invocation.Question{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
