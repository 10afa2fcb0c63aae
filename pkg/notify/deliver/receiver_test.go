// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// signingKey has the canary's bytes in it.
var signingKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789"+canary+"abcdefgh"))

// received is one request as a receiver saw it.
type received struct {
	path   string
	header http.Header
	body   []byte
}

// receiver is an HTTPS server that answers one way per request, the last of them
// for ever, and keeps what it got.
type receiver struct {
	*httptest.Server
	release chan struct{} // closed at the end, for answers that hang

	mu      sync.Mutex
	answers []http.HandlerFunc
	got     []received
}

func receive(t *testing.T, answers ...http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{release: make(chan struct{}), answers: answers}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.StartTLS()
	t.Cleanup(r.Close)
	t.Cleanup(func() { close(r.release) })
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body) // what a cut-off request holds is not looked at
	r.mu.Lock()
	r.got = append(r.got, received{q.URL.Path, q.Header.Clone(), body})
	answer := r.answers[min(len(r.got), len(r.answers))-1]
	r.mu.Unlock()
	answer(w, q)
}

func (r *receiver) requests() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.got...)
}

func (r *receiver) hang(http.ResponseWriter, *http.Request) { <-r.release }

// status answers with a code, headers, and a body that repeats the secret.
func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("X-Echo", canary)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "you asked for "+q.URL.String()) // the client may be gone
	}
}

// reset ends the connection without an answer, as a crash does.
func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // RST instead of FIN
		_ = tcp.Close()
	}
}

// secretsFor a receiver: its URL, with the canary in path and query.
func secretsFor(r *receiver) vault {
	return vault{"url": r.URL + "/hook/" + canary + "?token=" + canary, "key": signingKey, "token": "token-" + canary, "password": "pass-" + canary}
}

func webhook() notify.Channel {
	return notify.Channel{Name: "hook", Webhook: &notify.WebhookChannel{URL: ref("url"), SigningKey: ref("key")}}
}

func cloudEvents() notify.Channel {
	token := ref("token")
	return notify.Channel{Name: "events", CloudEvents: &notify.CloudEventsChannel{URL: ref("url"), Token: &token}}
}

func overHTTP() map[notify.ChannelType]notify.Channel {
	return map[notify.ChannelType]notify.Channel{
		notify.ChannelSlack: chat("chat"), notify.ChannelWebhook: webhook(), notify.ChannelCloudEvents: cloudEvents(),
	}
}

func simply(answers ...http.HandlerFunc) func(*receiver) []http.HandlerFunc {
	return func(*receiver) []http.HandlerFunc { return answers }
}

// endless writes until nobody listens.
func endless(w http.ResponseWriter, _ *http.Request) {
	block := []byte(strings.Repeat("x", 64<<10))
	for range 10_000 { // 640 MB, should anybody read it
		if _, err := w.Write(block); err != nil {
			return
		}
	}
	panic("somebody read it all")
}

func (r *receiver) headOnly(w http.ResponseWriter, _ *http.Request) {
	_ = http.NewResponseController(w).Flush() // with the status 200
	<-r.release
}

func babble(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, "220 mail.example.com ESMTP "+canary+"\r\n")
	_ = conn.Close()
}

// checkNoSecret looks for the canary, as it is and in base64, whose form depends
// on where it begins.
func checkNoSecret(t *testing.T, where string) {
	t.Helper()
	for shift := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", shift) + canary))
		if middle := encoded[4 : len(encoded)-4]; strings.Contains(where, middle) {
			t.Errorf("a secret in base64 (%s) in:\n%s", middle, where)
		}
	}
	if strings.Contains(where, canary) {
		t.Errorf("a secret in:\n%s", where)
	}
}

// once makes one attempt.
func once(t *testing.T, n *Notifier, c notify.Channel) *Failure {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return n.dispatch(ctx, c, &job{event: plan("1", notify.PlanFailed), progress: progress{settled: map[string]bool{}}})
}

// verify is a receiver's side of Standard Webhooks 1.0.0, from its text alone.
func verify(secret string, got received, now time.Time, tolerance time.Duration) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	id, seconds := got.header.Get("webhook-id"), got.header.Get("webhook-timestamp")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	if age := now.Sub(time.Unix(at, 0)).Abs(); age > tolerance {
		return errors.New("too old or too new: " + age.String())
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + seconds + "." + string(got.body)))
	for signature := range strings.SplitSeq(got.header.Get("webhook-signature"), " ") {
		version, encoded, _ := strings.Cut(signature, ",")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if version == "v1" && err == nil && hmac.Equal(raw, mac.Sum(nil)) {
			return nil
		}
	}
	return errors.New("no signature matches")
}
