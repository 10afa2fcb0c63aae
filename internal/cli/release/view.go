// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// lineView writes one line for each thing that is new.
type lineView struct {
	app  *app
	seen progress.Seen
}

func (v *lineView) period() time.Duration { return 0 }

func (v *lineView) show(r *v1alpha1.ABRelease) error {
	news, next := v.seen.Since(r.Status.Rollout)
	v.seen = next
	var text strings.Builder
	for i := range news {
		text.WriteString(invocation.Printable(describeNews(&news[i])) + "\n")
	}
	if text.Len() == 0 {
		return nil
	}
	return v.app.Print(text.String())
}

func describeNews(n *progress.News) string {
	switch {
	case n.Event != nil:
		return fmt.Sprintf("%s  run %d  %s  %s", wording.FormatTimestamp(n.Event.EventTime), n.Event.Run, n.Event.Event, n.Event.Message)
	case n.Wait != nil:
		text := fmt.Sprintf("%s  waits  %s", wording.FormatTimestamp(n.Wait.StartTime), n.Wait.Reason)
		if n.Wait.DeadlineTime != nil {
			text += " (until " + wording.FormatTimestamp(*n.Wait.DeadlineTime) + ")"
		}
		return text + "  " + n.Wait.Message
	}
	return fmt.Sprintf("the history no longer has %d of its lines", n.Gone)
}

// screenView draws the screen of a release in place.
type screenView struct {
	app   *app
	now   func() time.Time
	trail progress.Trail
}

// period is that of the clocks on the screen.
func (v *screenView) period() time.Duration { return time.Second }

func (v *screenView) show(r *v1alpha1.ABRelease) error {
	v.trail = v.trail.See(r.Status.Rollout)
	return v.app.Print(invocation.Redraw, v.app.describe(r, v.now(), v.trail))
}
