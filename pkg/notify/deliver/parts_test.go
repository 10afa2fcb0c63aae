// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should take milliseconds.
const patience = 30 * time.Second

// loopback may be reached by tests, whose servers are there.
var loopback = Egress{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// counted is a Recorder that can be read.
type counted struct {
	mu      sync.Mutex
	n       map[Outcome]int
	retries int
	doubts  map[Doubt]int
}

func (c *counted) Doubt(_ notify.ChannelType, d Doubt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doubts == nil {
		c.doubts = map[Doubt]int{}
	}
	c.doubts[d]++
}

func (c *counted) Retry(notify.ChannelType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retries++
}

func (c *counted) Record(_ notify.ChannelType, o Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[Outcome]int{}
	}
	c.n[o]++
}

// outcomes so far.
func (c *counted) outcomes() map[Outcome]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[Outcome]int{}
	maps.Copy(out, c.n)
	return out
}

func (c *counted) total() (sum int) {
	for _, n := range c.outcomes() {
		sum += n
	}
	return sum
}

// vault is Secrets from a map.
type vault map[string]string

func (v vault) resolve(_ context.Context, ref notify.SecretRef) (string, error) {
	value, ok := v[ref.Key]
	if !ok {
		return "", errors.New("no such key; the value was " + canary)
	}
	return value, nil
}

// canary is in every secret of a test, and must come out nowhere.
const canary = "CANARY7d1f"

func ref(key string) notify.SecretRef { return notify.SecretRef{Name: "notifications", Key: key} }

// logged is a log that can be searched.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// quick is patient enough for a busy machine and does not make tests wait.
var quick = notify.Retry{AttemptTimeout: 10 * time.Second, Deadline: patience, BackoffBase: 2 * time.Millisecond, BackoffMax: 10 * time.Millisecond}

// start makes a notifier that ends with the test.
func start(t *testing.T, o Options, channels ...notify.Channel) *Notifier {
	t.Helper()
	n := New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.Shutdown(ctx); err != nil {
			t.Errorf("shutting down: %v", err)
		}
	})
	if err := n.Configure(channels); err != nil {
		t.Fatal(err)
	}
	return n
}

// plan is an event of a plan of its own.
func plan(uid string, kind notify.EventType) notify.Event {
	return notify.Event{
		Type: kind, Plan: notify.PlanRef{Namespace: "shop", Name: "plan-" + uid, UID: uid}, Severity: v1alpha1.SeverityHigh,
		Counts: notify.Counts{Total: 1}, Targets: []notify.Target{{Kind: "Deployment", Namespace: "shop", Name: "web"}},
		Time: time.Date(2026, 3, 2, 3, 4, 5, 0, time.UTC),
	}
}

// tell notifies, and waits until so many outcomes are there.
func tell(t *testing.T, n *Notifier, c *counted, e notify.Event, channels ...string) map[Outcome]int {
	t.Helper()
	want := c.total() + len(channels)
	if err := n.Notify(e, channels...); err != nil {
		t.Fatal(err)
	}
	poll.True(t, patience, "the event has its outcomes", func() bool { return c.total() >= want })
	return c.outcomes()
}

// trusting gives a pool of one certificate.
func trusting(c *x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c)
	return pool
}
