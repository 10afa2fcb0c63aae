// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	own      = "plumbline-system"
	patience = 20 * time.Second
)

var signingKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdefghijklmn"))

// receiver is an HTTPS server that keeps what it was told.
type receiver struct {
	*httptest.Server

	mu  sync.Mutex
	got []string // ids
	bad []string // what is wrong with a request
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP verifies the signature as a receiver of Standard Webhooks does.
func (r *receiver) ServeHTTP(_ http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	id := q.Header.Get(notify.HeaderWebhookID)
	r.got = append(r.got, id)
	seconds, errTime := strconv.ParseInt(q.Header.Get(notify.HeaderWebhookTimestamp), 10, 64)
	keys, errKeys := notify.ParseSigningKeys(signingKey)
	if err != nil || errTime != nil || errKeys != nil || notify.Sign(keys, id, time.Unix(seconds, 0), body) != q.Header.Get(notify.HeaderWebhookSignature) {
		r.bad = append(r.bad, "the signature of "+id)
	}
	if !json.Valid(body) {
		r.bad = append(r.bad, "the body of "+id)
	}
}

// ids are what arrived, in its order.
func (r *receiver) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.got...)
}

func (r *receiver) until(t *testing.T, want ...string) {
	t.Helper()
	poll.True(t, patience, "all of it arrived", func() bool { return len(r.ids()) >= len(want) })
	if diff := cmp.Diff(want, r.ids()); diff != "" || len(r.bad) > 0 {
		t.Errorf("told %v (-want +got):\n%s", r.bad, diff)
	}
}

// world is a notifier with a cluster that is not one.
type world struct {
	*Notifier
	t      *testing.T
	client client.Client

	mu    sync.Mutex
	lines []string
}

func newWorld(t *testing.T, change func(*Config), objects ...client.Object) *world {
	t.Helper()
	types := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: fakeclient.NewBuilder(types).WithObjects(objects...).Build()}
	config := Config{
		Namespace: own, Live: w.client, Cached: w.client, Registry: prometheus.NewRegistry(), Log: funcr.New(w.log, funcr.Options{}),
		Settings: Settings{
			Egress: deliver.Egress{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
			Retry:  notify.Retry{BackoffBase: time.Millisecond, BackoffMax: 2 * time.Millisecond},
		},
	}
	if change != nil {
		change(&config)
	}
	n, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.Notifier = n
	t.Cleanup(func() { n.Close(context.WithoutCancel(t.Context())) })
	return w
}

func (w *world) log(_, args string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, args)
}

func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

func trusting(r *receiver) func(*Config) {
	roots := x509.NewCertPool()
	roots.AddCert(r.Certificate())
	return func(c *Config) { c.Roots = roots }
}

func secret(url string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "hook"},
		Data:       map[string][]byte{"url": []byte(url + "\n"), "key": []byte(signingKey)},
	}
}

func hook(name string) v1alpha1.NotificationChannel {
	return v1alpha1.NotificationChannel{
		Name: name, Type: v1alpha1.ChannelWebhook,
		Destination: v1alpha1.SecretKeyReference{Name: "hook", Key: "url"}, SigningKey: &v1alpha1.SecretKeyReference{Name: "hook", Key: "key"},
	}
}

func policyWith(channels ...v1alpha1.NotificationChannel) *v1alpha1.RemediationPolicy {
	return &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "p"},
		Spec: v1alpha1.RemediationPolicySpec{Notifications: v1alpha1.RemediationNotifications{
			OnPlanCreated: v1alpha1.PlanCreatedDisabled, OnStarted: v1alpha1.Disabled, OnCompleted: v1alpha1.Enabled,
			OnFailed: v1alpha1.Enabled, OnEscalated: v1alpha1.Enabled, Channels: channels,
		}},
	}
}

