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
		begun := time.Now()
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
		// A header holds whole seconds.
		earliest, latest := begun.Add(ahead).Truncate(time.Second), time.Now().Add(ahead)
		if told.Before(earliest) || told.After(latest) {
			t.Errorf("%s ahead the server tells %s, want a time from %s to %s", ahead, told, earliest, latest)
		}
		since := clock.Since(begun)
		if most := time.Since(begun) + ahead; since < ahead || since > most {
			t.Errorf("%s ahead it is %s since now, want %s to %s", ahead, since, ahead, most)
		}
	}
}
