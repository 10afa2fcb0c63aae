// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Bounds of a run.
const (
	MaxRate     = 5000
	MaxDuration = 10 * time.Minute
	// maxOutstanding bounds the requests that wait for an answer; one that comes
	// due beyond counts as an error, since a real writer would have timed out.
	maxOutstanding = 2048
	// idleConnections is how many idle connections client-go keeps to a host, so
	// that handshakes come as often as with an API server.
	idleConnections = 25
)

// Config says what to drive, and how.
type Config struct {
	// Target is https://host:port, where host is a loopback address.
	Target string
	// Roots verify the target's certificate.
	Roots   *x509.CertPool
	Records []Record
	// Rate is in requests per second, from 1 to MaxRate; evenly spaced.
	Rate int
	// Duration is up to MaxDuration.
	Duration time.Duration
	// Warmup requests are sent first at the same rate, and not counted.
	Warmup time.Duration
	// Timeout is the API server's patience; its webhooks' timeoutSeconds.
	Timeout time.Duration
	// Names is how many objects the requests are about, in turn.
	Names int
	// Sample, when not nil, is called every 100 ms, for example to look at memory.
	Sample func()
}

// Result is what a run measured.
type Result struct {
	Rate     int
	Sent     int
	Errors   map[string]int
	Shed     int
	Achieved float64 // answers per second
	Latency  Histogram
	// Late is how late requests were sent, which is the driver's own fault and
	// part of Latency: when its quantiles come near, the driver was the bottleneck.
	Late Histogram
}

// ErrRefused says that a run is out of bounds.
var ErrRefused = errors.New("refused")

func (c *Config) check() (*url.URL, error) {
	target, err := url.Parse(c.Target)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if ip := net.ParseIP(target.Hostname()); target.Scheme != "https" || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%w: target %q is not https to a loopback address", ErrRefused, c.Target)
	}
	switch {
	case c.Rate < 1 || c.Rate > MaxRate:
		return nil, fmt.Errorf("%w: %d requests/s is not from 1 to %d", ErrRefused, c.Rate, MaxRate)
	case c.Duration <= 0 || c.Duration+c.Warmup > MaxDuration:
		return nil, fmt.Errorf("%w: %s is not up to %s", ErrRefused, c.Duration+c.Warmup, MaxDuration)
	case c.Names < 1 || len(c.Records) == 0 || c.Timeout <= 0:
		return nil, fmt.Errorf("%w: no names, no records or no time-out", ErrRefused)
	}
	return target, nil
}

// runner is the state of one run.
type runner struct {
	cfg       Config
	target    *url.URL
	client    *http.Client
	templates []template

	mu     sync.Mutex
	result *Result
}

// Run drives the target and returns when every request was answered or given
// up. It fails only when it cannot begin; what fails later is counted.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	target, err := cfg.check()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12},
		MaxIdleConns:        idleConnections,
		MaxIdleConnsPerHost: idleConnections,
		DisableCompression:  true,
	}
	defer transport.CloseIdleConnections()
	r := &runner{
		cfg: cfg, target: target,
		client: &http.Client{Transport: transport, Timeout: cfg.Timeout},
		result: &Result{Rate: cfg.Rate, Errors: map[string]int{}},
	}
	for _, record := range cfg.Records {
		t, err := newTemplate(record)
		if err != nil {
			return nil, err
		}
		r.templates = append(r.templates, t)
	}
	stop := r.sample(ctx)
	defer stop()
	r.drive(ctx)
	return r.result, nil
}

// sample calls cfg.Sample until the returned function is called.
func (r *runner) sample(ctx context.Context) (stop func()) {
	if r.cfg.Sample == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			r.cfg.Sample()
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// drive starts each request when it is due.
func (r *runner) drive(ctx context.Context) {
	interval := time.Second / time.Duration(r.cfg.Rate)
	total := int((r.cfg.Warmup + r.cfg.Duration) / interval)
	warm := int(r.cfg.Warmup / interval)
	places := make(chan struct{}, maxOutstanding)
	var wg sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	start := time.Now()
	for n := 0; n < total && ctx.Err() == nil; n++ {
		due := start.Add(time.Duration(n) * interval)
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				continue
			case <-timer.C:
			}
		}
		select {
		case places <- struct{}{}:
			wg.Go(func() {
				defer func() { <-places }()
				r.one(ctx, n, due, n >= warm)
			})
		default:
			r.count(n >= warm, due, due, due, "no answer to the ones before", false)
		}
	}
	wg.Wait()
	r.result.Achieved = float64(r.result.Latency.Count()) / max(r.cfg.Duration, time.Since(start)-r.cfg.Warmup).Seconds()
}

// one sends a request and counts it.
func (r *runner) one(ctx context.Context, n int, due time.Time, counts bool) {
	t := &r.templates[n%len(r.templates)]
	body, uid := t.body(n, r.cfg.Names)
	sent := time.Now()
	shed, err := r.send(ctx, t.path, body, uid)
	failure := ""
	if err != nil {
		failure = kindOf(err)
	}
	r.count(counts, due, sent, time.Now(), failure, shed)
}

func (r *runner) count(counts bool, due, sent, done time.Time, failure string, shed bool) {
	if !counts {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Sent++
	r.result.Late.Add(sent.Sub(due))
	if failure != "" {
		r.result.Errors[failure]++
		return
	}
	if shed {
		r.result.Shed++
	}
	r.result.Latency.Add(done.Sub(due))
}

var (
	errStatus = errors.New("status")
	errAnswer = errors.New("no answer that allows")
	shedMark  = []byte(`"reason":"shed"`)
)

// send posts a review as the API server does. An answer has to allow, and to
// name the review.
func (r *runner) send(ctx context.Context, path string, body []byte, uid string) (shed bool, err error) {
	at := *r.target
	at.Path, at.RawQuery = path, "timeout="+r.cfg.Timeout.String()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	response, err := r.client.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return false, err
	case response.StatusCode != http.StatusOK:
		return false, fmt.Errorf("%w %d", errStatus, response.StatusCode)
	case !bytes.Contains(answer, []byte(`"uid":"`+uid+`","allowed":true`)):
		return false, errAnswer
	}
	return bytes.Contains(answer, shedMark), nil
}

// kindOf groups errors, whose texts hold ports and times.
func kindOf(err error) string {
	var netErr net.Error
	switch {
	case errors.Is(err, errStatus), errors.Is(err, errAnswer):
		return err.Error()
	case errors.As(err, &netErr) && netErr.Timeout():
		return "time-out"
	default:
		return "connection"
	}
}
