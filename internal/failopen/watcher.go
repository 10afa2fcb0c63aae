// SPDX-License-Identifier: Apache-2.0

package failopen

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// heartbeatPeriod is how often Service and Lease are looked at.
	heartbeatPeriod = 5 * time.Second
	// leasePatience is longer than a handover takes when the holder dies: the
	// lease lasts 15 s, and the next replica tries every 2 s.
	leasePatience = 20 * time.Second
	// readTimeout bounds one look.
	readTimeout = 10 * time.Second
	// sweepAgain is how soon a sweep that failed is tried again.
	sweepAgain = 30 * time.Second
)

// Config says where the webhook is.
type Config struct {
	// Namespace of the installation.
	Namespace string
	// Service and Lease of the webhook.
	Service, Lease string
	// APIServerPeriod is how often the API server's own count is read; 0: never.
	APIServerPeriod time.Duration
}

// Sweeper looks again at what was written in a window.
type Sweeper interface {
	Sweep(ctx context.Context, w Window) error
}

// Watcher takes the samples. It is a manager.Runnable that works on the leader.
type Watcher struct {
	Config Config
	// Reader reads past the cache.
	Reader client.Reader
	// Raw reads /metrics; needed with an APIServerPeriod.
	Raw     rest.Interface
	Sweeper Sweeper
	Metrics *Metrics
	Clock   clock.WithTicker
	Log     logr.Logger

	endpoints, lease Signal
	renewal          renewal
	counters         Counters
	// pending covers the windows that ended and were not swept yet.
	pending    Window
	sweepAfter time.Time
	failing    map[string]bool
}

// Start takes samples until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	w.prepare()
	ticker := w.Clock.NewTicker(heartbeatPeriod)
	defer ticker.Stop()
	var lastCount time.Time
	for {
		w.heartbeat(ctx)
		if now := w.Clock.Now(); w.Config.APIServerPeriod > 0 && now.Sub(lastCount) >= w.Config.APIServerPeriod {
			lastCount = now
			w.count(ctx)
		}
		w.sweep(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (w *Watcher) prepare() {
	w.endpoints, w.lease = Signal{Evidence: EvidenceEndpoints}, Signal{Evidence: EvidenceLease}
	w.counters = Counters{Began: w.Clock.Now()}
	w.failing = map[string]bool{}
}

// heartbeat looks at the Service and the Lease.
func (w *Watcher) heartbeat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	ready, err := w.readyEndpoints(ctx)
	if w.told(ctx, sourceEndpoints, err) {
		w.Metrics.ready.Set(float64(ready))
		w.observe(&w.endpoints, ready > 0)
	}
	version, err := w.leaseVersion(ctx)
	if !w.told(ctx, sourceLease, err) || version == "" {
		return // nobody has held it, or it was given back: nothing to go by
	}
	if good, known := w.renewal.observe(w.Clock.Now(), version, leasePatience); known {
		w.observe(&w.lease, good)
	}
}

// count looks at the API server's own evidence.
func (w *Watcher) count(ctx context.Context) {
	reading, err := w.readAPIServer(ctx)
	if !w.told(ctx, sourceAPIServer, err) {
		return
	}
	window, more := w.counters.Observe(w.Clock.Now(), reading)
	if window == nil {
		return
	}
	w.Metrics.calls.Add(more)
	w.Metrics.seconds.WithLabelValues(string(EvidenceAPIServer)).Add(window.To.Sub(window.From).Seconds())
	w.ended(*window)
}

func (w *Watcher) observe(s *Signal, good bool) {
	wasOpen := s.Open()
	window, passed := s.Observe(w.Clock.Now(), good)
	w.Metrics.seconds.WithLabelValues(string(s.Evidence)).Add(passed.Seconds())
	value := 0.0
	if s.Open() {
		value = 1
	}
	w.Metrics.open.WithLabelValues(string(s.Evidence)).Set(value)
	if s.Open() && !wasOpen {
		w.Log.Info("failopen.began", "evidence", s.Evidence)
	}
	if window != nil {
		w.ended(*window)
	}
}

func (w *Watcher) ended(window Window) {
	w.Log.Info("failopen.ended", "evidence", window.Evidence, "from", window.From, "to", window.To)
	w.pending = Cover(w.pending, window)
}

// sweep sweeps what is pending; what fails stays pending.
func (w *Watcher) sweep(ctx context.Context) {
	if w.pending.To.IsZero() || w.Clock.Now().Before(w.sweepAfter) {
		return
	}
	if err := w.Sweeper.Sweep(ctx, w.pending); err != nil {
		if ctx.Err() == nil {
			w.Log.Error(err, "sweeping after a fail-open window; it is tried again")
			w.Metrics.sweeps.WithLabelValues("failed").Inc()
		}
		w.sweepAfter = w.Clock.Now().Add(sweepAgain)
		return
	}
	w.Metrics.sweeps.WithLabelValues("complete").Inc()
	w.pending = Window{}
}

// told counts a failed look, and logs the change between failing and working.
func (w *Watcher) told(ctx context.Context, source string, err error) bool {
	switch {
	case err == nil && w.failing[source]:
		w.Log.Info("evidence of fail-open windows can be read again", "source", source)
	case err != nil && ctx.Err() == context.Canceled:
		return false // told to stop
	case err != nil && !w.failing[source]:
		w.Log.Info("evidence of fail-open windows cannot be read", "source", source, "error", err.Error())
	}
	w.failing[source] = err != nil
	if err != nil {
		w.Metrics.reads.WithLabelValues(source).Inc()
	}
	return err == nil
}

func (w *Watcher) readyEndpoints(ctx context.Context) (int, error) {
	var slices discoveryv1.EndpointSliceList
	err := w.Reader.List(ctx, &slices, client.InNamespace(w.Config.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: w.Config.Service})
	if err != nil {
		return 0, fmt.Errorf("listing the endpoints of service %s: %w", w.Config.Service, err)
	}
	ready := map[string]bool{}
	for i := range slices.Items {
		for _, endpoint := range slices.Items[i].Endpoints {
			// Unset means ready, says the API.
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				for _, address := range endpoint.Addresses {
					ready[address] = true
				}
			}
		}
	}
	return len(ready), nil
}

// leaseVersion changes with every renewal; empty while nobody holds the Lease.
func (w *Watcher) leaseVersion(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	err := w.Reader.Get(ctx, client.ObjectKey{Namespace: w.Config.Namespace, Name: w.Config.Lease}, &lease)
	if err != nil {
		return "", fmt.Errorf("reading lease %s: %w", w.Config.Lease, err)
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" {
		return "", nil
	}
	return lease.ResourceVersion, nil
}

func (w *Watcher) readAPIServer(ctx context.Context) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stream, err := w.Raw.Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").Stream(ctx)
	if err != nil {
		return Reading{}, fmt.Errorf("asking the API server for its metrics: %w", err)
	}
	defer func() { _ = stream.Close() }() // read to its end or already failed
	return ParseReading(stream)
}
