// SPDX-License-Identifier: Apache-2.0

package proxieshttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

func pods(list proxieshttp.List) string {
	var names []string
	for _, p := range list.Proxies {
		names = append(names, p.Namespace+"/"+p.Pod)
	}
	return strings.Join(names, " ")
}

func TestAFilterNarrowsTheListDown(t *testing.T) {
	for name, tc := range map[string]struct {
		filter proxieshttp.Filter
		want   string
	}{
		"nothing is asked for":       {proxieshttp.Filter{}, "bank/pay-0 shop/front-0 shop/slow-0 shop/starts-0"},
		"a namespace":                {proxieshttp.Filter{Namespace: "bank"}, "bank/pay-0"},
		"a pod":                      {proxieshttp.Filter{Pod: "front-0"}, "shop/front-0"},
		"a stage of a resource":      {proxieshttp.Filter{Stage: ads.Refused}, "shop/front-0"},
		"a stage that nothing is in": {proxieshttp.Filter{Stage: ads.Held}, ""},
		"a proxy that reads nothing": {proxieshttp.Filter{Stage: proxieshttp.Blocked}, "shop/slow-0"},
		"a proxy that has to wait":   {proxieshttp.Filter{Stage: proxieshttp.Waiting}, "shop/starts-0"},
		// Of those that do not answer it is not known whether they have it.
		"a service":                          {proxieshttp.Filter{Service: "pay"}, "bank/pay-0 shop/slow-0 shop/starts-0"},
		"a service with its namespace":       {proxieshttp.Filter{Service: "shop/web"}, "shop/front-0 shop/slow-0 shop/starts-0"},
		"a service of another namespace":     {proxieshttp.Filter{Service: "bank/web"}, "shop/slow-0 shop/starts-0"},
		"a stage of the other service":       {proxieshttp.Filter{Service: "shop/cart", Stage: ads.Refused}, ""},
		"what comes behind a place":          {proxieshttp.Filter{Continue: "shop/front-0"}, "shop/slow-0 shop/starts-0"},
		"one proxy on a page, and all":       {proxieshttp.Filter{Limit: 1}, "bank/pay-0 shop/front-0 shop/slow-0 shop/starts-0"},
		"one on a page, of a stage, and all": {proxieshttp.Filter{Limit: 1, Stage: proxieshttp.Waiting}, "shop/starts-0"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := client(served(t, shop())).List(t.Context(), tc.filter)
			if err != nil {
				t.Fatal(err)
			}
			if got := pods(list); got != tc.want || list.Replica != "xds-0" {
				t.Errorf("got %q of %s, want %q", got, list.Replica, tc.want)
			}
		})
	}
}

func TestAProxyIsShownWithItsResources(t *testing.T) {
	list, found, err := client(served(t, shop())).Proxy(t.Context(), "shop", "front-0", proxieshttp.Filter{Service: "shop/web"})
	if err != nil || !found {
		t.Fatal(found, err)
	}
	since := began
	want := []proxieshttp.Proxy{{
		Namespace: "shop", Pod: "front-0", PodUID: "uid-front-0", ServiceAccount: "front", Node: "shop/front-0", Envoy: "1.40.0", ConnectedSince: began, TokenExpires: ended,
		Stages: map[ads.Stage]int{ads.Acknowledged: 1, ads.Refused: 1},
		Resources: []proxieshttp.Resource{
			{Type: "Cluster", Name: "shop/web|80|", Stage: ads.Acknowledged, Has: "2.h", Wants: "2.h", Since: &since},
			{Type: "Route", Name: "shop/web|80", Stage: ads.Refused, Wants: "2.h", Why: "no <b>such</b> match", Since: &since},
		},
	}}
	if diff := cmp.Diff(want, list.Proxies); diff != "" {
		t.Errorf("it is (-want +got):\n%s", diff)
	}
	if _, found, err := client(served(t, shop())).Proxy(t.Context(), "shop", "none", proxieshttp.Filter{}); found || err != nil {
		t.Errorf("a pod that is not connected: %v %v", found, err)
	}
	list, _, err = client(served(t, shop())).Proxy(t.Context(), "shop", "front-0", proxieshttp.Filter{Stage: ads.Refused})
	if err != nil || len(list.Proxies[0].Resources) != 1 || list.Proxies[0].Resources[0].Stage != ads.Refused {
		t.Errorf("of one stage: %v %+v", err, list.Proxies)
	}
}

func TestWhatCannotBeAskedIsSaid(t *testing.T) {
	for query, want := range map[string]string{
		"?stage=Stuck":        `stage: "Stuck" is not one of [Blocked Waiting Refused Held Going OnTheWay Queued Acknowledged]`,
		"?limit=0":            `limit: "0" is not a number from 1 to 1000`,
		"?limit=1001":         `limit: "1001" is not a number from 1 to 1000`,
		"?limit=many":         `limit: "many" is not a number from 1 to 1000`,
		"?service=shop/":      `service: "shop/" is not [namespace/]name`,
		"?service=a/b/c":      `service: "a/b/c" is not [namespace/]name`,
		"?continue=somewhere": `continue: "somewhere" is not the end of a page`,
		"?namespce=shop":      `"namespce" is no parameter: want namespace, pod, service, stage, limit or continue`,
	} {
		for _, path := range []string{proxieshttp.Prefix, proxieshttp.Prefix + "/shop/front-0"} {
			code, body, _ := get(t, served(t, shop()).URL+path+query)
			if code != http.StatusBadRequest || strings.TrimSpace(body) != want {
				t.Errorf("%s%s: %d %q, want %q", path, query, code, body, want)
			}
		}
	}
}

