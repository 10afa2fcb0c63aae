// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
)

const (
	// settleTime collects changes that come together.
	settleTime = 300 * time.Millisecond
	// ageTime is how often a terminal gets new ages without a change.
	ageTime = 10 * time.Second
	// Redraw moves the cursor to the first column of the first line, and clears the terminal.
	Redraw = "\x1b[H\x1b[J"
)

// AddWatchFlag adds -w, as kubectl has it, which [CheckWatch] checks.
func AddWatchFlag(cmd *cobra.Command, watch *bool) {
	cmd.Flags().BoolVarP(watch, "watch", "w", false, "After the first output, show each change until you interrupt the command. Outside of a terminal, print each changed line.")
}

// CheckWatch refuses -w with an output format that is one document.
func CheckWatch(cmd *cobra.Command, watch bool, output string) error {
	if watch && output != "" && output != "wide" {
		return UsageErrorf(cmd, "--watch prints the table: leave out -o %s, or use \"kubectl get --watch\" for objects", output)
	}
	return nil
}

// ShowChanges prints the text of show, and prints the text anew after each change of the listed objects, until the
// context ends. A terminal has the present text alone. Elsewhere each line follows that differs by more than spaces and ages.
func (inv *Invocation) ShowChanges(ctx context.Context, c *Cluster, list client.ObjectList, options *client.ListOptions, show func(to *Invocation) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, ended := make(chan struct{}, 1), make(chan error, 1)
	warn := func(err error) { inv.Warn("the watch was interrupted, and is taken up again: %v", err) }
	go func() {
		ended <- actions.FollowList(ctx, c, list, options, actions.BackOff, warn, func() {
			select {
			case changes <- struct{}{}:
			default: // the next look sees this change as well
			}
		})
	}()
	err := inv.showEach(ctx, changes, ended, show)
	cancel()
	return err
}

// showEach shows the text at first and after each change, until the context or the watch ends.
func (inv *Invocation) showEach(ctx context.Context, changes <-chan struct{}, ended <-chan error, show func(to *Invocation) error) error {
	terminal := printers.IsTerminal(inv.Out)
	before := ""
	for {
		var text bytes.Buffer
		if err := show(inv.WithOut(&text)); err != nil {
			return err
		}
		out := Redraw + text.String()
		if !terminal {
			out = changedLines(before, text.String())
		}
		if err := inv.Print(out); err != nil {
			return err
		}
		before = text.String()
		again := time.NewTimer(ageTime)
		select {
		case <-ctx.Done():
			again.Stop()
			return ctx.Err()
		case err := <-ended:
			again.Stop()
			return err
		case <-changes:
			again.Reset(settleTime)
			<-again.C
		case <-again.C:
		}
	}
}

// ages are durations as tables have them, such as 5m, 2h3m or 3d.
var ages = regexp.MustCompile(`\b(\d+[smhdy])+\b`)

// changedLines returns the lines of the present text without a line in the text before that differs by spaces and ages alone.
func changedLines(before, now string) string {
	plain := func(line string) string { return strings.Join(strings.Fields(ages.ReplaceAllString(line, "")), " ") }
	known := map[string]bool{"": before != ""}
	for line := range strings.Lines(before) {
		known[plain(line)] = true
	}
	var b strings.Builder
	for line := range strings.Lines(now) {
		if !known[plain(line)] {
			b.WriteString(line)
		}
	}
	return b.String()
}
