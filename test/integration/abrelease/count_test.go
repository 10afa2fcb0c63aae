// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// ask sends a request with headers, and returns "code text" and the cookie that was
// given.
func ask(t testing.TB, address string, headers ...string) (answer, cookie string) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		return err.Error(), ""
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), ""
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error(), ""
	}
	for _, c := range response.Cookies() {
		cookie = c.Name + "=" + c.Value
	}
	return strconv.Itoa(response.StatusCode) + " " + string(body), cookie
}

// count what n requests are answered, once somebody listens: a proxy does after it has
// its routes and its listeners.
func count(t *testing.T, address string, n int, headers func(i int) []string) map[string]int {
	t.Helper()
	poll.Until(t, patience, "somebody listens on "+address, func() error {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
	answers := map[string]int{}
	for i := range n {
		var of []string
		if headers != nil {
			of = headers(i)
		}
		answer, _ := ask(t, address, of...)
		answers[answer]++
	}
	return answers
}

// shares demands that a part of n requests went to the canary, and the rest to the
// stable one. The bound is five standard deviations: chance crosses it once in two
// million times.
func shares(t *testing.T, got map[string]int, n int, part float64) {
	t.Helper()
	deviation := 5 * math.Sqrt(float64(n)*part*(1-part))
	canary, stable := got["200 canary"], got["200 stable"]
	if canary+stable != n || math.Abs(float64(canary)-part*float64(n)) > deviation {
		t.Errorf("of %d requests went %v, want %.0f ± %.0f to the canary", n, got, part*float64(n), deviation)
	}
}

// reaches waits until the proxy answers so.
func reaches(t testing.TB, address, want string, headers ...string) {
	t.Helper()
	poll.Until(t, patience, address+" answers "+want, func() error {
		if got, _ := ask(t, address, headers...); got != want {
			return fmt.Errorf("it answers %q", got)
		}
		return nil
	})
}

// version of a route, as an Envoy dumps it.
var version = regexp.MustCompile(`"version_info": "([0-9]+)\.`)

// sequence of the only route of an Envoy.
func sequence(t testing.TB, e *envoy.Envoy) (int64, error) {
	text, err := e.Get(t.Context(), "/config_dump?resource=dynamic_route_configs")
	if err != nil {
		return 0, err
	}
	found := version.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("it has no route: %s", text)
	}
	return strconv.ParseInt(found[1], 10, 64)
}

// carries waits until an Envoy has the route of a sequence, and its workers have it
// too: they get it after the dump says so, and before a request that comes later.
func (s *shop) carries(e *envoy.Envoy, want int64) {
	s.t.Helper()
	poll.Until(s.t, patience, fmt.Sprintf("the Envoy has sequence %d", want), func() error {
		is, err := sequence(s.t, e)
		if err == nil && is != want {
			err = fmt.Errorf("it has %d", is)
		}
		return err
	})
}
