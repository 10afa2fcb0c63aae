// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/trial"
)

// onceRunner makes the runner of a package when it is first needed.
type onceRunner struct {
	target  trial.Target
	scratch string
	once    sync.Once
	runner  *trial.Runner
	err     error
}

func (o *onceRunner) get(ctx context.Context) (*trial.Runner, error) {
	o.once.Do(func() { o.runner, o.err = trial.NewRunner(ctx, o.target, o.scratch) })
	return o.runner, o.err
}
