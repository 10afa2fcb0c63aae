// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// admits is the chart's policy plumbline-executor-creations, which test/integration/policies
// tries on a real API server.
func (w *World) admits(a apiserver.Attributes, made apiserver.Object) error {
	if a.User != Executor || kindOf(a.Group, a.Resource) == nil && a.Resource != "abreleases" || w.timeless.Load() {
		return nil
	}
	created, err := time.Parse(time.RFC3339, fmt.Sprint(metadata(made)["creationTimestamp"]))
	if err != nil {
		panic(err)
	}
	annotations, _ := metadata(made)["annotations"].(map[string]any)
	notAfter, err := time.Parse(time.RFC3339, fmt.Sprint(annotations[repair.AnnotationNotAfter]))
	if err != nil {
		return fmt.Errorf("reading until when %s may be made: %w", a.Name, err)
	}
	if created.After(notAfter) {
		w.tooLate.Add(1)
		return fmt.Errorf("%s was to be made until %s, and it is %s", a.Name, notAfter, created)
	}
	return nil
}

// makeAgain has every target be gone, and plans that are canceled while it is made again.
func (c *scenario) makeAgain() {
	c.action, c.gone = v1alpha1.ActionReconcile, true
	c.meddlers = append(c.meddlers, disturber("canceler-of-creations", "alice", (*person).controls), disturber("second-canceler-of-creations", "alice", (*person).controls))
	c.messages += 300 // nobody dozes once everything is calm
}

// longestDoze is how long a process stands still at most before it sends a creation.
const longestDoze = 4 * time.Minute

// dozing has a process stand still between its decision to make an object and its request,
// as a process does that is stopped, or whose node is suspended: no timer of the request
// runs yet.
type dozing struct {
	exec.Targets
	w   *World
	l   *schedule.Life
	rng *rand.Rand
}

// Post implements exec.Targets.
func (d dozing) Post(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	if !dryRun && !d.w.calm.Load() && d.rng.IntN(2) == 0 {
		d.w.dozes.Add(1)
		d.doze(ctx, time.Duration(d.rng.Int64N(int64(longestDoze))))
	}
	return d.Targets.Post(ctx, ref, body, dryRun)
}

// Put implements exec.Targets.
func (d dozing) Put(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	if d.w.doze && !dryRun && !d.w.calm.Load() && d.rng.IntN(2) == 0 {
		d.w.count("doze before an update")
		d.doze(ctx, time.Duration(d.rng.Int64N(int64(longestDoze))))
	}
	return d.Targets.Put(ctx, ref, body, dryRun)
}

func (d dozing) doze(ctx context.Context, long time.Duration) {
	d.w.asleep.Add(1)
	defer d.w.asleep.Add(-1) // it may die meanwhile
	d.w.s.Note("%s dozes for %s before it sends a write", d.l.Name, long)
	d.l.Pause(ctx, long)
}
