// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/plumbline-dev/plumbline/internal/agent/follow"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/carry"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/runtimeapi"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// HAProxySignals end a HAProxy, whose workers end with their master.
var HAProxySignals = Signals{Drain: syscall.SIGUSR1, End: syscall.SIGTERM, Orphan: syscall.SIGKILL}

// HAProxy is the connector of a HAProxy, and counts its requests.
type HAProxy struct {
	master  string
	carrier *carry.Carrier

	mu sync.Mutex
	// counted is the last snapshot of each worker by its PID; nil before the first.
	counted map[int]haproxy.Snapshot
	// fresh says that the program began with the agent, so that all counts of its first workers are new.
	fresh bool
}

// NewHAProxy connector. fresh says that the agent starts the program.
func NewHAProxy(c carry.Config, fresh bool) *HAProxy {
	c.Passed = reachPoint
	return &HAProxy{master: c.Master, carrier: carry.New(c), fresh: fresh}
}

// Kind implements [Connector].
func (*HAProxy) Kind() string { return "haproxy" }

// Check implements [Connector].
func (*HAProxy) Check(p envoyxds.Port) error { return haproxy.Check(p) }

// Prepare implements [Connector].
func (h *HAProxy) Prepare(ctx context.Context, ports []envoyxds.Port) error {
	return refusalOf(h.carrier.Prepare(ctx, ports))
}

// CarryOut implements [Connector].
func (h *HAProxy) CarryOut(ctx context.Context, ports []envoyxds.Port) follow.Result {
	late, err := h.carrier.CarryOut(ctx, ports)
	return resultOf(late, err)
}

// Count implements [Counter]. A worker that does not answer is read the next time.
func (h *HAProxy) Count(ctx context.Context) (map[envoyname.Slot]Counted, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	present, old, err := runtimeapi.Client{Socket: h.master}.Workers(ctx)
	if err != nil {
		return nil, fmt.Errorf("counting requests: %w", err)
	}
	began := h.counted == nil && !h.fresh
	counted, now := map[envoyname.Slot]Counted{}, map[int]haproxy.Snapshot{}
	var errs []error
	for _, pid := range append(present, old...) {
		before := h.counted[pid]
		s, err := snapshot(ctx, runtimeapi.Client{Socket: h.master, PID: pid})
		if err != nil {
			errs = append(errs, err)
			now[pid] = before
			continue
		}
		now[pid] = s
		if began {
			before = s
		}
		add(counted, s.Since(before), s.InFlight)
	}
	h.counted = now
	if len(now) == len(errs) {
		return nil, fmt.Errorf("counting requests: %w", errors.Join(errs...))
	}
	return counted, nil
}

func snapshot(ctx context.Context, worker runtimeapi.Client) (haproxy.Snapshot, error) {
	info, err := worker.Info(ctx)
	if err != nil {
		return haproxy.Snapshot{}, err //nolint:wrapcheck // it names the command
	}
	stats, err := worker.Stats(ctx)
	return haproxy.SnapshotOf(info, stats), err //nolint:wrapcheck // as above
}

// add the counts of one worker.
func add(to map[envoyname.Slot]Counted, since map[envoyname.Slot]haproxy.Counts, inFlight map[envoyname.Slot]uint64) {
	for slot, c := range since {
		sum := to[slot]
		sum.Answered += c.Answered
		sum.Failed += c.Failed
		sum.ClientErrors += c.ClientErrors
		sum.FailedOver += c.FailedOver
		sum.GivenUp += c.GivenUp
		sum.InFlight += inFlight[slot]
		to[slot] = sum
	}
}
