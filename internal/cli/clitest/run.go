// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

// Must ends the test on an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Now is the clock of all tests.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Before returns the time d before [Now].
func Before(d time.Duration) metav1.Time { return metav1.NewTime(Now.Add(-d)) }

// Answer is the exit code of a command line, and its output.
type Answer struct {
	Code           int
	Stdout, Stderr string
}

// Verb makes a command for an invocation.
type Verb = func(*invocation.Invocation) *cobra.Command

// NewInvocation returns an invocation with buffers, without a cluster unless Connect is set.
// finish returns its output with an exit code.
func NewInvocation(t *testing.T, stdin string) (inv *invocation.Invocation, finish func(code int) Answer) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errOut bytes.Buffer
	inv = invocation.New(invocation.Environment{In: strings.NewReader(stdin), Out: &out, Err: &errOut, Now: func() time.Time { return Now }, Version: "v0.0.0-test"})
	return inv, func(code int) Answer { return Answer{code, out.String(), errOut.String()} }
}

// Run carries out a command line of a plugin that has verbs alone.
func Run(t *testing.T, inv *invocation.Invocation, verbs []Verb, args []string) int {
	t.Helper()
	commands := make([]*cobra.Command, 0, len(verbs))
	for _, verb := range verbs {
		commands = append(commands, verb(inv))
	}
	return inv.Run(t.Context(), inv.NewRoot(invocation.Group{Title: "Commands", Verbs: commands}), args)
}

// RunOffline carries out a command line that must ask for no cluster.
func RunOffline(t *testing.T, verbs []Verb, stdin string, args ...string) Answer {
	t.Helper()
	inv, finish := NewInvocation(t, stdin)
	inv.Connect = func() (*invocation.Cluster, error) {
		t.Errorf("%q asked for a cluster", args)
		return nil, os.ErrInvalid
	}
	return finish(Run(t, inv, verbs, args))
}

// Run carries out a command line on the fake.
func (f Cluster) Run(t *testing.T, verbs []Verb, stdin string, args ...string) Answer {
	t.Helper()
	inv, finish := NewInvocation(t, stdin)
	c := f.Connect(t)
	inv.Connect = func() (*invocation.Cluster, error) { return c, nil }
	inv.IsInteractive = func() bool { return stdin != "" }
	return finish(Run(t, inv, verbs, args))
}
