// SPDX-License-Identifier: Apache-2.0

//go:build integration

package traefik

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	connector "github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/internal/connector/traefik/provider"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/traefik"
)

var autumn = types.NamespacedName{Namespace: "shop", Name: "autumn"}

// split without a key.
func split(sequence uint64, canary traffic.Weight) traffic.Split {
	s := routertest.Split(sequence, canary)
	s.Key = traffic.Key{}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (st *stand) apply(s traffic.Split) {
	st.Helper()
	must(st, st.Router(autumn).Apply(st.Context(), s))
}

func (st *stand) observe() traffic.Observation {
	st.Helper()
	seen, err := st.Router(autumn).Observe(st.Context())
	must(st, err)
	return seen
}

// A Traefik that cannot be asked is no proof: without an API the split is Accepted when it was fetched, with an API
// that does not answer it is Unknown, and the Traefik is named.
func TestATraefikThatCannotBeAskedIsNoProof(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*provider.Program, *traefik.Program)
		want   traffic.Knowledge
		why    string
	}{
		"no API is known":       {func(p *provider.Program, _ *traefik.Program) { p.URL = "" }, traffic.Accepted, ""},
		"the API does not hear": {func(p *provider.Program, _ *traefik.Program) { p.URL = "http://127.0.0.1:1" }, traffic.Unknown, "connection refused"},
		"the URL has no API":    {func(p *provider.Program, _ *traefik.Program) { p.URL += "/elsewhere" }, traffic.Unknown, "status 404; enable the API"},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStand(t, tc.change, brisk)
			st.apply(split(1, 5_000))
			poll.Until(t, patience, "requests are divided", func() error {
				got, err := st.request(services[0], http.MethodGet, nil)
				if err == nil && got == plain {
					err = fmt.Errorf("they go to %s", got)
				}
				return err
			})
			seen := st.observe()
			if seen.Knowledge != tc.want {
				t.Errorf("observed is %+v, want %s", seen, tc.want)
			}
			if tc.want == traffic.Accepted && (seen.IsEffective(1, time.Now()) || !seen.IsEffective(1, seen.SettledAt)) {
				t.Errorf("an accepted split counts from %s on, want a time to come", seen.SettledAt)
			}
			if tc.why != "" && (len(seen.OutOfSync) != 1 || seen.OutOfSync[0].Name != "edge/traefik-0" || !strings.Contains(seen.OutOfSync[0].Why, tc.why)) {
				t.Errorf("out of sync are %+v, want one because of %q", seen.OutOfSync, tc.why)
			}
		})
	}
}

// An API behind basic authentication tells with the right password alone.
func TestAnAPIBehindBasicAuthentication(t *testing.T) {
	file, err := filepath.Abs("testdata/basicauth.yaml")
	must(t, err)
	for password, want := range map[string]traffic.Knowledge{"secret": traffic.Proven, "guess": traffic.Unknown} {
		t.Run(password, func(t *testing.T) {
			st := newStand(t, func(p *provider.Program, at *traefik.Program) {
				p.URL, p.User, p.Password = "http://"+at.Web, "plumbline", password
			}, brisk, "--providers.file.filename="+file)
			st.apply(split(1, 5_000))
			poll.Until(t, patience, "the Traefik is known to divide, or refuses to tell", func() error {
				seen := st.observe()
				if seen.Knowledge != want || want == traffic.Unknown && !strings.Contains(seen.OutOfSync[0].Why, "status 401") {
					return fmt.Errorf("observed is %+v, want %s", seen, want)
				}
				return nil
			})
		})
	}
}

// A Traefik that starts after the split was applied takes the split, and none that our provider does not vouch for: a
// provider that is not open yet leaves the configuration of before.
func TestAProviderThatIsNotOpenChangesNothing(t *testing.T) {
	st := newStand(t, nil, brisk)
	st.program.Kill()
	st.apply(split(1, traffic.Total))
	if seen := st.observe(); seen.Knowledge != traffic.Unknown || seen.Sequence != 0 {
		t.Errorf("without a Traefik observed is %+v", seen)
	}
	st.program.Run()
	st.Settle()
	old := st.Provider
	fresh := provider.New(provider.Config{
		Served: []connector.Served{{Service: services[0], Port: 80}}, Endpoints: st, Token: token, Client: impatient, Every: time.Second, Now: time.Now,
		Programs: []provider.Program{{Name: "edge/traefik-0", URL: "http://" + st.program.API}},
	})
	before, err := st.metrics()
	must(t, err)
	st.mu.Lock()
	st.Provider = fresh // a leader that knows no split yet
	st.mu.Unlock()
	for range 20 {
		if got, err := st.request(services[0], http.MethodGet, nil); err != nil || got != "canary" {
			t.Fatalf("a request goes to %s (%v)", got, err)
		}
	}
	after, err := st.metrics()
	must(t, err)
	if after.Reloads != before.Reloads {
		t.Errorf("the Traefik has reloaded %d times", after.Reloads-before.Reloads)
	}
	// The leader is told a split of a lower sequence than the Traefik has.
	must(t, fresh.Router(autumn).Apply(t.Context(), split(1, 0)))
	seen, err := fresh.Router(autumn).Observe(t.Context())
	must(t, err)
	if seen.Knowledge != traffic.Contradicted {
		t.Errorf("with another split under the sequence observed is %+v", seen)
	}
	st.mu.Lock()
	st.Provider = old
	st.mu.Unlock()
}