// A page elsewhere whose name leads to a forwarded port would read what is told.
func TestAnotherHostIsNotServed(t *testing.T) {
	server := served(t, shop())
	for host, want := range map[string]int{
		"localhost:8083": http.StatusOK, "127.0.0.1:8083": http.StatusOK, "[::1]:9000": http.StatusOK, "localhost": http.StatusOK,
		"rebound.example:8083": http.StatusMisdirectedRequest, "10.0.0.1:8083": http.StatusMisdirectedRequest, "localhost.rebound.example": http.StatusMisdirectedRequest,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+proxieshttp.Prefix, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("asked for %s it answers %s, want %d", host, response.Status, want)
		}
	}
}

func TestOnlyReadingIsServed(t *testing.T) {
	server := served(t, shop())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+proxieshttp.Prefix, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusMethodNotAllowed && response.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s", method, response.Status)
		}
	}
	if code, _, _ := get(t, server.URL+"/healthz"); code != http.StatusNotFound { // it has a port of its own
		t.Errorf("/healthz answers %d", code)
	}
	if code, body, _ := get(t, served(t, nil).URL+proxieshttp.Prefix); code != http.StatusServiceUnavailable {
		t.Errorf("before there is a server: %d %s", code, body)
	}
}

// Ten thousand are listed page by page, and those that are in a stage are found among
// them without all being on one page; nobody gets the resources of more than one pod.
func TestTenThousandProxies(t *testing.T) {
	f := many(10_000)
	c := client(served(t, f))
	list, err := c.List(t.Context(), proxieshttp.Filter{})
	if err != nil || len(list.Proxies) != 10_000 || list.Proxies[9_999].Pod != "web-09999" {
		t.Fatalf("%d proxies, %v", len(list.Proxies), err)
	}
	if n := f.asked.Load(); n != 20 {
		t.Errorf("they came in %d pages, want 20", n)
	}
	list, err = c.List(t.Context(), proxieshttp.Filter{Stage: ads.Held})
	if err != nil || len(list.Proxies) != 10 {
		t.Fatalf("%d proxies are held, want 10: %v", len(list.Proxies), err)
	}
	if n := f.asked.Load(); n > 50 {
		t.Errorf("to find ten of them all were looked at %d times", n)
	}
	if _, _, err := c.Proxy(t.Context(), "shop", "web-00000", proxieshttp.Filter{}); err != nil || f.most.Load() != 1 {
		t.Errorf("%d proxies were asked for their resources at once: %v", f.most.Load(), err)
	}
}

// slow answers when it is told to.
type slow struct{ entered, leave chan struct{} }

func (s slow) Page(context.Context, serve.Query) ([]serve.Connected, bool) {
	s.entered <- struct{}{}
	<-s.leave
	return nil, false
}

func TestFewAreAnsweredAtOnce(t *testing.T) {
	s := slow{make(chan struct{}), make(chan struct{})}
	h := proxieshttp.New("xds-0", nil)
	h.Show(s)
	handler := h.Routes()
	ask := func(ctx context.Context, code chan<- int) {
		w := newRecorder()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+proxieshttp.Prefix, http.NoBody)
		if err != nil {
			panic(err)
		}
		handler.ServeHTTP(w, request)
		code <- w.Code
	}
	codes := make(chan int, 3)
	for range 2 {
		go ask(t.Context(), codes)
		<-s.entered
	}
	impatient, stop := context.WithCancel(t.Context())
	stop()
	ask(impatient, codes)
	if code := <-codes; code != http.StatusServiceUnavailable {
		t.Errorf("a third one is answered with %d", code)
	}
	close(s.leave)
	for range 2 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("who had a turn is answered with %d", code)
		}
	}
}

func TestAReplicaWhosePagesDoNotEndIsNotBelieved(t *testing.T) {
	for name, ends := range map[string][]string{
		"the same again": {"shop/b", "shop/b"},
		"back and forth": {"shop/b", "shop/a"},
		"a shorter pod":  {"shop-x/b", "shop/zz"},
		"nothing at all": {"shop/b", "/"},
	} {
		t.Run(name, func(t *testing.T) {
			pages := 0
			c := client(serving(t, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"replica":"x","proxies":[],"continue":%q}`, ends[pages%len(ends)])
				pages++
			}))
			if _, err := c.List(t.Context(), proxieshttp.Filter{}); err == nil || pages != 2 {
				t.Errorf("%d pages, %v", pages, err)
			}
		})
	}
	c := client(serving(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	if _, err := c.List(t.Context(), proxieshttp.Filter{}); err == nil {
		t.Error("what is no JSON is taken")
	}
}

func TestAReplicaThatComplainsIsQuoted(t *testing.T) {
	c := client(served(t, nil))
	want := "reading proxies: 503 Service Unavailable: no proxies are served yet: try again"
	if _, err := c.List(t.Context(), proxieshttp.Filter{}); err == nil || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
	c = client(serving(t, http.NotFound))
	if _, err := c.List(t.Context(), proxieshttp.Filter{}); err == nil || err.Error() != "reading proxies: /proxies is not there" {
		t.Errorf("a server without the page: %v", err)
	}
}

func serving(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server
}
