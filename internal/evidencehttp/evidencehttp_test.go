// SPDX-License-Identifier: Apache-2.0

package evidencehttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/volume"
)

const (
	chain  = "0f0e0d0c-0b0a-4908-8706-050403020100"
	digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
)

func decision(name string) evidence.Record {
	return evidence.Record{
		Kind: evidence.KindPlanCreated, At: time.Unix(1, 0), Chain: evidence.Chain{UID: chain}, InitiatedBy: "system:auto",
		Builder: evidence.Builder{Version: "test"},
		Subject: evidence.Subject{APIVersion: "plumbline.dev/v1alpha1", Kind: "RemediationPlan", Namespace: "shop", Name: name, UID: "u-" + name, Hash: digest},
	}
}

// written is a store with two records, and the keys they are believed by.
func written(t *testing.T) evidence.Writer {
	t.Helper()
	private, public, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := evidence.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := evidence.ParseKeyring(public)
	if err != nil {
		t.Fatal(err)
	}
	store, err := volume.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := evidence.Writer{Store: store, Signer: key, Keys: ring}
	head := evidence.Head{}
	for _, name := range []string{"a", "b"} {
		sealed, err := w.Append(t.Context(), head, decision(name))
		if err != nil {
			t.Fatal(err)
		}
		head = sealed.Head()
	}
	return w
}

func client(server *httptest.Server) evidencehttp.Client {
	return evidencehttp.Client{Get: func(ctx context.Context, path string, query map[string]string) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			return nil, err
		}
		values := request.URL.Query()
		for k, v := range query {
			values.Set(k, v)
		}
		request.URL.RawQuery = values.Encode()
		response, err := server.Client().Do(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		switch response.StatusCode {
		case http.StatusOK:
			return io.ReadAll(response.Body)
		case http.StatusNotFound:
			return nil, apierrors.NewNotFound(schema.GroupResource{}, path)
		}
		return nil, errors.New(response.Status)
	}}
}

func TestRecordsAreVerifiedThroughTheServer(t *testing.T) {
	w := written(t)
	server := httptest.NewServer(evidencehttp.Handler(w.Store))
	defer server.Close()
	report, err := evidence.Verify(t.Context(), client(server), w.Keys, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || len(report.Chains) != 1 || report.Chains[0].Records != 2 {
		t.Errorf("the report is %+v", report)
	}
	var names []string
	for name, err := range client(server).List(t.Context(), chain) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if d := cmp.Diff([]string{evidence.Name(chain, 1), evidence.Name(chain, 2)}, names); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
}

func TestABodyIsReadThroughTheServer(t *testing.T) {
	w := written(t)
	body := bytes.Repeat([]byte("0123456789abcdef"), evidence.MaxEnvelope)
	digest, err := w.Keep(t.Context(), chain, body)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(evidencehttp.Handler(w.Store))
	defer server.Close()
	got, err := evidence.ReadBody(t.Context(), client(server), chain, digest)
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(body))
	}
}

func TestNothingButRecordsAndBodiesIsServed(t *testing.T) {
	server := httptest.NewServer(evidencehttp.Handler(written(t).Store))
	defer server.Close()
	for name, path := range map[string]string{
		"a record that is not there":    "/evidence/" + evidence.Name(chain, 3),
		"a path out of the store":       "/evidence/..%2f..%2fetc/passwd",
		"a name that no record has":     "/evidence/" + chain + "/secret.txt",
		"a body that is not there":      "/evidence/" + evidence.BodyName(chain, digest),
		"a file outside of the records": "/etc/passwd",
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusNotFound {
				t.Errorf("%s answers %s", path, response.Status)
			}
		})
	}
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/evidence/"+evidence.Name(chain, 1), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s answers %s", method, response.Status)
		}
	}
}

func TestAStoreThatIsReadThroughTheServerTakesNothing(t *testing.T) {
	server := httptest.NewServer(evidencehttp.Handler(written(t).Store))
	defer server.Close()
	store := client(server)
	var failure *evidence.StoreError
	if err := store.Create(t.Context(), evidence.Name(chain, 3), nil); !errors.As(err, &failure) || failure.Reason != evidence.StoreReadOnly {
		t.Errorf("creating: %v", err)
	}
	if err := store.Ready(t.Context()); !errors.As(err, &failure) {
		t.Errorf("it says that it could be written: %v", err)
	}
	if _, err := store.Read(t.Context(), evidence.Name(chain, 9)); !errors.Is(err, evidence.ErrNotFound) {
		t.Errorf("reading what is not there: %v", err)
	}
	server.Close()
	if _, err := store.Read(t.Context(), evidence.Name(chain, 1)); !errors.As(err, &failure) || failure.Reason != evidence.StoreUnreachable {
		t.Errorf("reading while nobody is there: %v", err)
	}
}