// The round robin starts anew with each change of the configuration, also of another Service. With a change after each
// ten requests a canary of 2 % gets none of 640, and the observation names it. Without changes it has its share to one
// request.
func TestACanaryIsStarvedByChangesOfAnotherService(t *testing.T) {
	rotation.Share(t, 3)
	const rounds, each = 64, 10
	st := newStand(t, nil, brisk)
	for i, tc := range []struct {
		churns          bool
		atLeast, atMost int
		starved         bool
	}{{false, 12, 14, false}, {true, 0, 3, true}} {
		st.apply(split(uint64(i+1), 200)) //nolint:gosec // small
		st.Settle()
		canary := 0
		for round := range rounds {
			if tc.churns {
				st.reload(int64(1 + round))
			}
			for range each {
				answer, err := st.Ask(routertest.Request{Service: services[0]})
				must(t, err)
				if answer.Variation.Name == "canary" {
					canary++
				}
			}
		}
		st.Flush()
		if canary < tc.atLeast || canary > tc.atMost {
			t.Errorf("with changes %t the canary gets %d of %d requests, want %d to %d", tc.churns, canary, rounds*each, tc.atLeast, tc.atMost)
		}
		seen := st.observe()
		if is := len(seen.Starved) == 1 && seen.Starved[0].Variation == "canary" && seen.Starved[0].Part == "edge/traefik-0"; is != tc.starved {
			t.Errorf("with changes %t starved are %+v", tc.churns, seen.Starved)
		}
	}
}

// reload changes another Service, and waits until the Traefik has the change.
func (st *stand) reload(n int64) {
	st.Helper()
	before, err := st.metrics()
	must(st, err)
	st.churn.Store(n)
	poll.Confirmation.Until(st, patience, "the Traefik has reloaded", func() error {
		now, err := st.metrics()
		if err == nil && now.Reloads == before.Reloads {
			err = fmt.Errorf("%d reloads", now.Reloads)
		}
		return err
	})
}

// Each golden configuration is one that the Traefik carries out.
func TestTheTraefikTakesEachGoldenConfiguration(t *testing.T) {
	files, err := filepath.Glob("../../../internal/connector/traefik/testdata/*.json")
	must(t, err)
	if len(files) < 4 {
		t.Fatalf("there are %d golden configurations", len(files))
	}
	st := newStand(t, nil, brisk)
	served := connector.Served{Service: services[0], Port: 80}
	for i, file := range files {
		content := []byte(strings.Replace(golden.Read(t, file), `"services": {`, fmt.Sprintf(`"services": {"golden-%d": {"loadBalancer": {"servers": []}},`, i), 1))
		st.edited.Store(&content)
		poll.Until(t, patience, "the Traefik has "+file, func() error { return st.enabled(fmt.Sprintf("golden-%d", i)) })
		must(t, st.enabled(served.Name()))
	}
}

// enabled asks the API for a service and for errors of any router and service.
func (st *stand) enabled(service string) error {
	for _, path := range []string{"/api/http/services/" + service + "@http", "/api/overview"} {
		r, err := http.NewRequestWithContext(st.Context(), http.MethodGet, "http://"+st.program.API+path, http.NoBody)
		if err != nil {
			return err
		}
		response, err := impatient.Do(r)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		if closing := response.Body.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK || strings.Count(string(body), `"errors":0`) != strings.Count(string(body), `"errors":`) {
			return fmt.Errorf("%s says %s", path, body)
		}
	}
	return nil
}

// BenchmarkStepToProven is one step of a split: told, polled and read back, at 100 ms for both poll and throttle.
func BenchmarkStepToProven(b *testing.B) {
	st := newStand(b, nil, 100*time.Millisecond)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		begin := time.Now()
		st.apply(split(uint64(i+1), traffic.Weight(i%9_999+1))) //nolint:gosec // small
		poll.Confirmation.Until(b, patience, "the step is proven", func() error {
			if seen := st.observe(); seen.Knowledge != traffic.Proven {
				return fmt.Errorf("observed is %+v", seen)
			}
			return nil
		})
		took = append(took, time.Since(begin))
	}
	quantile.Report(b, "step", took)
}
