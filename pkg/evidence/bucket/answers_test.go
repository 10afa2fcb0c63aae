// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// portal answers each request with one page and the status 200 while it is on, and with an
// ETag, as some web frameworks do.
type portal struct {
	kind, page string
	on         atomic.Bool
}

func (p *portal) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.on.Load() {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", p.kind)
		w.Header().Set("ETag", `"d41d8cd98f00b204e9800998ecf8427e"`)
		_, _ = io.WriteString(w, p.page)
	})
}

const page = "<!DOCTYPE html><html><body><p>Please sign in</p></body></html>"

// A captive portal, or a proxy that lost its upstream, answered the request to store a
// record with the status 200. The record counted as stored, and a probe found the store ready.
func TestAPortalThatAnswersWithSuccessStoresNoRecord(t *testing.T) {
	for name, test := range map[string]struct {
		kind, page string
		reads      bool // the page passes as an object
	}{
		"a page in HTML":              {kind: "text/html; charset=utf-8", page: page},
		"a page in XHTML":             {kind: "application/xhtml+xml", page: page},
		"a page that is no valid XML": {kind: "text/html", page: "<html><br><body>"},
		"a page of another type":      {kind: "text/plain", page: page, reads: true},
		"a line of text":              {kind: "text/plain", page: "OK", reads: true},
		"no page":                     {kind: "text/plain", reads: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &portal{kind: test.kind, page: test.page}
			s := open(t, address(server(t, p.before), "evidence", ""))
			first, second := evidence.Name("chain", 1), evidence.Name("chain", 2)

			p.on.Store(true)
			fails(t, "before the first probe", s, first, test.reads)

			p.on.Store(false)
			if err := s.Create(t.Context(), first, []byte("x")); err != nil {
				t.Fatalf("once the portal is gone: %v", err)
			}

			p.on.Store(true)
			fails(t, "after a record", s, second, test.reads)

			p.on.Store(false)
			if _, err := s.Read(t.Context(), second); !errors.Is(err, evidence.ErrNotFound) {
				t.Errorf("the record that the portal took: got %v, want ErrNotFound", err)
			}
		})
	}
}

// fails checks that no call believes the portal. reads says that the page cannot be told
// from an object: the reader of the record judges it.
func fails(t *testing.T, when string, s evidence.Store, record string, reads bool) {
	t.Helper()
	if err := s.Create(t.Context(), record, []byte("{}")); reasonOf(err) == "" {
		t.Errorf("%s, create: got %v, want a failure of the store", when, err)
	}
	if err := s.Ready(t.Context()); reasonOf(err) == "" || reasonOf(err) == evidence.StoreUnsupported {
		t.Errorf("%s, ready: got %v, want a failure of the store that blames no condition", when, err)
	}
	if _, err := s.Read(t.Context(), record); !reads && reasonOf(err) != evidence.StoreUnreachable {
		t.Errorf("%s, read: got %v, want Unreachable", when, err)
	}
	if got, err := listed(t, s); reasonOf(err) != evidence.StoreUnreachable {
		t.Errorf("%s, list: got %v and %v, want Unreachable", when, got, err)
	}
}

func listed(t *testing.T, s evidence.Store) ([]string, error) {
	t.Helper()
	var all []string
	for name, err := range s.List(t.Context(), "") {
		if err != nil {
			return all, err
		}
		all = append(all, name)
	}
	return all, nil
}

// forgetful is a server that loses each record, and says that it stored the record.
func forgetful(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && r.URL.Path != "/evidence/probe" {
			w.Header().Set("ETag", `"d41d8cd98f00b204e9800998ecf8427e"`)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestARecordThatTheServerDoesNotHaveIsNotStored(t *testing.T) {
	s := open(t, address(server(t, forgetful), "evidence", ""))
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), evidence.Name("chain", 1), []byte("x")); reasonOf(err) != evidence.StoreFailed {
		t.Errorf("got %v, want Failed", err)
	}
}
