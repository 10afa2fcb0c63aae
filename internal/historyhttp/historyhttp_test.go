// SPDX-License-Identifier: Apache-2.0

package historyhttp

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// kept is a history that has one release.
type kept struct {
	of     history.Release
	series history.Series
	leads  bool
}

// Read implements History.
func (k kept) Read(of history.Release) (history.Series, bool) {
	if of != k.of {
		return history.Series{Since: at, Cells: []history.Cell{}, Looks: []history.Look{}}, k.leads
	}
	return k.series, k.leads
}

// transport answers requests.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func clientOf(h http.Handler) Client {
	return Client{&http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result(), nil
	})}}
}

func someSeries() history.Series {
	return history.Series{
		Since: at, Cells: []history.Cell{{Start: at, Variation: "next", Requests: 100, Failed: 2, ClientErrors: 3, FailedOver: 4}},
		Looks: []history.Look{{
			Time: at, Run: 2, Stage: 1, Verdict: judge.Undecided, Reason: judge.TooFewRequests, Errors: history.Bet{E: 1e300, FailsAt: 200}, Latency: history.Bet{E: 1e-12, FailsAt: 200},
			Canary:  history.Arm{Variation: "next", Samples: 100, ErrorRate: 0.02, Low: 0.001, High: 0.2, SlowRate: 0.01, LatencyP50: 12, LatencyP99: 80},
			Control: history.Arm{Variation: "stable", Samples: 900, ErrorRate: 0.001, Low: 0.0001, High: 0.01, LatencyP50: 11, LatencyP99: 75},
		}},
	}
}

func TestAClientReadsWhatTheLeaderKeeps(t *testing.T) {
	of := history.Release{Namespace: "shop", Name: "web", UID: "2d6f/9c3e"} // no uid has a slash, and none leads elsewhere
	for name, tc := range map[string]struct {
		ask  history.Release
		kept kept
		want Document
	}{
		"a release of the leader": {of, kept{of, someSeries(), true}, Document{"xds-0", true, someSeries()}},
		"another release": {
			history.Release{Namespace: "shop", Name: "web", UID: "other"}, kept{of, someSeries(), true},
			Document{"xds-0", true, history.Series{Since: at, Cells: []history.Cell{}, Looks: []history.Look{}}},
		},
		"a replica that does not lead": {of, kept{of, history.Series{}, false}, Document{"xds-0", false, history.Series{Cells: []history.Cell{}, Looks: []history.Look{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := clientOf(Routes("xds-0", tc.kept)).Read(t.Context(), tc.ask)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	answering := func(status int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) // to a recorder
		})
	}
	of := history.Release{Namespace: "shop", Name: "web", UID: "u"}
	for name, tc := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"no JSON":                   {answering(http.StatusOK, "<html>"), "reading history: invalid character"},
		"a body that does not end":  {answering(http.StatusOK, `{"replica":"`+strings.Repeat("x", maxAnswer)), "reading history: unexpected EOF"},
		"an error":                  {answering(http.StatusBadGateway, "no"), "reading history: 502 Bad Gateway"},
		"a replica without history": {answering(http.StatusNotFound, "404"), ""},
	} {
		d, err := clientOf(tc.handler).Read(t.Context(), of)
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) || d.Leads {
			t.Errorf("%s: %v, leads %t", name, err, d.Leads)
		}
	}
	away := Client{&http.Client{Transport: transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") })}}
	if _, err := away.Read(t.Context(), of); err == nil || err.Error() != "reading history: no route" {
		t.Errorf("a replica that is away: %v", err)
	}
}

func TestAnotherHostAndAnotherMethodAreRefused(t *testing.T) {
	h := Routes("xds-0", kept{leads: true})
	for name, tc := range map[string]struct {
		method, host string
		status       int
	}{
		"a name that leads here (DNS rebinding)": {http.MethodGet, "evil.example:8083", http.StatusMisdirectedRequest},
		"a write":                                {http.MethodPost, "localhost", http.StatusMethodNotAllowed},
		"localhost":                              {http.MethodGet, "127.0.0.1:8083", http.StatusOK},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, "/history/shop/web/u", nil)
		r.Host = tc.host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != tc.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func FuzzAnAnswer(f *testing.F) {
	f.Add([]byte(`{"leads":true,"since":"2026-03-01T12:00:00Z","cells":[{"requests":1}],"looks":[]}`))
	f.Add([]byte(`{"looks":[{"time":"x"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := clientOf(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })).Read(t.Context(), history.Release{})
		if err != nil && d.Leads {
			t.Errorf("an answer that is none leads: %+v", d)
		}
	})
}
