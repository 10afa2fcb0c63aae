// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness"
)

// narrator tells the story: a heading, plain words, then commands as typed with
// what they really printed.
type narrator struct {
	out   io.Writer
	scene int
	begun time.Time
}

func newNarrator(out io.Writer) *narrator { return &narrator{out: out, begun: time.Now()} }

// progress tells a step of the preparation with the time since the start.
func (n *narrator) progress(format string, args ...any) {
	fmt.Fprintf(n.out, "[%5.1fs] %s\n", time.Since(n.begun).Seconds(), fmt.Sprintf(format, args...))
}

// heading opens a scene.
func (n *narrator) heading(title string) {
	n.scene++
	fmt.Fprintf(n.out, "\n%s\n%d. %s\n%s\n", strings.Repeat("-", 72), n.scene, title, strings.Repeat("-", 72))
}

// say explains.
func (n *narrator) say(format string, args ...any) {
	fmt.Fprintf(n.out, "%s\n", fmt.Sprintf(format, args...))
}

// run shows a command and what it prints.
func (n *narrator) run(ctx context.Context, c *harness.Cluster, args ...string) error {
	return n.runAs(ctx, c, shown(args), args)
}

// runAs shows the command in other words than it is run, e.g. without a token.
func (n *narrator) runAs(ctx context.Context, c *harness.Cluster, show string, args []string, options ...harness.Option) error {
	fmt.Fprintf(n.out, "$ %s\n", show)
	result, err := c.Run(ctx, args, options...)
	for line := range strings.Lines(result.Output()) {
		fmt.Fprintf(n.out, "  %s\n", strings.TrimRight(line, "\n"))
	}
	return err
}

// shown quotes what a shell would need quoted.
func shown(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n\\[](){}'\"`$&;|<>*?~#!") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted[i] = a
	}
	return strings.Join(quoted, " ")
}

func secondsSince(n *narrator) float64 { return time.Since(n.begun).Seconds() }