func event(kind notify.EventType, uid string) notify.Event {
	return notify.Event{
		Type: kind, Plan: notify.PlanRef{Namespace: "shop", Name: "plan", UID: uid}, Policy: "nightly", Environment: "production",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func TestAPolicyIsTold_WhatItAsksFor(t *testing.T) {
	r := receive(t)
	w := newWorld(t, trusting(r), secret(r.URL), policyWith(hook("hook")))
	var want []string
	for _, kind := range []notify.EventType{notify.PlanCreated, notify.PlanStarted, notify.PlanCompleted, notify.PlanFailed, notify.PlanEscalated} {
		e := event(kind, "1")
		w.Notify(e)
		w.Notify(e) // the same happening, told twice
		if kind != notify.PlanCreated && kind != notify.PlanStarted {
			want = append(want, e.ID())
		}
	}
	r.until(t, want...)
	w.Close(t.Context())
	counts := map[string]float64{"sent": 3, "deduplicated": 3, "failed": 0, "dropped": 0}
	for outcome, n := range counts {
		if got := testutil.ToFloat64(w.metrics.told.WithLabelValues("webhook", outcome)); got != n {
			t.Errorf("%v are %s, want %v", got, outcome, n)
		}
	}
	if said := w.said(); said != "" {
		t.Errorf("the log says:\n%s", said)
	}
}

// A channel that cannot be told must not stand for those that can: an urgent event would
// then reach no person.
func TestAnInvalidChannelKeepsNoUrgentEventFromTheOthers(t *testing.T) {
	r := receive(t)
	broken, pager := hook("broken"), hook("pager")
	broken.Destination.Name, broken.MinimumSeverity = "No_Name", v1alpha1.SeverityInfo
	pager.MinimumSeverity = v1alpha1.SeverityCritical
	w := newWorld(t, trusting(r), secret(r.URL), policyWith(broken, pager))
	calm, urgent := event(notify.PlanCompleted, "1"), event(notify.PlanFailed, "1")
	calm.Severity, urgent.Severity = v1alpha1.SeverityLow, v1alpha1.SeverityLow
	w.Notify(calm)
	w.Notify(urgent)
	r.until(t, urgent.ID())
}

func TestAChannelThatIsInvalidSilencesNoOther(t *testing.T) {
	r := receive(t)
	broken := hook("broken")
	broken.Destination.Name = "No_Name"
	policy := policyWith(broken, hook("hook"), v1alpha1.NotificationChannel{Name: "pigeon", Type: "Pigeon"})
	w := newWorld(t, trusting(r), secret(r.URL), policy)
	e := event(notify.PlanFailed, "1")
	w.Notify(e)
	r.until(t, e.ID())
	for state, n := range map[string]float64{"active": 1, "invalid": 2} {
		if got := testutil.ToFloat64(w.metrics.channels.WithLabelValues(state)); got != n {
			t.Errorf("%v channels are %s, want %v", got, state, n)
		}
	}
	for _, name := range []string{`"channel"="nightly/broken"`, `"channel"="nightly/pigeon"`} {
		if strings.Count(w.said(), name) != 1 {
			t.Errorf("%s is not told once:\n%s", name, w.said())
		}
	}
}

func TestASecretIsReadAtEachAttempt(t *testing.T) {
	r := receive(t)
	spy := &counting{}
	w := newWorld(t, func(c *Config) {
		trusting(r)(c)
		spy.Reader, c.Live = c.Live, spy
	}, policyWith(hook("hook")))
	e := event(notify.PlanFailed, "1")
	w.Notify(e)
	poll.True(t, patience, "the Secret was looked for, in vain", func() bool { return spy.reads.Load() > 0 })
	if err := w.client.Create(t.Context(), secret(r.URL)); err != nil {
		t.Fatal(err)
	}
	r.until(t, e.ID())
}

// counting counts reads.
type counting struct {
	client.Reader
	reads atomic.Int32
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := c.Reader.Get(ctx, key, o, options...)
	c.reads.Add(1)
	return err
}

func TestWhatNobodyCanBeToldIsInTheLog(t *testing.T) {
	w := newWorld(t, nil)
	w.Notify(event(notify.PlanFailed, "1"))
	if !strings.Contains(w.said(), `"policy"="nightly"`) {
		t.Errorf("the log says: %q", w.said())
	}
}

func TestChannelsFollowThePolicies(t *testing.T) {
	policy := policyWith(hook("a"), hook("b"))
	w := newWorld(t, nil, policy)
	look := func(want ...string) {
		t.Helper()
		if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: policy.Name}}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range w.bySource[policy.Name] {
			got = append(got, c.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("channels (-want +got):\n%s", diff)
		}
		if n := testutil.ToFloat64(w.metrics.channels.WithLabelValues("active")); int(n) != len(want) {
			t.Errorf("%v channels are active, want %d", n, len(want))
		}
	}
	look("nightly/a", "nightly/b")
	policy.Spec.Notifications.Channels = policy.Spec.Notifications.Channels[1:]
	if err := w.client.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	look("nightly/b")
	if err := w.client.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	look()
}

func TestMoreChannelsThanThereIsRoomForAreInvalid(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 65 {
		var channels []v1alpha1.NotificationChannel
		for j := range 8 {
			channels = append(channels, hook("c"+strconv.Itoa(j)))
		}
		policy := policyWith(channels...)
		policy.Name = "p" + strconv.Itoa(i)
		w.learn(policy.Name, Channels(policy))
	}
	active, invalid := testutil.ToFloat64(w.metrics.channels.WithLabelValues("active")), testutil.ToFloat64(w.metrics.channels.WithLabelValues("invalid"))
	if active != maxChannels || invalid != 8 {
		t.Errorf("%v active, %v invalid", active, invalid)
	}
}
