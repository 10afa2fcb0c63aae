// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

var urlRef, keyRef = notify.SecretRef{Name: "hook", Key: "url"}, notify.SecretRef{Name: "hook", Key: "key"}

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // a client that has read enough is gone
	}
}

func TestAnAskerHandsTheAnswerOn(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   Reply
	}{
		"an answer": {answering(200, `{"result":"Pass"}`), Reply{200, []byte(`{"result":"Pass"}`)}},
		"an error":  {answering(503, "down"), Reply{503, []byte("down")}},
		"a redirect is not followed": {func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "/elsewhere", http.StatusTemporaryRedirect)
		}, Reply{307, []byte{}}},
		"an answer that is too long":    {answering(200, strings.Repeat("a", 1000)), Reply{200, []byte(strings.Repeat("a", 101))}},
		"an answer of a hundred bytes":  {answering(200, strings.Repeat("a", 100)), Reply{200, []byte(strings.Repeat("a", 100))}},
		"an answer that has no content": {answering(204, ""), Reply{204, []byte{}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := receive(t, tc.answer)
			a := NewAsker(vault{"url": r.URL, "key": signingKey}.resolve, loopback, trusting(r.Certificate()))
			got, failure := a.Ask(t.Context(), urlRef, keyRef, "evt_1", []byte(`{"a":1}`), 100)
			if diff := cmp.Diff(tc.want, got); failure != nil || diff != "" {
				t.Fatalf("the failure is %v, and the reply (-want +got):\n%s", failure, diff)
			}
			sent := r.requests()
			if len(sent) != 1 || string(sent[0].body) != `{"a":1}` || sent[0].header.Get("Content-Type") != "application/json" {
				t.Fatalf("the receiver got %+v", sent)
			}
			seconds, err := strconv.ParseInt(sent[0].header.Get(notify.HeaderWebhookTimestamp), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			keys, err := notify.ParseSigningKeys(signingKey)
			if err != nil {
				t.Fatal(err)
			}
			if want := notify.Sign(keys, "evt_1", time.Unix(seconds, 0), sent[0].body); sent[0].header.Get(notify.HeaderWebhookSignature) != want || sent[0].header.Get(notify.HeaderWebhookID) != "evt_1" {
				t.Errorf("the headers are %v, want the signature %s", sent[0].header, want)
			}
		})
	}
}

func TestAnAskerFailsAsANotifierDoes(t *testing.T) {
	r := receive(t, answering(200, ""))
	hangs := receive(t)
	hangs.answers = []http.HandlerFunc{func(http.ResponseWriter, *http.Request) { <-hangs.release }}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for name, tc := range map[string]struct {
		ctx    context.Context
		vault  vault
		egress Egress
		want   Cause
	}{
		"no URL":                        {t.Context(), vault{"key": signingKey}, loopback, CauseSecret},
		"no key":                        {t.Context(), vault{"url": r.URL}, loopback, CauseSecret},
		"a key that is none":            {t.Context(), vault{"url": r.URL, "key": "whsec_short"}, loopback, CauseSecretMalformed},
		"a URL without TLS":             {t.Context(), vault{"url": "http://127.0.0.1/", "key": signingKey}, loopback, CauseSecretMalformed},
		"an address that is not public": {t.Context(), vault{"url": r.URL, "key": signingKey}, Egress{}, CauseAddressRefused},
		"a receiver that hangs":         {soon, vault{"url": hangs.URL, "key": signingKey}, loopback, CauseTimeout},
		"a receiver that is not there":  {t.Context(), vault{"url": "https://127.0.0.1:1", "key": signingKey}, loopback, CauseConnection},
	} {
		t.Run(name, func(t *testing.T) {
			pool := trusting(r.Certificate())
			_, failure := NewAsker(tc.vault.resolve, tc.egress, pool).Ask(tc.ctx, urlRef, keyRef, "evt_1", []byte("{}"), 100)
			if failure == nil || failure.Cause != tc.want {
				t.Errorf("the failure is %v, want %q", failure, tc.want)
			}
		})
	}
}
