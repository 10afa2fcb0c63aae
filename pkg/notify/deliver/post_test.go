// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
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

func TestHTTP_Faults(t *testing.T) {
	other := receive(t, status(200))
	cases := map[string]struct {
		answers  func(*receiver) []http.HandlerFunc
		want     Outcome
		requests int
		log      string
		hangs    bool // so that the time of an attempt has to be short
	}{
		"200":                          {simply(status(200)), Sent, 1, "", false},
		"202":                          {simply(status(202)), Sent, 1, "", false},
		"500, then 200":                {simply(status(500), status(200)), Sent, 2, "", false},
		"503 twice, then 204":          {simply(status(503), status(503), status(204)), Sent, 3, "", false},
		"408, then 200":                {simply(status(408), status(200)), Sent, 2, "", false},
		"429, then 200":                {simply(status(429, "Retry-After", "0"), status(200)), Sent, 2, "", false},
		"429 for longer than it takes": {simply(status(429, "Retry-After", "9999")), Failed, 1, "not able to take it now (429)", false},
		"400":                          {simply(status(400)), Failed, 1, "refused it (400)", false},
		"404":                          {simply(status(404)), Failed, 1, "refused it (404)", false},
		"410":                          {simply(status(410)), Failed, 1, "refused it (410)", false},
		"a redirect is not followed":   {simply(status(307, "Location", other.URL)), Failed, 1, "not followed (307)", false},
		"a reset, then 200":            {simply(reset, status(200)), Sent, 2, "the connection broke", false},
		"a hang, then 200": {func(r *receiver) []http.HandlerFunc {
			return []http.HandlerFunc{r.hang, status(200)}
		}, Sent, 2, "no answer in time", true},
		"a body without end":    {simply(endless), Sent, 1, "", false},
		"headers without end":   {simply(status(200, "X-Long", strings.Repeat("x", 64<<10)), status(200)), Sent, 2, "the connection broke", false},
		"a head, and no body":   {func(r *receiver) []http.HandlerFunc { return []http.HandlerFunc{r.headOnly} }, Sent, 1, "", true},
		"words instead of HTTP": {simply(babble, status(200)), Sent, 2, "the connection broke", false},
	}
	for name, tc := range cases {
		retry := quick
		if tc.hangs {
			retry.AttemptTimeout = 300 * time.Millisecond
		}
		for kind, channel := range overHTTP() {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				r := receive(t)
				r.answers = tc.answers(r)
				var c counted
				var log logged
				n := start(t, Options{Secrets: secretsFor(r).resolve, Recorder: &c, Log: log.logger(), Egress: loopback, Roots: trusting(r.Certificate()), Retry: retry}, channel)
				if diff := cmp.Diff(map[Outcome]int{tc.want: 1}, tell(t, n, &c, plan("1", notify.PlanFailed), channel.Name)); diff != "" {
					t.Errorf("outcomes (-want +got):\n%s\n%s", diff, log.String())
				}
				// On a machine so busy that an ordinary answer takes longer than a
				// short attempt there are more requests; never fewer.
				if got := len(r.requests()); got < tc.requests || !tc.hangs && got != tc.requests {
					t.Errorf("%d requests, want %d", got, tc.requests)
				}
				if !strings.Contains(log.String(), tc.log) {
					t.Errorf("log without %q:\n%s", tc.log, log.String())
				}
				checkNoSecret(t, log.String())
			})
		}
	}
	if got := other.requests(); len(got) > 0 {
		t.Errorf("the redirect's target got %d requests", len(got))
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

// TestHTTP_WhatMayNotBe: none of these makes a request.
func TestHTTP_WhatMayNotBe(t *testing.T) {
	r := receive(t, status(200))
	plain := httptest.NewServer(r)
	t.Cleanup(plain.Close)
	secrets := func(change func(vault)) vault {
		v := secretsFor(r)
		change(v)
		return v
	}
	url := func(u string) vault { return secrets(func(v vault) { v["url"] = u }) }
	good := Options{Egress: loopback, Roots: trusting(r.Certificate())}
	cases := map[string]struct {
		options Options
		secrets vault
		channel notify.Channel
		want    Failure
	}{
		"loopback that is not allowed": {Options{Roots: good.Roots}, secretsFor(r), chat("c"), Failure{Step: "posting", Cause: CauseAddressRefused}},
		"a name of loopback that is not allowed": {
			Options{Roots: good.Roots}, url(strings.Replace(r.URL, "127.0.0.1", "localhost", 1) + "/" + canary), chat("c"), Failure{Step: "posting", Cause: CauseAddressRefused},
		},
		"the metadata service, with everything allowed": {
			Options{Egress: Egress{PlainHTTP: true, Allowed: prefixes("0.0.0.0/0")}}, url("http://169.254.169.254/" + canary), chat("c"), Failure{Step: "posting", Cause: CauseAddressRefused},
		},
		"http":                        {good, url(plain.URL + "/" + canary), chat("c"), Failure{Step: "reading the URL", Cause: CauseSecretMalformed}},
		"a file":                      {good, url("file:///etc/" + canary), chat("c"), Failure{Step: "reading the URL", Cause: CauseSecretMalformed}},
		"no URL":                      {good, url(canary + "%zz"), chat("c"), Failure{Step: "reading the URL", Cause: CauseSecretMalformed}},
		"an empty URL":                {good, url(""), chat("c"), Failure{Step: "reading the URL", Cause: CauseSecretMalformed}},
		"a URL with a user in it":     {good, url(strings.Replace(r.URL, "https://", "https://user:"+canary+"@", 1)), chat("c"), Failure{Step: "reading the URL", Cause: CauseSecretMalformed}},
		"a URL with a second line":    {good, url(r.URL + "/\r\nX: " + canary), chat("c"), Failure{Step: "reading the URL", Cause: CauseSecretMalformed}},
		"a certificate of nobody":     {Options{Egress: loopback}, secretsFor(r), chat("c"), Failure{Step: "posting", Cause: CauseCertificate, Retry: true}},
		"a secret that is not there":  {good, secrets(func(v vault) { delete(v, "url") }), chat("c"), Failure{Step: `reading key "url" of Secret "notifications"`, Cause: CauseSecret, Retry: true}},
		"no signing key":              {good, secrets(func(v vault) { delete(v, "key") }), webhook(), Failure{Step: `reading key "key" of Secret "notifications"`, Cause: CauseSecret, Retry: true}},
		"a signing key that is none":  {good, secrets(func(v vault) { v["key"] = "whsec_" + canary }), webhook(), Failure{Step: "reading the signing key", Cause: CauseSecretMalformed}},
		"no token":                    {good, secrets(func(v vault) { delete(v, "token") }), cloudEvents(), Failure{Step: `reading key "token" of Secret "notifications"`, Cause: CauseSecret, Retry: true}},
		"a token with a second line":  {good, secrets(func(v vault) { v["token"] = "a\r\nX-Other: " + canary }), cloudEvents(), Failure{Step: "reading the token", Cause: CauseSecretMalformed}},
		"a name that is none":         {good, url("https://" + canary + ".invalid/"), chat("c"), Failure{Step: "posting", Cause: CauseName, Retry: true}},
		"a port where nobody listens": {good, url("https://" + freeport.Address(t) + "/" + canary), chat("c"), Failure{Step: "posting", Cause: CauseConnection, Retry: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.options.Secrets = tc.secrets.resolve
			failure := once(t, New(tc.options), tc.channel)
			if failure == nil {
				t.Fatal("it was sent")
			}
			if diff := cmp.Diff(tc.want, *failure); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkNoSecret(t, failure.String())
		})
	}
	if got := r.requests(); len(got) > 0 {
		t.Errorf("%d requests were made", len(got))
	}
}

// once makes one attempt.
func once(t *testing.T, n *Notifier, c notify.Channel) *Failure {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return n.dispatch(ctx, c, &job{event: plan("1", notify.PlanFailed), progress: progress{settled: map[string]bool{}}})
}

func TestHTTP_PlainWhereItIsAllowed(t *testing.T) {
	r := receive(t, status(200))
	plain := httptest.NewServer(r)
	t.Cleanup(plain.Close)
	egress := loopback
	egress.PlainHTTP = true
	n := New(Options{Egress: egress, Secrets: vault{"url": "\n" + plain.URL + "/hook#part \n"}.resolve})
	if failure := once(t, n, chat("c")); failure != nil {
		t.Fatal(failure)
	}
	if got := r.requests(); len(got) != 1 || got[0].path != "/hook" {
		t.Errorf("%+v", got)
	}
}

// TestHTTP_TheProxyOfTheEnvironmentIsNotUsed: through it the check of addresses
// would see only the proxy. net/http never uses one for loopback, where this
// test's servers are, so the setting itself is looked at.
func TestHTTP_TheProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	transport, ok := New(Options{}).client.Transport.(*http.Transport)
	if !ok || transport.Proxy != nil {
		t.Error("the client has a proxy")
	}
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

func TestWebhook_ReceiversVerifyIt(t *testing.T) {
	r := receive(t, status(503), status(200))
	secrets := secretsFor(r)
	older := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("o", 24)))
	secrets["key"] = signingKey + "\n" + older
	var c counted
	n := start(t, Options{Secrets: secrets.resolve, Recorder: &c, Egress: loopback, Roots: trusting(r.Certificate()), Retry: quick}, webhook())
	e := plan("1", notify.PlanFailed)
	tell(t, n, &c, e, "hook")
	for i, got := range r.requests() {
		for _, secret := range []string{signingKey, older} {
			if err := verify(secret, got, time.Now(), time.Minute); err != nil {
				t.Errorf("attempt %d: %v", i+1, err)
			}
		}
		if err := verify("whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 24)), got, time.Now(), time.Minute); err == nil {
			t.Errorf("attempt %d: the test verifies anything", i+1)
		}
		tampered := got
		tampered.body = append([]byte(nil), got.body...)
		tampered.body[0] ^= 1
		if err := verify(signingKey, tampered, time.Now(), time.Minute); err == nil {
			t.Errorf("attempt %d: another body has the same signature", i+1)
		}
		if got.header.Get("webhook-id") != e.ID() || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("attempt %d: headers %v", i+1, got.header)
		}
	}
}

