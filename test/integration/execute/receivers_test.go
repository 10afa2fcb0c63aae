// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
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

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/internal/notifier"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	redisserver "github.com/plumbline-dev/plumbline/test/harness/server"
)

// receiversSecret is what the chart lets the processes read, by the tests' values.
const receiversSecret = "receivers"

var hookKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdefghijklmn"))

// Where the receivers of web requests listen.
const (
	hookPath   = "/hook"
	chatPath   = "/chat"
	eventsPath = "/events"
)

// receivers are a server for signed webhooks, chat messages and CloudEvents, and one
// for mail.
type receivers struct {
	t     *testing.T
	https *httptest.Server
	mail  *smtp.Server
	port  int
	redis *redisserver.Redis

	mu   sync.Mutex
	away bool          // for web requests
	mute chan struct{} // until it is closed nobody gets an answer; nil: everybody does
	// held counts who waits for an answer.
	held int
	// hooks and events are "<id> <type>" of each one, in the order in which they came;
	// of chats and mails it is what stands first.
	hooks, events, chats, mails []string
}

func newReceivers(t *testing.T) *receivers {
	t.Helper()
	r := &receivers{t: t}
	r.https = httptest.NewUnstartedServer(r)
	r.https.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.https.StartTLS()
	t.Cleanup(r.https.Close)
	r.listen()
	r.redis = startRedis(t)
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
			"url": r.https.URL + hookPath, "key": hookKey, "chat": r.https.URL + chatPath, "events": r.https.URL + eventsPath,
			"mail": fmt.Sprintf("smtps://127.0.0.1:%d?from=plumbline@example.com", r.port),
		},
	}
	if err := admin.Create(r.t.Context(), s); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(r.t.Context()), s); err != nil {
			r.t.Errorf("removing the receivers' addresses: %v", err)
		}
	})
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
	l.hold()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mails = append(l.mails, subject)
	return nil
}

// ServeHTTP takes what comes over the web, as far as the test lets it.
func (r *receivers) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // who sent it has gone
	}
	r.hold()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		http.Error(w, "later", http.StatusServiceUnavailable)
		return
	}
	switch q.URL.Path {
	case hookPath:
		r.takeHook(q.Header, body)
	case chatPath:
		r.takeChat(body)
	case eventsPath:
		r.takeEvent(q.Header, body)
	default:
		r.t.Errorf("something was sent to %s", q.URL.Path)
	}
}

// takeHook verifies a webhook as a receiver should.
func (r *receivers) takeHook(header http.Header, body []byte) {
	id := header.Get(notify.HeaderWebhookID)
	seconds, errTime := strconv.ParseInt(header.Get(notify.HeaderWebhookTimestamp), 10, 64)
	keys, errKey := notify.ParseSigningKeys(hookKey)
	if errTime != nil || errKey != nil || notify.Sign(keys, id, time.Unix(seconds, 0), body) != header.Get(notify.HeaderWebhookSignature) {
		r.t.Errorf("a webhook is not signed as it should be: %v %v", errTime, errKey)
	}
	var message struct{ Type string }
	if err := json.Unmarshal(body, &message); err != nil {
		r.t.Errorf("a webhook: %v", err)
	}
	r.hooks = append(r.hooks, id+" "+message.Type)
}

func (r *receivers) takeChat(body []byte) {
	var message struct{ Channel, Text string }
	if err := json.Unmarshal(body, &message); err != nil || message.Channel != "#ops-alerts" {
		r.t.Errorf("a message to %q: %v", message.Channel, err)
	}
	first, _, _ := strings.Cut(message.Text, "\n")
	r.chats = append(r.chats, first)
}

func (r *receivers) takeEvent(header http.Header, body []byte) {
	var event struct{ SpecVersion, ID, Type string }
	if err := json.Unmarshal(body, &event); err != nil || event.SpecVersion != "1.0" || !strings.HasPrefix(header.Get("Content-Type"), "application/cloudevents+json") {
		r.t.Errorf("an event of %q, version %q: %v", header.Get("Content-Type"), event.SpecVersion, err)
	}
	r.events = append(r.events, event.ID+" "+strings.TrimPrefix(event.Type, "dev.plumbline.remediation."))
}

// hold keeps whoever sent something waiting while the receivers are mute.
func (r *receivers) hold() {
	r.mu.Lock()
	mute := r.mute
	if mute != nil {
		r.held++
	}
	r.mu.Unlock()
	if mute != nil {
		<-mute
		r.mu.Lock()
		r.held--
		r.mu.Unlock()
	}
}

