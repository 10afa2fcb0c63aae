// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

const (
	// awaitPatience bounds each step of bring-up. The longest takes 3 s on an idle
	// machine; a loaded one may need many times that.
	awaitPatience = 2 * time.Minute
	awaitInterval = 50 * time.Millisecond
	awaitReport   = 15 * time.Second // between signs of life
)

// await repeats probe until it succeeds, a daemon ends, or patience does. Its
// error carries the last lines of the log where the cause is likely to be.
func (b *bringUp) await(ctx context.Context, what, suspect string, probe func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, awaitPatience)
	defer cancel()
	ticker, reporter := time.NewTicker(awaitInterval), time.NewTicker(awaitReport)
	defer ticker.Stop()
	defer reporter.Stop()
	for {
		err := probe(limited)
		if err == nil {
			b.say(what)
			return nil
		}
		select {
		case exit := <-b.launcher.Exits():
			return fmt.Errorf("%s %s%s", exit.Name, exit.Status, logTail(b.record.Layout(), exit.Name))
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("waited %s for: %s: %w%s", awaitPatience, what, err, logTail(b.record.Layout(), suspect))
		case <-reporter.C:
			b.say("still waiting for: " + what + " (" + err.Error() + ")")
		case <-ticker.C:
		}
	}
}

// tailBytes and tailLines bound what an error shows of a log.
const (
	tailBytes = 16 << 10
	tailLines = 15
)

func logTail(l plan.Layout, name string) string {
	data, err := os.ReadFile(l.Log(name))
	if err != nil {
		return fmt.Sprintf("\n(its log cannot be read: %v)", err)
	}
	return fmt.Sprintf("\nlast lines of %s:\n%s", l.Log(name), lastLines(string(data[max(0, len(data)-tailBytes):]), tailLines))
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-count):], "\n  ")
}
