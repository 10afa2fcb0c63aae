// SPDX-License-Identifier: Apache-2.0

package evidencehttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

func TestThePortOfAnExecutorIsAStore(t *testing.T) {
	w := written(t)
	server := httptest.NewServer(evidencehttp.Handler(w.Store))
	defer server.Close()
	client := evidencehttp.NewClient()
	defer client.CloseIdleConnections()
	store := evidencehttp.Client{Get: evidencehttp.Reach(client, server.Listener.Addr().String())}
	var names []string
	for name, err := range store.List(t.Context(), chain) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if len(names) != 2 {
		t.Fatalf("the names are %q", names)
	}
	there, err := w.Store.Read(t.Context(), names[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.Read(t.Context(), names[0]); err != nil || string(got) != string(there) {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := store.Read(t.Context(), strings.Replace(names[1], "2.json", "3.json", 1)); !errors.Is(err, evidence.ErrNotFound) {
		t.Errorf("a record that is not there: %v", err)
	}
}

func TestAnAnswerThatIsNoRecordIsAnError(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a secret of another server")) }))
	defer elsewhere.Close()
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a store that is away":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "503"},
		"a redirect to another server": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "302"},
		"an answer that breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		}, "unexpected EOF"},
		"an answer without an end": {func(w http.ResponseWriter, r *http.Request) {
			for block := []byte(strings.Repeat("x", 1<<20)); r.Context().Err() == nil; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "more than 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			defer server.Close()
			client := evidencehttp.NewClient()
			defer client.CloseIdleConnections()
			got, err := evidencehttp.Reach(client, server.Listener.Addr().String())(t.Context(), evidencehttp.Prefix, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) || got != nil {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
		})
	}
}
