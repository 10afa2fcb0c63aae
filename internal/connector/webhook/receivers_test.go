// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

var autumn = Release{"shop", "autumn", "u-1"}

// answers are those of a receiver that says the same to each request.
func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Whatever a receiver answers, a split is in force only if the receiver says so of its sequence, and otherwise the
// observation says why.
func TestAReceiverThatIsNotAsItShouldBe(t *testing.T) {
	for name, tc := range map[string]struct {
		answer    http.HandlerFunc
		knowledge traffic.Knowledge
		why       string
	}{
		"proven":                        {answers(200, `{"sequence": 7, "knowledge": "Proven"}`), traffic.Proven, ""},
		"accepted":                      {answers(202, `{"sequence": 7, "knowledge": "Accepted"}`), traffic.Accepted, ""},
		"the shares of the split":       {answers(200, `{"sequence": 7, "knowledge": "Proven", "shares": {"stable": 9000, "canary": 1000}}`), traffic.Proven, ""},
		"a field of a later version":    {answers(200, `{"sequence": 7, "knowledge": "Proven", "zone": "a"}`), traffic.Proven, ""},
		"other shares":                  {answers(200, `{"sequence": 7, "knowledge": "Proven", "shares": {"stable": 10000, "canary": 0}}`), traffic.Contradicted, "the receiver gives 100 % to stable, want 90 %"},
		"another variation":             {answers(200, `{"sequence": 7, "knowledge": "Proven", "shares": {"stable": 9000, "green": 1000}}`), traffic.Contradicted, "the receiver gives 0 % to canary, want 10 %"},
		"an earlier sequence":           {answers(200, `{"sequence": 6, "knowledge": "Proven"}`), traffic.Unknown, "the receiver has sequence 6"},
		"a later sequence":              {answers(200, `{"sequence": 9, "knowledge": "Proven"}`), traffic.Contradicted, "the receiver has the later sequence 9"},
		"no knowledge, with its reason": {answers(200, `{"sequence": 7, "knowledge": "Unknown", "message": "two of three edges"}`), traffic.Unknown, "not know whether the split is effective: two of three edges"},
		"knowledge of another kind":     {answers(200, `{"sequence": 7, "knowledge": "Sure"}`), traffic.Unknown, `knowledge "Sure" is not one of`},
		"a page of HTML":                {answers(200, `<html>hello</html>`), traffic.Unknown, "not the JSON of an answer"},
		"an empty answer":               {answers(200, ``), traffic.Unknown, "not the JSON of an answer"},
		"a MiB":                         {answers(200, `{"message": "`+strings.Repeat("a", 1<<20)+`"}`), traffic.Unknown, "larger than 65536 bytes"},
		"a refusal with a message":      {answers(409, `{"message": "edge-3 is frozen"}`), traffic.Unknown, "status 409: edge-3 is frozen"},
		"a refusal with a control":      {answers(500, "no\x1b[2Jroom"), traffic.Unknown, "status 500: no"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, traffic.Unknown, "not followed (307)"},
		"a connection that breaks":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, traffic.Unknown, "posting: "},
		"a signature of another time":    {stale, traffic.Unknown, "status 401: the clock of the receiver differs"},
		"more failures than requests":    {answers(200, `{"sequence": 7, "knowledge": "Proven", "outcomes": [{"variation": "canary", "completed": 1, "failed": 2}]}`), traffic.Unknown, "of 1 requests"},
		"a negative sequence":            {answers(200, `{"sequence": -7, "knowledge": "Proven"}`), traffic.Unknown, "not the JSON of an answer"},
		"shares that are more than all":  {answers(200, `{"sequence": 7, "knowledge": "Proven", "shares": {"stable": 10000, "canary": 1000}}`), traffic.Unknown, "have the sum 11000"},
		"a share that is less than none": {answers(200, `{"sequence": 7, "knowledge": "Proven", "shares": {"stable": 10001, "canary": -1}}`), traffic.Unknown, "want 0 to 10000"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			t.Cleanup(server.Close)
			router := at(t, server.URL, autumn)
			if err := router.Apply(t.Context(), routertest.Split(7, 1_000)); err != nil {
				t.Fatal(err)
			}
			seen, err := router.Observe(t.Context())
			if err != nil || seen.Knowledge != tc.knowledge {
				t.Fatalf("observed is %+v, %v; want %s", seen, err, tc.knowledge)
			}
			if tc.why == "" {
				if seen.Sequence != 7 || len(seen.OutOfSync) > 0 || !seen.IsEffective(7, time.Now()) {
					t.Errorf("observed is %+v", seen)
				}
				return
			}
			if len(seen.OutOfSync) != 1 || seen.OutOfSync[0].Name != "edge" || !strings.Contains(seen.OutOfSync[0].Why, tc.why) || strings.Contains(seen.OutOfSync[0].Why, "\x1b") {
				t.Errorf("out of sync are %+v, want edge with %q", seen.OutOfSync, tc.why)
			}
			if seen.IsEffective(7, time.Now().Add(time.Hour)) {
				t.Error("the split counts as in force")
			}
		})
	}
}

