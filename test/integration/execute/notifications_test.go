// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/controller/execute"
	"github.com/plumbline-dev/plumbline/internal/controller/notifier"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/notify/deliver"
	redisserver "github.com/plumbline-dev/plumbline/test/harness/server"
)

// receiversSecret is what the chart lets the processes read, by the tests' values.
const receiversSecret = "receivers"

var hookKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdefghijklmn"))

// receivers are a server for signed webhooks and one for mail.
type receivers struct {
	t     *testing.T
	https *httptest.Server
	mail  *smtp.Server
	port  int
	redis *redisserver.Redis

	mu    sync.Mutex
	away  bool     // for webhooks
	hooks []string // "<id> <type>" of each one, in the order in which they came
	mails []string // their subjects
}

func newReceivers(t *testing.T) *receivers {
	t.Helper()
	r := &receivers{t: t}
	r.https = httptest.NewUnstartedServer(r)
	r.https.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.https.StartTLS()
	t.Cleanup(r.https.Close)
	r.listen()
	directory, err := os.MkdirTemp("", "told") //nolint:usetesting // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	if r.redis, err = redisserver.StartRedis(t.Context(), directory); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.redis.Kill)
	r.secret()
	return r
}

// listen serves mail over TLS.
func (r *receivers) listen() {
	r.t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: r.https.TLS.Certificates, MinVersion: tls.VersionTLS12})
	if err != nil {
		r.t.Fatal(err)
	}
	r.port = listener.Addr().(*net.TCPAddr).Port
	r.mail = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &letter{r}, nil }))
	r.mail.Domain, r.mail.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = r.mail.Serve(listener) // ends when it is closed
	}()
	r.t.Cleanup(func() {
		_ = r.mail.Close()
		<-served
	})
}

// secret holds where the receivers are.
func (r *receivers) secret() {
	r.t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: receiversSecret},
		StringData: map[string]string{
			"url": r.https.URL + "/hook", "key": hookKey,
			"mail": fmt.Sprintf("smtps://127.0.0.1:%d?from=plumbline@example.com", r.port),
		},
	}
	if err := admin.Create(r.t.Context(), s); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { (&world{t: r.t}).removed(s) })
}

// letter is one message on its way.
type letter struct{ *receivers }

func (*letter) Mail(string, *smtp.MailOptions) error { return nil }
func (*letter) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (*letter) Reset()                               {}
func (*letter) Logout() error                        { return nil }

func (l *letter) Data(body io.Reader) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(raw), "Subject: ")
	subject, _, _ := strings.Cut(rest, "\r\n")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mails = append(l.mails, subject)
	return nil
}

// ServeHTTP verifies a webhook as a receiver should.
func (r *receivers) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		http.Error(w, "later", http.StatusServiceUnavailable)
		return
	}
	id := q.Header.Get(notify.HeaderWebhookID)
	seconds, errTime := strconv.ParseInt(q.Header.Get(notify.HeaderWebhookTimestamp), 10, 64)
	keys, errKey := notify.ParseSigningKeys(hookKey)
	if err != nil || errTime != nil || errKey != nil || notify.Sign(keys, id, time.Unix(seconds, 0), body) != q.Header.Get(notify.HeaderWebhookSignature) {
		r.t.Errorf("a webhook is not signed as it should be: %v %v %v", err, errTime, errKey)
	}
	_, kind, _ := strings.Cut(string(body), `"type":"`)
	kind, _, _ = strings.Cut(kind, `"`)
	r.hooks = append(r.hooks, id+" "+kind)
}

func (r *receivers) setAway(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

// got is what came, sorted: two executors may tell in any order.
func (r *receivers) got() (hooks, mails []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.hooks)), slices.Sorted(slices.Values(r.mails))
}

// channels of a policy that lead here.
func (r *receivers) channels(s *v1alpha1.RemediationPolicySpec) {
	at := func(key string) v1alpha1.SecretKeyReference {
		return v1alpha1.SecretKeyReference{Name: receiversSecret, Key: key}
	}
	key := at("key")
	s.Notifications.OnStarted = v1alpha1.Enabled
	s.Notifications.Channels = []v1alpha1.NotificationChannel{
		{Name: "hook", Type: v1alpha1.ChannelWebhook, Destination: at("url"), SigningKey: &key},
		{Name: "mail", Type: v1alpha1.ChannelEmail, Destination: at("mail"), Recipients: []string{"ops@example.com"}},
	}
}

