// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBucketsHaveNoGapsAndAreNarrow(t *testing.T) {
	for bucket := range 20 * subBuckets {
		end := upperEnd(bucket)
		if bucketOf(end) != bucket || bucketOf(end+1) != bucket+1 {
			t.Fatalf("bucket %d ends at %d, which is in %d; the next is in %d", bucket, end, bucketOf(end), bucketOf(end+1))
		}
		if bucket > 0 {
			if width := end - upperEnd(bucket-1); width > 1 && width*subBuckets/2 > end {
				t.Fatalf("bucket %d up to %d is %d wide", bucket, end, width)
			}
		}
	}
}

// Quantiles against a sorted list.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var h Histogram
		var all []time.Duration
		for _, us := range rapid.SliceOfN(rapid.IntRange(0, 5_000_000), 1, 300).Draw(rt, "us") {
			d := time.Duration(us) * time.Microsecond
			h.Add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		for _, q := range []float64{0, .5, .9, .99, .999, 1} {
			want := all[min(int(q*float64(len(all))), len(all)-1)]
			got := h.Quantile(q)
			if got < want || float64(got-want) > float64(want)/(subBuckets/2)+1000 {
				rt.Fatalf("quantile %v of %d: %v, want %v", q, len(all), got, want)
			}
		}
	})
	var h Histogram
	if h.Quantile(.5) != 0 || h.Count() != 0 {
		t.Error("an empty histogram has a median")
	}
	h.Add(-time.Second)
	h.Add(100 * time.Hour)
	if h.Count() != 2 || h.Max() != 100*time.Hour {
		t.Errorf("%d durations up to %v", h.Count(), h.Max())
	}
}