// stale refuses each signature as a receiver whose clock stands in the year 2001.
func stale(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.ParseInt(r.Header.Get(notify.HeaderWebhookTimestamp), 10, 64)
	if err != nil || seconds > 1_000_000_000 {
		http.Error(w, "the clock of the receiver differs", http.StatusUnauthorized)
	}
}

func TestARequestIsSignedAndHasTheIDOfItsSequence(t *testing.T) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seconds, _ := strconv.ParseInt(r.Header.Get(notify.HeaderWebhookTimestamp), 10, 64)
		keys, _ := notify.ParseSigningKeys(signingKey)
		id := r.Header.Get(notify.HeaderWebhookID)
		mu.Lock()
		got = append(got, fmt.Sprintf("%s %s signed=%t", r.Method, id, r.Header.Get(notify.HeaderWebhookSignature) == notify.Sign(keys, id, time.Unix(seconds, 0), body)))
		mu.Unlock()
		sequence := 7
		if strings.Contains(string(body), actionRemove) {
			sequence = 0
		}
		_, _ = fmt.Fprintf(w, `{"sequence": %d, "knowledge": "Proven"}`, sequence)
	}))
	t.Cleanup(server.Close)
	router := at(t, server.URL, autumn)
	for range 2 {
		if err := router.Apply(t.Context(), routertest.Split(7, 1_000)); err != nil {
			t.Fatal(err)
		}
		if _, err := router.Observe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := router.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "POST u-1-7 signed=true; GET u-1-7-observe signed=true; POST u-1-7-remove signed=true"
	if is := strings.Join(got, "; "); is != want {
		t.Errorf("requests are %s, want %s", is, want)
	}
}

// A receiver of two releases answers each with the split that came last, which may be that of the other release.
func TestAReceiverThatMixesReleasesUpProvesNothingOfTheOther(t *testing.T) {
	for name, tc := range map[string]struct {
		sequence, other uint64
		canary          int
		why             string
	}{
		"a later sequence":                   {7, 9, 1_000, "the receiver has the later sequence 9"},
		"an earlier sequence":                {7, 3, 1_000, "the receiver has sequence 3"},
		"the same sequence and other shares": {7, 7, 2_000, "the receiver gives 80 % to stable, want 90 %"},
		"the highest number":                 {7, math.MaxUint64, 1_000, "the receiver has the later sequence 18446744073709551615"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answers(200, fmt.Sprintf(`{"sequence": %d, "knowledge": "Proven", "shares": {"stable": %d, "canary": %d}}`, tc.other, 10_000-tc.canary, tc.canary)))
			t.Cleanup(server.Close)
			mixed, other := at(t, server.URL, autumn), at(t, server.URL, Release{"shop", "winter", "u-2"})
			for router, split := range map[*Router]traffic.Split{mixed: routertest.Split(tc.sequence, 1_000), other: routertest.Split(tc.other, traffic.Weight(tc.canary))} {
				if err := router.Apply(t.Context(), split); err != nil {
					t.Fatal(err)
				}
			}
			seen, err := mixed.Observe(t.Context())
			if err != nil || seen.IsEffective(tc.sequence, time.Now()) || !strings.Contains(seen.OutOfSync[0].Why, tc.why) {
				t.Errorf("observed is %+v, %v; want %q", seen, err, tc.why)
			}
			if seen, err := other.Observe(t.Context()); err != nil || !seen.IsEffective(tc.other, time.Now()) {
				t.Errorf("of the other release observed is %+v, %v", seen, err)
			}
		})
	}
}

