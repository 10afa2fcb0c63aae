// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/internal/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func now() time.Time { return noon }

// vector has samples of these values.
func vector(values ...string) string {
	var samples []string
	for _, v := range values {
		samples = append(samples, fmt.Sprintf(`{"metric":{},"value":[%d,%q]}`, noon.Unix(), v))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
}

// ask returns a client of a server that answers like this.
func ask(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	c, err := New(source.Config{URL: s.URL + "/select/0/"}, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that has read enough is gone
	}
}

func TestQuery(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		want   float64
		fault  string
	}{
		"one number":                 {says(200, vector("0.25")), 0.25, ""},
		"several numbers":            {says(200, vector("1", "2")), 0, "2 samples"},
		"no number":                  {says(200, vector()), 0, "0 samples"},
		"a value that is no number":  {says(200, vector("NaN")), 0, "NaN"},
		"an error":                   {says(503, "overloaded"), 0, "answers 503"},
		"an answer of more":          {says(200, vector("3")+strings.Repeat(" ", 1<<20)), 0, "more than 1048576 bytes"},
		"a redirect is not followed": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, 0, "answers 302"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, tc.answer).Query(t.Context(), "up")
			if (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) || got != tc.want {
				t.Errorf("got %v and %v, want %v and %q", got, err, tc.want, tc.fault)
			}
		})
	}
}

func TestAQueryIsAskedAsTheAPIDemands(t *testing.T) {
	c := ask(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/select/0/api/v1/query" || r.FormValue("query") != `up{a="b"}` || r.FormValue("timeout") != "9s" {
			t.Errorf("the request is %s %s %v", r.Method, r.URL, r.Form)
		}
		_, _ = io.WriteString(w, vector("1"))
	})
	if got, err := c.Query(t.Context(), `up{a="b"}`); err != nil || got != 1 {
		t.Errorf("got %v and %v", got, err)
	}
}

func TestAPrometheusThatIsNotReachedHasNoData(t *testing.T) {
	c := ask(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if got, err := c.Query(t.Context(), "up"); !errors.Is(err, ErrUnreachable) || got != 0 {
		t.Errorf("got %v and %v, want no answer", got, err)
	}
}