// review has its object's name in several places, and as part of other texts.
const review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","name":"web","operation":"UPDATE",
"object":{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"name":"web-2"}}}}`

func TestRecordsStandForManyObjects(t *testing.T) {
	record := Record{Label: "an update", Path: "/validate", Review: json.RawMessage(review)}
	tmpl, err := newTemplate(record)
	if err != nil {
		t.Fatal(err)
	}
	body, uid := tmpl.body(12, 10)
	want := strings.ReplaceAll(strings.ReplaceAll(review, `"name":"web"`, `"name":"object-2"`), `"u-1"`, `"replay-12"`)
	if diff := cmp.Diff(want, string(body)); diff != "" || uid != "replay-12" {
		t.Errorf("uid %s (-want +got)\n%s", uid, diff)
	}
	for name, bad := range map[string]string{"no JSON": "{", "no uid": `{"request":{"name":"x"}}`} {
		if _, err := newTemplate(Record{Review: json.RawMessage(bad)}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestRecordsSurviveTheFile(t *testing.T) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(review)); err != nil {
		t.Fatal(err)
	}
	records := []Record{{"a", "/mutate", compact.Bytes()}, {"b", "/validate", compact.Bytes()}}
	var file bytes.Buffer
	if err := Save(&file, records); err != nil {
		t.Fatal(err)
	}
	got, err := Load(&file)
	if diff := cmp.Diff(records, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for name, text := range map[string]string{"nothing": "\n", "rubbish": "{", "no path": `{"review":{}}`} {
		if _, err := Load(strings.NewReader(text)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// webhook answers like one, after what hold does.
func webhook(t *testing.T, hold func(n int)) (target string, roots *x509.CertPool) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		var in struct{ Request struct{ UID string } }
		if err := json.Unmarshal(body, &in); err != nil {
			t.Error(err)
		}
		mu.Lock()
		n++
		which := n
		mu.Unlock()
		hold(which)
		if which%10 == 0 {
			_, _ = fmt.Fprintf(w, `{"response":{"uid":%q,"allowed":true,"auditAnnotations":{"reason":"shed"}}}`, in.Request.UID)
			return
		}
		_, _ = fmt.Fprintf(w, `{"response":{"uid":%q,"allowed":true}}`, in.Request.UID)
	}))
	t.Cleanup(server.Close)
	roots = x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server.URL, roots
}

func config(target string, roots *x509.CertPool) Config {
	return Config{
		Target: target, Roots: roots, Records: []Record{{"x", "/validate", json.RawMessage(review)}},
		Rate: 100, Duration: time.Second, Timeout: time.Minute, Names: 3,
	}
}

func TestRunCountsWhatIsAnswered(t *testing.T) {
	cfg := config(webhook(t, func(int) {}))
	samples := 0
	cfg.Sample = func() { samples++ }
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Sent != 100 || r.Failed() != 0 || r.Latency.Count() != 100 || r.Shed != 10 || samples < 2 {
		t.Errorf("%d samples, %s", samples, r)
	}
	if !strings.Contains(r.String(), "errors 0") {
		t.Errorf("report %s", r)
	}
}

func TestAWarmupIsSentAndNotCounted(t *testing.T) {
	var answered atomic.Int64
	cfg := config(webhook(t, func(int) { answered.Add(1) }))
	cfg.Warmup = 200 * time.Millisecond
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Sent != 100 || r.Latency.Count() != 100 || answered.Load() != 120 {
		t.Errorf("%d answered, %s", answered.Load(), r)
	}
}

// One stall of the webhook delays every request that became due meanwhile, and
// all of them have to show it: a driver that waits for answers would show one.
func TestAStallCountsForAllThatBecameDueMeanwhile(t *testing.T) {
	// It ends with the arrival of the 70th request, which is not sent before it is due.
	over := make(chan struct{})
	cfg := config(webhook(t, func(n int) {
		switch {
		case n == 70:
			close(over)
		case n >= 30:
			<-over
		}
	}))
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Sent != 100 || r.Failed() != 0 {
		t.Fatal(r)
	}
	if p80 := r.Latency.Quantile(.8); p80 < 100*time.Millisecond {
		t.Errorf("40 of 100 requests became due in a stall, ten milliseconds after one another, and the 80th percentile is %v", p80)
	}
}

func TestErrorsAreCountedByKind(t *testing.T) {
	never := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body) // a caller that is gone shows in the answer
		switch req.URL.Path {
		case "/status":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/denied":
			_, _ = io.WriteString(w, `{"response":{"uid":"x","allowed":false}}`)
		case "/slow":
			<-never
		}
	}))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for path, want := range map[string]string{"/status": "status 503", "/denied": errAnswer.Error(), "/slow": "time-out"} {
		cfg := config(server.URL, roots)
		cfg.Records[0].Path, cfg.Duration = path, 50*time.Millisecond
		if path == "/slow" {
			cfg.Timeout = 100 * time.Millisecond
		}
		r, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if r.Errors[want] != r.Sent || r.Sent != 5 {
			t.Errorf("%s: %v", path, r)
		}
	}
	close(never)
	server.Close()
	r, err := Run(t.Context(), config(server.URL, roots))
	if err != nil || r.Errors["connection"] != r.Sent {
		t.Errorf("%v %v", r, err)
	}
}

func TestRunRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"another machine":             func(c *Config) { c.Target = "https://192.0.2.1:443" },
		"a name, whatever it means":   func(c *Config) { c.Target = "https://localhost:443" },
		"plain HTTP":                  func(c *Config) { c.Target = "http://127.0.0.1:80" },
		"no target":                   func(c *Config) { c.Target = "" },
		"no rate":                     func(c *Config) { c.Rate = 0 },
		"more than the largest rate":  func(c *Config) { c.Rate = MaxRate + 1 },
		"longer than the longest run": func(c *Config) { c.Warmup = MaxDuration },
		"no time":                     func(c *Config) { c.Duration = 0 },
		"no records":                  func(c *Config) { c.Records = nil },
		"no names":                    func(c *Config) { c.Names = 0 },
		"no patience":                 func(c *Config) { c.Timeout = 0 },
	} {
		cfg := config("https://127.0.0.1:1", nil)
		change(&cfg)
		if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := config(webhook(t, func(n int) {
		if n == 5 {
			cancel()
		}
	}))
	cfg.Duration = time.Minute
	r, err := Run(ctx, cfg)
	if err != nil || r.Sent > 1000 {
		t.Errorf("%v %v", r, err)
	}
}

func TestResidentBytes(t *testing.T) {
	now, peak, err := ResidentBytes(os.Getpid())
	if err != nil || now < 1<<20 || peak < now {
		t.Errorf("%d, at most %d: %v", now, peak, err)
	}
	if _, _, err := ResidentBytes(-1); err == nil {
		t.Error("a process that is none has memory")
	}
}
