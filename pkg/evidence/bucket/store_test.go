// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/bucket"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
	"github.com/plumbline-dev/plumbline/pkg/evidence/volume"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an S3 server in this process, on a port of its own; wrap may put
// faults before it.
func server(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-canary")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	backend := s3mem.New()
	if err := backend.CreateBucket("evidence"); err != nil {
		t.Fatal(err)
	}
	handler := gofakes3.New(backend).Server()
	if wrap != nil {
		handler = wrap(handler)
	}
	srv := httptest.NewServer(handler)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

func address(endpoint, name, more string) string {
	return fmt.Sprintf("s3://%s?region=us-east-1&use_path_style=true&endpoint=%s%s", name, endpoint, more)
}

func open(t *testing.T, url string) evidence.Store {
	t.Helper()
	s, err := bucket.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Contract(t, func(t *testing.T) evidence.Store {
		return open(t, address(server(t, nil), "evidence", ""))
	})
}

func TestStore_BelowAPrefix(t *testing.T) {
	endpoint := server(t, nil)
	inner := open(t, address(endpoint, "evidence", "&prefix=plumbline/"))
	if err := inner.Create(t.Context(), evidence.Name("chain", 1), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, inner); len(got) != 1 || got[0] != evidence.Name("chain", 1) {
		t.Errorf("below the prefix: %v", got)
	}
	if got := names(t, open(t, address(endpoint, "evidence", ""))); !slices.Contains(got, "plumbline/"+evidence.Name("chain", 1)) {
		t.Errorf("in the whole bucket: %v", got)
	}
}

func names(t *testing.T, s evidence.Store) []string {
	t.Helper()
	all, err := listed(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if s := open(t, "file://"+dir); s == nil {
		t.Error("no store")
	} else if _, ok := s.(*volume.Store); !ok {
		t.Errorf("got %T for a directory", s)
	}
	for name, url := range map[string]string{
		"another scheme":         "gs://bucket",
		"no scheme":              dir,
		"no URL":                 "://",
		"another host":           "file://elsewhere/tmp",
		"parameters":             "file://" + dir + "?create_dir=1",
		"an absent directory":    "file://" + dir + "/absent",
		"an unknown parameter":   "s3://evidence?region=x&color=blue",
		"no name of a bucket":    "s3://?region=x",
		"a password in the link": "ftp://user:secret-canary@host/",
	} {
		if _, err := bucket.Open(t.Context(), url); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func reasonOf(err error) evidence.StoreReason {
	var failed *evidence.StoreError
	if !errors.As(err, &failed) {
		return ""
	}
	return failed.Reason
}

// unconditional is a server that ignores the condition, as older ones do.
func unconditional(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-None-Match")
		next.ServeHTTP(w, r)
	})
}

// D24 of the review of remediation: a bucket that keeps versions kept 32 KiB for each look
// at a plan that waited.
func TestReady_WritesOneByte(t *testing.T) {
	s := open(t, address(server(t, nil), "evidence", ""))
	for range 2 {
		if err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := s.Read(t.Context(), "probe"); err != nil || len(data) != 1 {
		t.Errorf("a probe is %d bytes, %v", len(data), err)
	}
}

func TestReady_RefusesAServerThatIgnoresTheCondition(t *testing.T) {
	s := open(t, address(server(t, unconditional), "evidence", ""))
	if err := s.Ready(t.Context()); reasonOf(err) != evidence.StoreUnsupported {
		t.Errorf("ready: got %v, want Unsupported", err)
	}
	if err := s.Create(t.Context(), evidence.Name("chain", 1), []byte("x")); reasonOf(err) != evidence.StoreUnsupported {
		t.Errorf("create: got %v, want Unsupported", err)
	}
	if _, err := s.Read(t.Context(), evidence.Name("chain", 1)); !errors.Is(err, evidence.ErrNotFound) {
		t.Errorf("it was written all the same: %v", err)
	}
}

// answering is a server that refuses everything in one way.
func answering(status int, code string) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>no</Message></Error>", code)
		})
	}
}

func TestStore_FailsTyped(t *testing.T) {
	cases := map[string]struct {
		wrap   func(http.Handler) http.Handler
		bucket string
		want   evidence.StoreReason
	}{
		"no bucket":         {nil, "absent", evidence.StoreUnreachable},
		"full":              {answering(507, "XMinioStorageFull"), "evidence", evidence.StoreFull},
		"over the quota":    {answering(403, "QuotaExceeded"), "evidence", evidence.StoreFull},
		"not allowed":       {answering(403, "AccessDenied"), "evidence", evidence.StoreDenied},
		"an old token":      {answering(400, "ExpiredToken"), "evidence", evidence.StoreDenied},
		"something strange": {answering(400, "Strange"), "evidence", evidence.StoreFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := open(t, address(server(t, tc.wrap), tc.bucket, ""))
			if err := s.Create(t.Context(), evidence.Name("chain", 1), []byte("x")); reasonOf(err) != tc.want {
				t.Errorf("create: got %v, want %s", err, tc.want)
			}
			if _, err := s.Read(t.Context(), evidence.Name("chain", 1)); reasonOf(err) != tc.want {
				t.Errorf("read: got %v, want %s", err, tc.want)
			}
			if err := s.Ready(t.Context()); reasonOf(err) != tc.want || strings.Contains(err.Error(), "canary") {
				t.Errorf("ready: got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestStore_NobodyAnswers: a closed port, and a server that never answers.
func TestStore_NobodyAnswers(t *testing.T) {
	released := make(chan struct{})
	hanging := server(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-released:
			}
		})
	})
	defer close(released)
	for name, endpoint := range map[string]string{"a closed port": "http://127.0.0.1:1", "a server that hangs": hanging} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		err := open(t, address(endpoint, "evidence", "")).Create(ctx, evidence.Name("chain", 1), []byte("x"))
		cancel()
		if reasonOf(err) != evidence.StoreUnreachable {
			t.Errorf("%s: got %v, want Unreachable", name, err)
		}
	}
}

// TestReason tells the answers apart that the SDK tries again by itself, which
// takes seconds against a server.
func TestReason(t *testing.T) {
	for code, want := range map[string]evidence.StoreReason{
		"SlowDown": evidence.StoreUnreachable, "InternalError": evidence.StoreUnreachable,
		"ConditionalRequestConflict": evidence.StoreUnreachable, "NotImplemented": evidence.StoreUnsupported,
		"QuotaExceeded": evidence.StoreFull, "SignatureDoesNotMatch": evidence.StoreDenied, "Strange": evidence.StoreFailed,
	} {
		err := fmt.Errorf("doing: %w", &smithy.GenericAPIError{Code: code, Fault: smithy.FaultClient})
		if got := bucket.Reason(err); got != want {
			t.Errorf("%s: got %s, want %s", code, got, want)
		}
	}
	strange := &smithy.GenericAPIError{Code: "Strange", Fault: smithy.FaultServer}
	if got := bucket.Reason(strange); got != evidence.StoreUnreachable {
		t.Errorf("an unknown fault of the server: got %s", got)
	}
}
