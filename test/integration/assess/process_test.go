// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/controller/baseline"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// process is an assessor that runs as the binary does, within the test.
type process struct {
	*inprocess.Process
	faults   *faults
	registry *prometheus.Registry
}

// option changes how an assessor is started.
type option func(*assessor.Setup)

func withRecords(r baseline.RecordReader) option {
	return func(s *assessor.Setup) { s.Records = r }
}

func withRetention(d time.Duration) option {
	return func(s *assessor.Setup) { s.Retention = d }
}

func withGrace(d time.Duration) option {
	return func(s *assessor.Setup) { s.Rules.Grace = d }
}

func withLeaderElection() option {
	return func(s *assessor.Setup) { s.LeaderElect = true }
}

// withBlindness makes deployments unreadable from the start.
func withBlindness() option {
	return func(s *assessor.Setup) {
		wrapped := s.Config.WrapTransport
		s.Config.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
			out := wrapped(rt)
			out.(*faults).when(func(r *http.Request) error {
				if strings.HasSuffix(r.URL.Path, "/deployments") {
					return errRefused
				}
				return nil
			})
			return out
		}
	}
}

// start runs an assessor until the test ends or it is stopped.
func start(t *testing.T, options ...option) *process {
	t.Helper()
	p := &process{faults: &faults{}, registry: prometheus.NewRegistry()}
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: assessorUser}
	own.Wrap(func(rt http.RoundTripper) http.RoundTripper { p.faults.next = rt; return p.faults })
	setup := assessor.Setup{
		Config: own, Namespace: rendered.Namespace, Retention: time.Hour,
		Rules:    specguard.Config{Key: []byte("a key of the tests"), Grace: 200 * time.Millisecond},
		Registry: p.registry, Log: inprocess.Log(t), Clock: clock.RealClock{},
	}
	for _, o := range options {
		o(&setup)
	}
	p.Process = inprocess.Start(t, "assessor", patience, func(ctx context.Context, ready func()) error {
		setup.Ready = ready
		return assessor.Run(ctx, setup)
	})
	return p
}

// faults stands between an assessor and the API server.
type faults struct {
	next http.RoundTripper

	mu      sync.Mutex
	refuse  func(*http.Request) error
	detour  func(*http.Request) *http.Request
	watches map[io.Closer]bool
}

var errRefused = errors.New("a fault of the test")

// when makes requests fail that the function picks; nil ends that.
func (f *faults) when(refuse func(*http.Request) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

// through makes requests go through a function that may hold them up or send
// others in their place; nil ends that.
func (f *faults) through(detour func(*http.Request) *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.detour = detour
}

// breakWatches cuts every watch that is open.
func (f *faults) breakWatches() int {
	f.mu.Lock()
	open := f.watches
	f.watches = nil
	f.mu.Unlock()
	for w := range open {
		_ = w.Close() // whatever it says, it is closed
	}
	return len(open)
}

// RoundTrip implements http.RoundTripper.
func (f *faults) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	refuse, detour := f.refuse, f.detour
	f.mu.Unlock()
	if refuse != nil {
		if err := refuse(r); err != nil {
			return nil, err
		}
	}
	if detour != nil {
		r = detour(r)
	}
	response, err := f.next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" {
		f.mu.Lock()
		if f.watches == nil {
			f.watches = map[io.Closer]bool{}
		}
		f.watches[response.Body] = true
		f.mu.Unlock()
	}
	return response, err
}
