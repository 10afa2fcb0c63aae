// SPDX-License-Identifier: Apache-2.0

// Package campaign tries mutants of a package until as many have compiled as wanted.
package campaign

import (
	"context"
	"slices"
	"sync"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

// Verdict is the result of a try.
type Verdict string

// The verdicts. A mutant that does not compile is none.
const (
	Killed      Verdict = "killed"
	Survived    Verdict = "survived"
	NotCompiled Verdict = "does not compile"
)

// Outcome is a mutant that compiled, and its verdict.
type Outcome struct {
	Mutant  mutation.Mutant
	Verdict Verdict
}

// Try tries one mutant.
type Try func(context.Context, *mutation.Mutant) (Verdict, error)

// TryMutants tries the first mutants that compile, as many as wanted, in their order,
// several at once. When its context ends or a try fails, it returns the outcomes until
// then, and the error.
func TryMutants(ctx context.Context, mutants []mutation.Mutant, wanted, workers int, try Try) ([]Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &state{mutants: mutants, wanted: wanted, verdicts: make([]Verdict, len(mutants))}
	c.changed.L = &c.mu
	// A worker that waits for the verdicts of others wakes up at the end of the context.
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})
	defer stop()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i, ok := c.next(ctx); ok; i, ok = c.next(ctx) {
				verdict, err := try(ctx, &mutants[i])
				if err != nil {
					cancel(err)
				}
				c.finish(i, verdict, err)
			}
		})
	}
	group.Wait()
	return c.outcomes(), context.Cause(ctx)
}

type state struct {
	mutants []mutation.Mutant
	wanted  int

	mu       sync.Mutex
	changed  sync.Cond
	started  int // mutants of which a try began
	running  int
	compiled int
	verdicts []Verdict
}

// next returns the next mutant to try. It waits while the running tries may be enough:
// so the mutants that compiled are always the first ones.
func (c *state) next(ctx context.Context) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running > 0 && c.compiled+c.running >= c.wanted && c.compiled < c.wanted && ctx.Err() == nil {
		c.changed.Wait()
	}
	if c.compiled >= c.wanted || c.started == len(c.mutants) || ctx.Err() != nil {
		return 0, false
	}
	c.started++
	c.running++
	return c.started - 1, true
}

func (c *state) finish(i int, verdict Verdict, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if err == nil {
		c.verdicts[i] = verdict
		if verdict != NotCompiled {
			c.compiled++
		}
	}
	c.changed.Broadcast()
}

func (c *state) outcomes() []Outcome {
	var out []Outcome
	for i, m := range c.mutants {
		if v := c.verdicts[i]; slices.Contains([]Verdict{Killed, Survived}, v) {
			out = append(out, Outcome{m, v})
		}
	}
	return out
}
