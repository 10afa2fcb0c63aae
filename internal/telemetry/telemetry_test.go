// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "json", "warn")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("quiet")
	log.Warn("loud", "n", 1)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%q: %v", &out, err)
	}
	if line["msg"] != "loud" || line["n"] != 1.0 || line["level"] != "WARN" {
		t.Errorf("line %v", line)
	}
	for _, bad := range [][2]string{{"xml", "info"}, {"json", "loud"}} {
		if _, err := NewLogger(&out, bad[0], bad[1]); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	out.Reset()
	if log, err = NewLogger(&out, "text", "debug"); err != nil {
		t.Fatal(err)
	}
	log.Debug("fine")
	if !strings.Contains(out.String(), "msg=fine") {
		t.Errorf("text %q", &out)
	}
}

func TestHealth(t *testing.T) {
	h := &Health{}
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, _ := get("/readyz"); code != http.StatusOK {
		t.Errorf("without checks: %d", code)
	}
	h.Add("b", func() error { return errors.New("not b") })
	h.Add("a", func() error { return errors.New("not a") })
	h.Add("fine", func() error { return nil })
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable || body != "a: not a\nb: not b\n\n" {
		t.Errorf("%d %q", code, body)
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("liveness depends on readiness: %d", code)
	}
	h.Add("a", func() error { return nil })
	h.Add("b", func() error { return nil })
	if code, _ := get("/readyz"); code != http.StatusOK {
		t.Errorf("all pass: %d", code)
	}
}

func TestRegistry(t *testing.T) {
	reg := NewRegistry("test")
	n, err := testutil.GatherAndCount(reg, "plumbline_build_info")
	if err != nil || n != 1 {
		t.Errorf("%d build_info (%v)", n, err)
	}
	w := httptest.NewRecorder()
	MetricsHandler(reg).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{`plumbline_build_info{component="test"`, "go_goroutines", "process_"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s in /metrics", want)
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		_, _ = io.WriteString(w, "done")
	})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- ServeListener(ctx, listener, handler) }()
	body := make(chan string, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get("http://" + listener.Addr().String())
		if err != nil {
			body <- err.Error()
			return
		}
		defer func() { _ = response.Body.Close() }()
		raw, _ := io.ReadAll(response.Body)
		body <- string(raw)
	}()
	<-entered
	cancel()
	close(leave)
	if got := <-body; got != "done" {
		t.Errorf("a running request got %q", got)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Serve(ctx, "", http.NotFoundHandler()); err != nil {
		t.Errorf("a server that is switched off: %v", err)
	}
	if err := Serve(t.Context(), "256.0.0.1:1", http.NotFoundHandler()); err == nil {
		t.Error("an address that is none was served")
	}
}
