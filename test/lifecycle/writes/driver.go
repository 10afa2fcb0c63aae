// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Bounds of a stream.
const (
	MaxRate    = 1000
	MaxObjects = 1000
	// callTimeout is far beyond two webhooks' patience of 2 s each.
	callTimeout = 15 * time.Second
)

// Config says what to write, and how fast.
type Config struct {
	// REST reaches the API server as a user who may write Deployments. Its rate
	// limit does not count.
	REST *rest.Config
	// Namespaces exist; the objects are spread over them.
	Namespaces []string
	// Name begins every object's name.
	Name string
	// Rate is in calls per second, from 1 to MaxRate, evenly spaced.
	Rate int
	// Objects is how many live at a time, from 1 to MaxObjects.
	Objects int
}

// ErrRefused says that a stream is out of bounds.
var ErrRefused = errors.New("refused")

func (c *Config) check() error {
	switch {
	case c.Rate < 1 || c.Rate > MaxRate:
		return fmt.Errorf("%w: %d calls/s is not from 1 to %d", ErrRefused, c.Rate, MaxRate)
	case c.Objects < 1 || c.Objects > MaxObjects:
		return fmt.Errorf("%w: %d objects is not from 1 to %d", ErrRefused, c.Objects, MaxObjects)
	case len(c.Namespaces) == 0 || c.Name == "":
		return fmt.Errorf("%w: no namespace or no name", ErrRefused)
	}
	return nil
}

// Driver is a stream that runs.
type Driver struct {
	cfg    Config
	host   string
	client *http.Client
	idle   chan *object
	start  time.Time
	cancel context.CancelFunc
	done   chan struct{} // no call is under way any more

	mu     sync.Mutex
	report *Report
}

// Start begins to write until ctx ends or [Driver.Stop] is called. It fails only
// when it cannot begin; what fails later is counted.
func Start(ctx context.Context, cfg Config) (*Driver, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(cfg.REST)
	if err != nil {
		return nil, fmt.Errorf("making the client of the writes: %w", err)
	}
	host, _, err := rest.DefaultServerUrlFor(cfg.REST)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	d := &Driver{
		cfg: cfg, host: strings.TrimSuffix(host.String(), "/"), client: client,
		idle: make(chan *object, cfg.Objects), done: make(chan struct{}),
		report: &Report{Calls: map[Verb]int{}},
	}
	for slot := range cfg.Objects {
		d.idle <- &object{slot: slot}
	}
	ctx, d.cancel = context.WithCancel(ctx)
	d.start = time.Now()
	go d.drive(ctx)
	return d, nil
}

// drive starts each call when it is due.
func (d *Driver) drive(ctx context.Context) {
	defer close(d.done)
	var wg sync.WaitGroup
	defer wg.Wait()
	interval := time.Second / time.Duration(d.cfg.Rate)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		due := d.start.Add(time.Duration(n) * interval)
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		select {
		case <-ctx.Done():
			return
		case o := <-d.idle:
			wg.Go(func() {
				// What has begun is brought to its end: a call cut off by ourselves
				// would be neither lost nor answered.
				d.one(context.WithoutCancel(ctx), o, due)
				d.idle <- o
			})
		}
	}
}

// one takes an object one step further and counts it.
func (d *Driver) one(ctx context.Context, o *object, due time.Time) {
	sent := time.Now()
	call := d.next(o)
	unstamped, err := d.send(ctx, call)
	took := time.Since(due)
	o.settle(call, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.report.count(call, sent.Sub(due), took, unstamped, err)
}

// Answered is how many calls have ended, well or not, and how many of them
// showed a stamp that is missing or not that of the object.
func (d *Driver) Answered() (calls, unstamped int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.report.Total(), d.report.Unstamped
}

// Stop ends the stream once the calls under way are answered, and says what
// happened. It is called once.
func (d *Driver) Stop() *Report {
	d.cancel()
	<-d.done
	d.report.Elapsed = time.Since(d.start)
	close(d.idle)
	for o := range d.idle {
		if o.alive {
			d.report.Living = append(d.report.Living, o.Stored)
		}
	}
	slices.SortFunc(d.report.Living, Stored.Compare)
	d.client.CloseIdleConnections()
	return d.report
}