// tells lets an executor reach the receivers, and counts what it tells.
func (r *receivers) tells(registry *prometheus.Registry) option {
	r.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(r.https.Certificate())
	client := r.redis.Client()
	r.t.Cleanup(func() { _ = client.Close() })
	return func(s *execute.Setup) {
		s.Registry = registry
		s.Notifications = notifier.Settings{
			Egress: deliver.Egress{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
			Roots:  roots, Retry: notify.Retry{BackoffBase: 50 * time.Millisecond, BackoffMax: 100 * time.Millisecond},
			Seen: notifier.NewRedisSeen(client, "plumbline"),
		}
	}
}

// outcomes of notifications with all channels together, such as "sent".
func outcomes(t testing.TB, registry *prometheus.Registry, outcome string) (n int) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if family.GetName() == "plumbline_notifications_total" && label.GetName() == "outcome" && label.GetValue() == outcome {
					n += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return n
}

// untilOutcomes waits for so many.
func (w *world) untilOutcomes(registry *prometheus.Registry, outcome string, want int) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("%d notifications are %s", want, outcome), func() error {
		if n := outcomes(w.t, registry, outcome); n != want {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

// told checks what arrived of a plan, and that nothing else did.
func (r *receivers) told(plan *v1alpha1.RemediationPlan, kinds map[notify.EventType]string) {
	r.t.Helper()
	var want []string
	for kind, text := range kinds {
		e := notify.Event{Type: kind, Plan: notify.PlanRef{UID: string(plan.UID)}}
		want = append(want, e.ID()+" "+text)
	}
	slices.Sort(want)
	hooks, mails := r.got()
	if diff := cmp.Diff(want, hooks); diff != "" {
		r.t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if len(mails) != len(kinds) || slices.ContainsFunc(mails, func(s string) bool { return !strings.Contains(s, plan.Name) }) {
		r.t.Errorf("mails: %q", mails)
	}
}

func TestPeopleAreToldOnceHowAPlanGoes(t *testing.T) {
	startAssessor(t)
	w, r := newWorld(t), newReceivers(t)
	w.rollouts()
	w.UnderGuard()
	w.drifted("web")
	records, registry := newEvidence(t), prometheus.NewRegistry()
	executor := startExecutor(t, records, r.tells(registry))
	plan := w.ended(w.plan(w.policy(r.channels), "web"))
	w.untilOutcomes(registry, "sent", 4)
	executor.halt(t)

	// The next one tells the end again, to whoever did not hear it: nobody.
	registry = prometheus.NewRegistry()
	startExecutor(t, records, r.tells(registry))
	w.untilOutcomes(registry, "deduplicated", 2)
	r.told(plan, map[notify.EventType]string{notify.PlanStarted: "plan.started", notify.PlanCompleted: "plan.completed"})
}

func TestAnEndThatWasNotHeardIsToldByTheNextExecutor(t *testing.T) {
	startAssessor(t)
	w, r := newWorld(t), newReceivers(t)
	w.rollouts()
	w.UnderGuard()
	w.drifted("web")
	r.setAway(true)
	records, registry := newEvidence(t), prometheus.NewRegistry()
	executor := startExecutor(t, records, r.tells(registry))
	onlyTheEnd := func(s *v1alpha1.RemediationPolicySpec) {
		r.channels(s)
		s.Notifications.OnStarted = v1alpha1.Disabled
	}
	plan := w.ended(w.plan(w.policy(onlyTheEnd), "web"))
	w.untilOutcomes(registry, "sent", 1) // the mail
	executor.halt(t)
	if n := outcomes(t, registry, "dropped"); n != 1 {
		t.Errorf("%d notifications were dropped at the end of the process, want the webhook", n)
	}

	r.setAway(false)
	registry = prometheus.NewRegistry()
	startExecutor(t, records, r.tells(registry))
	w.untilOutcomes(registry, "sent", 1)         // the webhook
	w.untilOutcomes(registry, "deduplicated", 1) // the mail
	r.told(plan, map[notify.EventType]string{notify.PlanCompleted: "plan.completed"})
}
