// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
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