func TestCloudEvents_OverHTTP(t *testing.T) {
	r := receive(t, status(202))
	n := New(Options{Egress: loopback, Roots: trusting(r.Certificate()), Secrets: secretsFor(r).resolve})
	bare := cloudEvents()
	bare.CloudEvents.Token = nil
	for _, channel := range []notify.Channel{cloudEvents(), bare} {
		if failure := once(t, n, channel); failure != nil {
			t.Fatal(failure)
		}
	}
	got := r.requests()
	if diff := cmp.Diff([]string{"Bearer token-" + canary}, got[0].header.Values("Authorization")); diff != "" {
		t.Errorf("with a token (-want +got):\n%s", diff)
	}
	if got[1].header.Values("Authorization") != nil {
		t.Error("without a token there is one")
	}
	var event struct{ SpecVersion, ID string }
	if err := json.Unmarshal(got[0].body, &event); err != nil || event.SpecVersion != "1.0" || event.ID != plan("1", notify.PlanFailed).ID() {
		t.Errorf("body %s", got[0].body)
	}
	// HTTP Protocol Binding 3.2: the media type says which mode it is, and no
	// attribute is in a header.
	if kind := got[0].header.Get("Content-Type"); kind != "application/cloudevents+json; charset=utf-8" || got[0].header.Get("Ce-Id") != "" {
		t.Errorf("headers %v", got[0].header)
	}
}

