// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfigFrom(t *testing.T) {
	cases := map[string]struct {
		env  map[string]string
		host func() (string, error)
		want config
	}{
		"an empty environment gives the host's name and defaults": {
			host: func() (string, error) { return "pod-1", nil },
			want: config{Name: "pod-1", Version: "dev", Address: ":8080", Visit: visitConfig{Rate: 20}},
		},
		"variables win": {
			env:  map[string]string{"SHOP_NAME": "cart", "SHOP_VERSION": "v2", "SHOP_ADDRESS": ":9", "SHOP_UPSTREAM": "http://pay"},
			host: func() (string, error) { return "pod-1", nil },
			want: config{Name: "cart", Version: "v2", Address: ":9", Upstream: "http://pay", Visit: visitConfig{Rate: 20}},
		},
		"a host without a name is unknown": {
			host: func() (string, error) { return "", errors.New("no name") },
			want: config{Name: "unknown", Version: "dev", Address: ":8080", Visit: visitConfig{Rate: 20}},
		},
		"it may order elsewhere": {
			env:  map[string]string{"SHOP_NAME": "web", "SHOP_VISITS": "http://pay", "SHOP_VISIT_RATE": "5", "SHOP_VISIT_USERS": "9", "SHOP_VISIT_COOKIES": "true", "SHOP_VISIT_HEADER": "a: b", "SHOP_CALL_RATE": "7", "SHOP_SOCKET_RATE": "8"},
			host: func() (string, error) { return "pod-1", nil },
			want: config{Name: "web", Version: "dev", Address: ":8080", Visit: visitConfig{URL: "http://pay", Rate: 5, Users: 9, Cookies: true, Header: "a: b", CallRate: 7, SocketRate: 8}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := configFrom(func(key string) string { return tc.env[key] }, tc.host)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("configFrom: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestConfigRefusesNumbersThatAreNone(t *testing.T) {
	for _, rate := range []string{"0", "-1", "many", "10001"} {
		env := func(key string) string {
			if key == "SHOP_VISIT_RATE" {
				return rate
			}
			return ""
		}
		if _, err := configFrom(env, os.Hostname); err == nil || !strings.Contains(err.Error(), "SHOP_VISIT_RATE") {
			t.Errorf("a rate of %q: %v", rate, err)
		}
	}
}

// serving is the handler of a shop that orders nothing.
func serving(t *testing.T, c config) http.Handler {
	t.Helper()
	v, err := newVisitors(c.Visit)
	if err != nil {
		t.Fatal(err)
	}
	return handler(t.Context(), c, v)
}

func TestHandler(t *testing.T) {
	pay := httptest.NewServer(serving(t, config{Name: "pay", Version: "v7"}))
	defer pay.Close()
	cases := map[string]struct {
		upstream, path string
		wantStatus     int
		wantBody       string // prefix
	}{
		"the root says who it is":                  {path: "/", wantStatus: 200, wantBody: `{"name":"cart","version":"v1"}`},
		"health is plain":                          {path: "/healthz", wantStatus: 200, wantBody: "ok"},
		"checkout shows both shops":                {upstream: pay.URL, path: "/checkout", wantStatus: 200, wantBody: `{"name":"cart","version":"v1","upstream":{"name":"pay","version":"v7"}}`},
		"checkout without upstream is just itself": {path: "/checkout", wantStatus: 200, wantBody: `{"name":"cart","version":"v1"}`},
		"an upstream that fails is a bad gateway":  {upstream: pay.URL + "/nothing", path: "/checkout", wantStatus: 502, wantBody: "upstream answered 404"},
		"an upstream that speaks no JSON is too":   {upstream: pay.URL + "/healthz", path: "/checkout", wantStatus: 502, wantBody: "upstream answered 200"},
		"another path does not exist":              {path: "/admin", wantStatus: 404, wantBody: "404"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			request := httptest.NewRequest(http.MethodGet, tc.path, nil)
			serving(t, config{Name: "cart", Version: "v1", Upstream: tc.upstream}).ServeHTTP(recorder, request)
			if recorder.Code != tc.wantStatus || !strings.HasPrefix(recorder.Body.String(), tc.wantBody) {
				t.Errorf("got %d %q, want %d %q...", recorder.Code, recorder.Body, tc.wantStatus, tc.wantBody)
			}
		})
	}
}

// A connection of before the signal is not closed under a request that is on its way.
func TestAConnectionEndsWithItsNextAnswerAfterTheSignal(t *testing.T) {
	ctx, terminate := context.WithCancel(t.Context())
	h := lastAnswers(ctx, serving(t, config{Name: "cart"}))
	ask := func() *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		return recorder
	}
	if got := ask().Header().Get("Connection"); got != "" {
		t.Errorf("before the signal the connection is told %q", got)
	}
	terminate()
	if got := ask(); got.Header().Get("Connection") != "close" || got.Code != http.StatusOK {
		t.Errorf("after the signal it answers %d, and the connection is told %q", got.Code, got.Header().Get("Connection"))
	}
}

// A request that has begun when the signal comes is answered, and only then does
// run return: this is what lets a rollout lose nothing.
func TestRunFinishesRequestsBeforeItReturns(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, `{}`)
	}))
	defer upstream.Close()

	ctx, terminate := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	lines := bufio.NewScanner(reader)
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, config{Name: "cart", Version: "v1", Address: "127.0.0.1:0", Upstream: upstream.URL}, writer)
	}()
	if !lines.Scan() {
		t.Fatal("no first line")
	}
	_, address, _ := strings.Cut(lines.Text(), "listens on ")

	answered := make(chan int, 1)
	go func() {
		response, err := http.Get("http://" + address + "/checkout")
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	<-entered
	terminate()
	select {
	case err := <-ended:
		t.Fatalf("run returned (%v) while a request was open", err)
	case <-answered:
		t.Fatal("answered before the upstream did")
	default:
	}
	close(release)
	if status := <-answered; status != http.StatusOK {
		t.Errorf("status %d, want 200", status)
	}
	if !lines.Scan() || lines.Text() != "drained" {
		t.Errorf("last line %q, want drained", lines.Text())
	}
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestRunReportsAnAddressItCannotListenOn(t *testing.T) {
	if err := run(t.Context(), config{Address: "256.0.0.1:1"}, io.Discard); err == nil {
		t.Error("run succeeded on an impossible address")
	}
}
