// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// DefaultDepth is how many events wait for a channel at most.
const DefaultDepth = 256

// Outcome is what became of an event on a channel.
type Outcome string

// The outcomes; each event has exactly one per channel.
const (
	// Sent: the receiver took it.
	Sent Outcome = "Sent"
	// Failed: it was tried and given up.
	Failed Outcome = "Failed"
	// Dropped: it was not, or not long enough, tried: no room, the channel was
	// removed, or the process ended.
	Dropped Outcome = "Dropped"
	// Deduplicated: it was told before, or is on its way.
	Deduplicated Outcome = "Deduplicated"
)

// Recorder counts outcomes, attempts that failed and are made again, and doubts. It is
// called from several goroutines and must not wait.
type Recorder interface {
	Record(notify.ChannelType, Outcome)
	Retry(notify.ChannelType)
	Doubt(notify.ChannelType, Doubt)
}

// Seen remembers what was told across restarts. Calls are made by the workers,
// within 5 s each. An error means that it is not known: the event is then told,
// perhaps for the second time, rather than not at all.
type Seen interface {
	// Seen says what the memory claims about the pair, and whether Mark proves it.
	Seen(ctx context.Context, channel, id string) (Claim, error)
	// Mark notes that the event was told on the channel.
	Mark(ctx context.Context, channel, id string) error
}

// Secrets resolves a reference. The value goes nowhere but to the receiver; an
// error of it is not passed on, as it might hold the value.
type Secrets func(context.Context, notify.SecretRef) (string, error)

// Options of a Notifier. Secrets is required; the zero value of everything else
// is a sensible one.
type Options struct {
	Secrets  Secrets
	Seen     Seen
	Recorder Recorder
	Log      *slog.Logger
	Egress   Egress
	// Roots are the certificate authorities that are trusted; nil: the system's.
	Roots *x509.CertPool
	// Retry, completed from notify.DefaultRetry.
	Retry notify.Retry
	// Depth of each channel's queue; DefaultDepth when not positive.
	Depth int
}

// ErrClosed answers what comes after Shutdown.
var ErrClosed = errors.New("the notifier is shut down")

// UnknownChannelError names a channel that is not configured.
type UnknownChannelError struct{ Channel string }

func (e *UnknownChannelError) Error() string { return fmt.Sprintf("no channel %q", e.Channel) }

// Notifier tells channels about events. It is safe for concurrent use. Make one
// with New, give it channels with Configure, and end it with Shutdown.
type Notifier struct {
	poster
	seen     Seen
	recorder Recorder
	log      *slog.Logger
	trust    *tls.Config
	retry    notify.Retry
	depth    int
	// send makes one attempt.
	send func(context.Context, notify.Channel, *job) *Failure

	mu       sync.Mutex
	channels map[string]*channel
	closed   bool

	workers sync.WaitGroup
	undone  atomic.Int64 // events that Shutdown did not wait for
}

// New returns a notifier without channels.
func New(o Options) *Notifier {
	trust := trustOf(o.Roots)
	n := &Notifier{
		poster:   poster{secrets: o.Secrets, egress: o.Egress, client: newClient(o.Egress, trust)},
		seen:     o.Seen,
		recorder: o.Recorder,
		log:      o.Log,
		trust:    trust,
		retry:    o.Retry.Completed(),
		depth:    o.Depth,
		channels: map[string]*channel{},
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if n.depth <= 0 {
		n.depth = DefaultDepth
	}
	n.send = n.dispatch
	return n
}

// Configure makes these the channels. A channel that stays keeps its queue and
// its memory and goes on with the new settings from the next attempt; what waits
// for one that is gone is dropped. Settings that are not valid change nothing: the
// error is that of notify.ValidateChannels, an aggregate of *field.Error.
func (n *Notifier) Configure(channels []notify.Channel) error {
	if errs := notify.ValidateChannels(channels, field.NewPath("channels")); len(errs) > 0 {
		return fmt.Errorf("configuring notifications: %w", errs.ToAggregate())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	stay := map[string]bool{}
	for _, config := range channels {
		stay[config.Name] = true
		if c := n.channels[config.Name]; c != nil {
			c.set(config)
			continue
		}
		c := newChannel(n, config)
		n.channels[config.Name] = c
		n.workers.Go(c.work)
	}
	for name, c := range n.channels {
		if !stay[name] {
			delete(n.channels, name)
			c.stop()
		}
	}
	return nil
}

// Notify hands an event to the named channels and never waits. It answers with
// ErrClosed, with an *UnknownChannelError for each name that is none (the others
// are told), or notify.ErrUnknownEvent, joined.
func (n *Notifier) Notify(e notify.Event, channels ...string) error {
	if !e.Type.Known() {
		return fmt.Errorf("notifying: %w", notify.ErrUnknownEvent)
	}
	e = e.Bounded() // what waits is bounded in bytes by that, and shared with nobody
	id := e.ID()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	var errs []error
	for _, name := range channels {
		c := n.channels[name]
		if c == nil {
			errs = append(errs, &UnknownChannelError{Channel: name})
			continue
		}
		c.add(&job{event: e, id: id, deadline: time.Now().Add(n.retry.Deadline), progress: progress{settled: map[string]bool{}}})
	}
	return errors.Join(errs...)
}

// UndeliveredError says how many events were dropped because time was over.
type UndeliveredError struct{ Events int }

func (e *UndeliveredError) Error() string {
	return fmt.Sprintf("%d notifications were not delivered", e.Events)
}

// Shutdown takes nothing more and delivers what waits, until ctx ends; what is
// left then is dropped, and the error is an *UndeliveredError. All goroutines have
// ended when it returns. A second call waits like the first.
func (n *Notifier) Shutdown(ctx context.Context) error {
	n.mu.Lock()
	n.closed = true
	channels := make([]*channel, 0, len(n.channels))
	for _, c := range n.channels {
		channels = append(channels, c)
	}
	n.mu.Unlock()
	for _, c := range channels {
		c.drain()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.workers.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		for _, c := range channels {
			c.stop()
		}
		<-done
	}
	if left := n.undone.Load(); left > 0 {
		return &UndeliveredError{Events: int(left)}
	}
	return nil
}

// record counts an outcome.
func (n *Notifier) record(t notify.ChannelType, o Outcome) {
	if n.recorder != nil {
		n.recorder.Record(t, o)
	}
}

// trustOf says which certificates are trusted.
func trustOf(roots *x509.CertPool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}

// secret resolves a reference; surrounding white space, which editors leave in
// Secrets, is not part of any.
func (p *poster) secret(ctx context.Context, ref notify.SecretRef) (string, *Failure) {
	value, err := p.secrets(ctx, ref)
	if err != nil {
		return "", &Failure{Step: fmt.Sprintf("reading key %q of Secret %q", ref.Key, ref.Name), Cause: CauseSecret, Retry: true}
	}
	return strings.TrimSpace(value), nil
}

// dispatch makes one attempt on a channel of any kind.
func (n *Notifier) dispatch(ctx context.Context, c notify.Channel, j *job) *Failure {
	switch {
	case c.Slack != nil:
		return n.sendSlack(ctx, c.Slack, j.event)
	case c.Email != nil:
		return n.sendEmail(ctx, c.Email, j.event, &j.progress)
	case c.Webhook != nil:
		return n.sendWebhook(ctx, c.Webhook, j.event)
	case c.CloudEvents != nil:
		return n.sendCloudEvent(ctx, c.CloudEvents, j.event)
	default: // Configure lets none of these in
		return &Failure{Step: "choosing a channel", Cause: CauseMessage}
	}
}
