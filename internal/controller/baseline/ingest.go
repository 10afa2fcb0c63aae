// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
)

const (
	// lookBack is how far before the start records are read: they explain what
	// was written while no assessor ran.
	lookBack = time.Hour
	// readBlock is how long one read waits for the first record.
	readBlock = time.Second
	// readLimit is how many records one read returns at most.
	readLimit = 500
	// readAgain is how soon a source that failed is tried again.
	readAgain = time.Second
)

// RecordReader reads the webhook's records; *details.Reader does.
type RecordReader interface {
	Next(ctx context.Context, after details.Position, limit int, block time.Duration) (details.Batch, error)
}

// Ingest reads records into the index of a Reconciler and makes the objects they
// are about be looked at. Without a readable source nothing but names is lost.
type Ingest struct {
	Reader     RecordReader
	Reconciler *Reconciler
	Trigger    *Trigger
	Clock      clock.Clock
	Log        logr.Logger
}

// Start runs until ctx ends; it is a manager.Runnable.
func (i *Ingest) Start(ctx context.Context) error {
	position := details.PositionAt(i.Clock.Now().Add(-lookBack))
	failing := false
	block := time.Duration(0) // until it is known whether the source can be read
	for ctx.Err() == nil {
		batch, err := i.Reader.Next(ctx, position, readLimit, block)
		i.Reconciler.Records.SetHealthy(err == nil && !batch.Gap)
		i.Reconciler.Metrics.recordsReadable(err == nil)
		if err != nil {
			if !failing && ctx.Err() == nil {
				i.Log.Info("records of writes cannot be read, users of /scale and DELETE will be unknown", "error", err.Error())
			}
			failing, block = true, 0
			i.pause(ctx)
			continue
		}
		block = readBlock
		if failing {
			i.Log.Info("records of writes can be read again")
			failing = false
		}
		position = batch.Next
		i.take(batch)
	}
	return nil
}

func (i *Ingest) take(batch details.Batch) {
	if batch.Gap {
		i.Reconciler.Metrics.recordGaps.Inc()
	}
	for _, e := range batch.Entries {
		i.Reconciler.Metrics.recordsDisplaced(i.Reconciler.Records.Add(e.Record))
		// The object's own event wakes what was never observed.
		if key, ok := i.Reconciler.memory.keyOf(e.Record.UID); ok {
			i.Trigger.Look(key)
		}
	}
}

func (i *Ingest) pause(ctx context.Context) {
	timer := i.Clock.NewTimer(readAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