// TestNotifier_EachEventHasOneOutcome, whatever happens at once: many notify,
// channels come and go, receivers fail, and the end comes in the middle.
func TestNotifier_EachEventHasOneOutcome(t *testing.T) {
	var turn atomic.Int64
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader([]int{200, 500, 404}[turn.Add(1)%3])
	})
	var c counted
	n := New(Options{Secrets: secretsFor(r).resolve, Recorder: &c, Egress: loopback, Roots: trusting(r.Certificate()), Retry: quick, Depth: 3})
	all := []notify.Channel{chat("a"), chat("b"), chat("c")}
	if err := n.Configure(all); err != nil {
		t.Fatal(err)
	}
	var accepted atomic.Int64
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 25 {
				err := n.Notify(plan(strconv.Itoa(w*10+i), notify.PlanCreated), "a", "b", "c")
				unknown := 0
				if joined, ok := err.(interface{ Unwrap() []error }); ok {
					unknown = len(joined.Unwrap())
				}
				accepted.Add(int64(3 - unknown))
			}
		})
	}
	writers.Go(func() {
		for i := range 20 {
			if err := n.Configure(all[:1+i%3]); err != nil {
				t.Error(err)
			}
		}
	})
	writers.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := n.Shutdown(ctx)
	if undelivered := (&UndeliveredError{}); err != nil && !errors.As(err, &undelivered) {
		t.Error(err)
	}
	if got, want := c.total(), int(accepted.Load()); got != want {
		t.Errorf("%d outcomes of %d events: %v", got, want, c.outcomes())
	}
}
