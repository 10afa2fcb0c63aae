// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/replay"
)

const recorded = "testdata/reviews.ndjson"

func TestTheProgramReplaysTheRecordedReviews(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review struct{ Request struct{ UID string } }
		body, err := io.ReadAll(req.Body)
		if err != nil || json.Unmarshal(body, &review) != nil {
			t.Errorf("%v in %.200s", err, body)
		}
		_, _ = io.WriteString(w, `{"response":{"uid":"`+review.Request.UID+`","allowed":true}}`)
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	args := []string{"--target=" + server.URL, "--ca=" + ca, "--records=" + recorded, "--rates=50,100", "--duration=200ms", "--warmup=0s", "--pid=" + strconv.Itoa(os.Getpid())}
	if err := run(t.Context(), args, &out, &errs); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	if lines := strings.Count(out.String(), "errors 0"); lines != 2 || !strings.Contains(out.String(), "rss ") {
		t.Errorf("%s", &out)
	}
	for name, bad := range map[string][]string{
		"no CA":             {"--target=" + server.URL},
		"another machine":   {"--target=https://192.0.2.1", "--ca=" + ca, "--records=" + recorded},
		"a rate in words":   {"--target=" + server.URL, "--ca=" + ca, "--records=" + recorded, "--rates=many"},
		"a missing record":  {"--target=" + server.URL, "--ca=" + ca, "--records=nope"},
		"a CA that is none": {"--target=" + server.URL, "--ca=" + recorded, "--records=" + recorded},
	} {
		if err := run(t.Context(), bad, io.Discard, io.Discard); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// What is replayed came from a real API server; the integration tests of
// admission record it, and hold the present one against it.
func TestTheRecordedReviewsAreOfEveryKind(t *testing.T) {
	file, err := os.Open(recorded)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	records, err := replay.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range records {
		var review struct {
			Request struct{ Operation, SubResource string }
		}
		if err := json.Unmarshal(r.Review, &review); err != nil {
			t.Fatal(err)
		}
		seen[r.Path+" "+review.Request.Operation+" "+review.Request.SubResource]++
	}
	for _, want := range []string{"/mutate CREATE ", "/mutate UPDATE ", "/validate CREATE ", "/validate UPDATE ", "/validate DELETE ", "/validate UPDATE scale"} {
		if seen[want] == 0 {
			t.Errorf("no %s among %v", want, seen)
		}
	}
}