// hanging is a sender whose requests end when the test says so.
type hanging struct {
	begun chan deliver.Request
	ends  chan deliver.Reply
}

func (h hanging) Send(ctx context.Context, r deliver.Request, _ int) (deliver.Reply, *deliver.Failure) {
	h.begun <- r
	select {
	case reply := <-h.ends:
		return reply, nil
	case <-ctx.Done():
		return deliver.Reply{}, &deliver.Failure{Step: "posting", Cause: deliver.CauseTimeout}
	}
}

// A look lasts less than a receiver may take: the look ends, the request goes on, and a later look has its answer.
func TestALookDoesNotWaitForALateReceiver(t *testing.T) {
	sender := hanging{make(chan deliver.Request, 9), make(chan deliver.Reply)}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	router := New(Config{
		Context: t.Context(), Name: "edge", Release: autumn, URL: "http://edge", Capabilities: connectors.Webhook.Capabilities,
		Settle: time.Minute, Sender: sender, Now: func() time.Time { return now },
	})
	if err := router.Apply(t.Context(), routertest.Split(7, 1_000)); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	seen, err := router.Observe(over)
	if err != nil || seen.Knowledge != traffic.Unknown || seen.OutOfSync[0].Why != "the receiver has not answered yet" {
		t.Fatalf("observed is %+v, %v", seen, err)
	}
	sender.ends <- deliver.Reply{Status: 200, Body: []byte(`{"sequence": 7, "knowledge": "Accepted"}`)}
	if err := router.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen, err = router.Observe(over) // asks again, and has the answer of before
	if err != nil || seen.Knowledge != traffic.Accepted || !seen.SettledAt.Equal(now.Add(time.Minute)) || len(sender.begun) > 2 {
		t.Fatalf("observed is %+v, %v, after %d requests", seen, err, len(sender.begun))
	}
	now = now.Add(time.Hour) // the question hangs
	if seen, err = router.Observe(over); err != nil || seen.Knowledge != traffic.Unknown || !strings.Contains(seen.OutOfSync[0].Why, "has not answered for") {
		t.Errorf("observed is %+v, %v", seen, err)
	}
}

func TestAReceiverAtAnAddressThatIsNotPermittedIsNotAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the receiver is asked") }))
	t.Cleanup(server.Close)
	router := at(t, server.URL, autumn)
	router.config.Sender = asker(deliver.Egress{PlainHTTP: true})
	if err := router.Apply(t.Context(), routertest.Split(7, 1_000)); err != nil {
		t.Fatal(err)
	}
	seen, err := router.Observe(t.Context())
	if err != nil || !strings.Contains(seen.OutOfSync[0].Why, string(deliver.CauseAddressRefused)) {
		t.Errorf("observed is %+v, %v", seen, err)
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte(`{"sequence": 7, "knowledge": "Proven", "shares": {"stable": 9000, "canary": 1000}, "outcomes": [{"variation": "canary", "completed": 3, "failed": 1, "windowSeconds": 60}]}`))
	f.Add([]byte(`{"sequence": 1e3, "knowledge": "Accepted"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := ParseAnswer(body)
		if err != nil {
			return
		}
		split := routertest.Split(7, 1_000)
		seen := judge(expected{router: "edge", sequence: 7, shares: split.Shares}, memory{answer: &a})
		if isTaken(seen) && (a.Sequence != 7 || a.Knowledge == traffic.Unknown) {
			t.Errorf("%q counts as in force: %+v", body, seen)
		}
		if !isTaken(seen) && len(seen.OutOfSync) != 1 {
			t.Errorf("%q is not in force, and nothing says why: %+v", body, seen)
		}
	})
}
