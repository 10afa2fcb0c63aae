// SPDX-License-Identifier: Apache-2.0

package inprocess_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
)

func TestAServerTellsTheTimeOfTheClockThatItIsSetBy(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	clock, config := &inprocess.Ahead{}, &rest.Config{Host: server.URL}
	clock.Dates(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{0, time.Hour, 30 * 24 * time.Hour} {
		if ahead > 0 {
			clock.Set(time.Now().Add(ahead))
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // it is empty
		told, err := http.ParseTime(answer.Header.Get("Date"))
		if err != nil {
			t.Fatal(err)
		}
		// What is stored of a time are whole seconds, and some pass on a busy machine.
		want := time.Now().Add(ahead)
		if off := want.Sub(told); off < 0 || off > time.Minute {
			t.Errorf("%s ahead the server tells %s, want about %s", ahead, told, want)
		}
		if since := clock.Since(time.Now()); since < ahead-time.Minute || since > ahead+time.Minute {
			t.Errorf("%s ahead it is %s since now", ahead, since)
		}
	}
}