// setMute has nobody get an answer until the function that it returns is called.
func (r *receivers) setMute() (speak func()) {
	mute := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mute = mute
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.mute = nil
		close(mute)
	})
}

// waiting is how many wait for an answer.
func (r *receivers) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

func (r *receivers) setAway(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

// channels of a policy that lead here: a webhook and mail.
func (r *receivers) channels(s *v1alpha1.RemediationPolicySpec) {
	key := at("key")
	s.Notifications.OnStarted = v1alpha1.Enabled
	s.Notifications.Channels = []v1alpha1.NotificationChannel{
		{Name: "hook", Type: v1alpha1.ChannelWebhook, Destination: at("url"), SigningKey: &key},
		{Name: "mail", Type: v1alpha1.ChannelEmail, Destination: at("mail"), Recipients: []string{"ops@example.com"}},
	}
}

// allChannels are one of each type, told of everything.
func (r *receivers) allChannels(s *v1alpha1.RemediationPolicySpec) {
	r.channels(s)
	s.Notifications.OnPlanCreated = v1alpha1.PlanCreatedEnabled
	s.Notifications.Channels = append(s.Notifications.Channels,
		v1alpha1.NotificationChannel{Name: "chat", Type: v1alpha1.ChannelSlack, Destination: at("chat"), Channel: "#ops-alerts"},
		v1alpha1.NotificationChannel{Name: "events", Type: v1alpha1.ChannelCloudEvents, Destination: at("events")},
	)
}

func at(key string) v1alpha1.SecretKeyReference {
	return v1alpha1.SecretKeyReference{Name: receiversSecret, Key: key}
}

// settings let a process reach the receivers.
func (r *receivers) settings() notifier.Settings {
	r.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(r.https.Certificate())
	client := r.redis.Client()
	r.t.Cleanup(func() { _ = client.Close() })
	return notifier.Settings{
		Egress: deliver.Egress{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Roots:  roots, Retry: notify.Retry{BackoffBase: 50 * time.Millisecond, BackoffMax: 100 * time.Millisecond},
		Seen: notifier.NewRedisSeen(client, "plumbline", []byte("users of Redis do not have this")),
	}
}

// tells lets an executor reach the receivers, and counts what it tells.
func (r *receivers) tells(registry *prometheus.Registry) option {
	settings := r.settings()
	return func(s *executor.Setup) { s.Registry, s.Notifications = registry, settings }
}

// assessorTells is the same for an assessor, which has no key that authenticates what
// Redis says.
func (r *receivers) assessorTells(registry *prometheus.Registry) func(*assessor.Setup) {
	settings := r.settings()
	settings.Seen = nil
	return func(s *assessor.Setup) { s.Registry, s.Notifications = registry, settings }
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

// told checks what arrived of a plan by webhook and mail, and that nothing else did.
func (r *receivers) told(plan *v1alpha1.RemediationPlan, kinds map[notify.EventType]string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrived("webhooks", r.hooks, happened(plan, kinds))
	r.named("mails", r.mails, plan.Name, len(kinds))
}

// toldByAll checks the same of all channels.
func (r *receivers) toldByAll(plan *v1alpha1.RemediationPlan, kinds map[notify.EventType]string) {
	r.t.Helper()
	r.told(plan, kinds)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrived("CloudEvents", r.events, happened(plan, kinds))
	r.named("chats", r.chats, plan.Name, len(kinds))
}

// happened is "<id> <type>" of each of these events of a plan.
func happened(plan *v1alpha1.RemediationPlan, kinds map[notify.EventType]string) []string {
	var want []string
	for kind, text := range kinds {
		e := notify.Event{Type: kind, Plan: notify.PlanRef{UID: string(plan.UID)}}
		want = append(want, e.ID()+" "+text)
	}
	return want
}

// arrived compares whatever came, in any order: two executors may tell in any.
func (r *receivers) arrived(what string, got, want []string) {
	r.t.Helper()
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// named checks that so many texts came, and that each of them has a name in it.
func (r *receivers) named(what string, got []string, name string, want int) {
	r.t.Helper()
	if len(got) != want || slices.ContainsFunc(got, func(s string) bool { return !strings.Contains(s, name) }) {
		r.t.Errorf("%s, want %d about %s: %q", what, want, name, got)
	}
}
