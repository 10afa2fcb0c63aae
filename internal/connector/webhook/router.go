// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// The bounds of a request.
const (
	// Timeout bounds one request.
	Timeout = 10 * time.Second
	// fresh is how long an answer counts while the next one is awaited.
	fresh = 2 * Timeout
)

// Sender makes signed requests.
type Sender interface {
	Send(ctx context.Context, r deliver.Request, most int) (deliver.Reply, *deliver.Failure)
}

// Config of a router of one release.
type Config struct {
	// Context is the time of leading, whose end ends requests.
	Context context.Context //nolint:containedctx // requests outlive the look that begins them
	// Name of the TrafficRouter.
	Name string
	// Release has the uid that ids of requests begin with.
	Release Release
	// URL of the receiver.
	URL string
	// Key signs requests.
	Key notify.SecretRef
	// Capabilities that the receiver has.
	Capabilities traffic.Capabilities
	// Settle is how long after Accepted a split counts.
	Settle time.Duration
	Sender Sender
	Now    func() time.Time
	// Report is told the end of each request: its result, and "" or the reason why it has no answer. It may be nil.
	Report func(result Result, failed string, answer *Answer)
}

// Router is a traffic.Router whose program is a receiver. It is safe for concurrent use.
type Router struct {
	config Config

	mu sync.Mutex
	// body is nil before the first split and after a removal.
	body []byte
	want expected
	last memory
	// asked is the sequence that the last exchange was about.
	asked uint64
	// underWay is closed at the end of the exchange; nil if none is under way.
	underWay chan struct{}
}

var _ traffic.Router = (*Router)(nil)

// New returns a router that has applied no split.
func New(config Config) *Router { return &Router{config: config} }

// Capabilities implements traffic.Router.
func (r *Router) Capabilities() traffic.Capabilities { return r.config.Capabilities }

// Validate implements traffic.Router.
func (r *Router) Validate(split traffic.Split) error {
	if err := split.Validate(); err != nil {
		return err //nolint:wrapcheck // the reasons are the answer
	}
	return r.config.Capabilities.Check(split) //nolint:wrapcheck // as above
}

// Apply implements traffic.Router. The receiver is told beside the caller.
func (r *Router) Apply(_ context.Context, split traffic.Split) error {
	if err := r.Validate(split); err != nil {
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, err)
	}
	body, err := encodeSplit(r.config.Release, split)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if split.Sequence == 0 || split.Sequence < r.want.sequence {
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, &traffic.LaterError{Sequence: r.want.sequence})
	}
	if split.Sequence != r.want.sequence {
		r.body, r.last = body, memory{}
		r.want = expected{r.config.Name, split.Sequence, slices.Clone(split.Shares), r.config.Now(), r.config.Settle}
	}
	if !isTaken(judge(r.want, r.last)) {
		r.begin() //nolint:contextcheck // the exchange outlives the look
	}
	return nil
}

// Remove implements traffic.Router. It waits for the receiver.
func (r *Router) Remove(ctx context.Context) error {
	if err := r.wait(ctx); err != nil {
		return fmt.Errorf("removing the split: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body == nil {
		return nil
	}
	body, err := encodeRemoval(r.config.Release, r.want.sequence)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	answer, failed := r.exchange(ctx, deliver.Request{
		Method: http.MethodPost, URL: r.config.URL, Key: r.config.Key, Body: body, ID: fmt.Sprintf("%s-%d-remove", r.config.Release.UID, r.want.sequence),
	})
	switch {
	case failed != "":
		return fmt.Errorf("removing the split: router %s: %s", r.config.Name, failed)
	case answer.Sequence != 0:
		return fmt.Errorf("removing the split: router %s has sequence %d still", r.config.Name, answer.Sequence)
	}
	r.body, r.want, r.last, r.asked = nil, expected{}, memory{}, 0
	return nil
}

// errNothingApplied says that there is no split to observe.
var errNothingApplied = errors.New("no split was applied yet")

// Observe implements traffic.Router. It waits for an answer as long as ctx permits.
func (r *Router) Observe(ctx context.Context) (traffic.Observation, error) {
	for range 2 { // the exchange that is under way may be about the split of before
		r.mu.Lock()
		if r.body == nil {
			r.mu.Unlock()
			return traffic.Observation{}, fmt.Errorf("observing router %s: %w", r.config.Name, errNothingApplied)
		}
		r.begin() //nolint:contextcheck // the exchange outlives the look
		r.mu.Unlock()
		if r.wait(ctx) != nil {
			break
		}
		r.mu.Lock()
		current := r.asked == r.want.sequence
		r.mu.Unlock()
		if current {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.last
	if m.answer != nil && r.config.Now().Sub(m.at) > fresh {
		m = memory{failed: fmt.Sprintf("the receiver has not answered for %s", fresh)}
	}
	return judge(r.want, m), nil
}

// Measure implements traffic.Router: a receiver tells no cells.
func (r *Router) Measure(_ context.Context, since traffic.Cursor) (traffic.Measurement, error) {
	return traffic.Measurement{Next: since}, nil
}

// wait until no exchange is under way.
func (r *Router) wait(ctx context.Context) error {
	r.mu.Lock()
	underWay := r.underWay
	r.mu.Unlock()
	if underWay == nil {
		return nil
	}
	select {
	case <-underWay:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for router %s: %w", r.config.Name, ctx.Err())
	}
}

// begin an exchange unless one is under way: a POST of a split that the receiver has not taken, and a question
// otherwise. The caller holds the lock.
func (r *Router) begin() {
	if r.underWay != nil {
		return
	}
	id := fmt.Sprintf("%s-%d", r.config.Release.UID, r.want.sequence)
	request := deliver.Request{Method: http.MethodPost, URL: r.config.URL, Key: r.config.Key, ID: id, Body: r.body}
	if isTaken(judge(r.want, r.last)) {
		request = deliver.Request{Method: http.MethodGet, URL: observeURL(r.config.URL, r.config.Release), Key: r.config.Key, ID: id + "-observe"}
	}
	r.underWay = make(chan struct{})
	go r.carryOn(request, r.want.sequence, r.underWay)
}

// carryOn ends an exchange with what is remembered of it.
func (r *Router) carryOn(request deliver.Request, sequence uint64, underWay chan struct{}) {
	ctx, cancel := context.WithTimeout(r.config.Context, Timeout)
	defer cancel()
	answer, failed := r.exchange(ctx, request)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(underWay)
	r.underWay = nil
	r.asked = sequence
	if sequence != r.want.sequence {
		return
	}
	next := memory{failed: failed, at: r.config.Now()}
	if failed == "" {
		next.answer, next.accepted = &answer, r.last.accepted
	}
	switch {
	case !isTaken(judge(r.want, next)):
		next.accepted = time.Time{}
	case next.accepted.IsZero():
		next.accepted = next.at
	}
	r.last = next
	if request.Method == http.MethodGet && failed == "" && !isTaken(judge(r.want, next)) {
		r.begin() // the receiver was restarted or edited: the split is told again
	}
}
