// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

func TestFailpointsAreRead(t *testing.T) {
	tests := map[string]struct {
		text string
		want []failpoint
		bad  bool
	}{
		"nothing":                         {text: ""},
		"a kill before a write":           {text: "kill:before:write web", want: []failpoint{{actKill, whenBefore, "write web"}}},
		"a write with colons and commas":  {text: "stop:after:plan Running: Intent, Planned", want: []failpoint{{actStop, whenAfter, "plan Running: Intent, Planned"}}},
		"an answer cannot be lost before": {text: "lose:before:write web", bad: true},
		"a write cannot be late after":    {text: "late:after:write web", bad: true},
		"no write":                        {text: "kill:before", bad: true},
		"an unknown act":                  {text: "sleep:before:write web", bad: true},
		"a clock without a time":          {text: "clock:soon", bad: true},
		"a lease without a time":          {text: "lease:short", bad: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var f failpoints
			err := f.parse(tc.text)
			if (err != nil) != tc.bad {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tc.want, f.points, cmp.AllowUnexported(failpoint{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFailpointHappensOnce(t *testing.T) {
	var f failpoints
	for _, text := range []string{"lose:after:record 2", "mute", "clock:-1h", "lease:3s", "probe:1ms"} {
		if err := f.parse(text); err != nil {
			t.Fatal(err)
		}
	}
	if !f.mute || f.clock != -time.Hour || f.lease != 3*time.Second {
		t.Errorf("mute %t, clock %s, lease %s", f.mute, f.clock, f.lease)
	}
	want := []string{"", actLose, ""}
	var got []string
	for _, write := range []string{"record 1", "record 2", "record 2"} {
		got = append(got, f.reached(write).act)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWritesOfTargetsHaveNames(t *testing.T) {
	tests := map[string]struct{ method, path, body, want string }{
		"an object is written": {http.MethodPut, "/apis/apps/v1/namespaces/shop/deployments/web", `{"metadata":{"name":"web"}}`, "write web"},
		"an object is fenced":  {http.MethodPut, "/apis/apps/v1/namespaces/shop/deployments/web", `{"metadata":{"name":"web","labels":{"` + evidence.LabelFence + `":"x"}}}`, "fence web"},
		"an object is made":    {http.MethodPost, "/apis/apps/v1/namespaces/shop/deployments", `{"metadata":{"name":"web"}}`, "make web"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, tc.path, http.NoBody)
			if got := nameOf(r, []byte(tc.body)); got != tc.want {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAWriteThatMeetsAConflictIsNotTheOneThatIsMeant(t *testing.T) {
	codes := []int{http.StatusConflict, http.StatusOK}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(codes[0])
		codes = codes[1:]
	}))
	t.Cleanup(server.Close)
	points := &failpoints{points: []failpoint{{actLose, whenAfter, "write web"}}}
	client := &http.Client{Transport: &failingTransport{http.DefaultTransport, points}}
	put := func() (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/apis/apps/v1/namespaces/shop/deployments/web", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		return client.Do(r)
	}
	answer, err := put()
	if err != nil || answer.StatusCode != http.StatusConflict {
		t.Fatalf("the first answer is %v, %v; want a conflict", answer, err)
	}
	_ = answer.Body.Close() // empty
	if answer, err := put(); err == nil {
		_ = answer.Body.Close() // empty
		t.Errorf("the second answer is %s, want none", answer.Status)
	}
}
