// SPDX-License-Identifier: Apache-2.0

package traefik_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

const sample = `# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7e+09
# TYPE traefik_config_reloads_total counter
traefik_config_reloads_total 12
# TYPE traefik_service_requests_total counter
traefik_service_requests_total{code="200",method="GET",protocol="http",service="plb_shop_web_80_canary@http"} 10
traefik_service_requests_total{code="204",method="POST",protocol="http",service="plb_shop_web_80_canary@http"} 2
traefik_service_requests_total{code="404",method="GET",protocol="http",service="plb_shop_web_80_canary@http"} 3
traefik_service_requests_total{code="503",method="GET",protocol="http",service="plb_shop_web_80_canary@http"} 4
traefik_service_requests_total{code="200",method="GET",protocol="http",service="plb_shop_web_80_canary_failover@http"} 5
traefik_service_requests_total{code="200",method="GET",protocol="http",service="plb_shop_web_80_canary_forced@http"} 6
`

func read(t *testing.T, text string) traefik.Metrics {
	t.Helper()
	m, err := traefik.ReadMetrics(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCountsOfAVariation(t *testing.T) {
	m := read(t, sample)
	own, failedOver := m.Of(web, "canary")
	if want := (traefik.Counts{Answered: 19, Failed: 4, ClientErrors: 3}); own != want || failedOver.Answered != 5 || m.Reloads != 12 {
		t.Errorf("counted are %+v, failed over %+v, reloads %d", own, failedOver, m.Reloads)
	}
}

func TestMetricsThatAreNotUnderstoodAreNoZero(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":             "",
		"HTML":                "<html></html>\n",
		"a code that is none": strings.Replace(sample, `code="200"`, `code="ok"`, 1),
		"no service":          strings.Replace(sample, `service="plb_shop_web_80_canary@http"`, `service=""`, 1),
		"no count of reloads": strings.Replace(sample, "traefik_config_reloads_total", "other_total", 2),
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := traefik.ReadMetrics(strings.NewReader(text)); err == nil {
				t.Errorf("read is %+v", m)
			}
		})
	}
}

func TestCountsBeginAnewWithTheProcess(t *testing.T) {
	const canary = "plb_shop_web_80_canary"
	before := read(t, sample)
	for name, tc := range map[string]struct {
		text     string
		answered uint64
		reloads  uint64
	}{
		"nothing came":            {sample, 0, 0},
		"three came, two reloads": {strings.NewReplacer("} 10\n", "} 13\n", "total 12", "total 14").Replace(sample), 3, 2},
		"another process":         {strings.Replace(sample, "1.7e+09", "1.8e+09", 1), 19, 12},
		"a count that went down":  {strings.Replace(sample, "} 10\n", "} 9\n", 1), 18, 0},
	} {
		t.Run(name, func(t *testing.T) {
			since := read(t, tc.text).Since(before)
			if got := since.Services[canary].Answered; got != tc.answered || since.Reloads != tc.reloads {
				t.Errorf("since then %d requests and %d reloads, want %d and %d", got, since.Reloads, tc.answered, tc.reloads)
			}
		})
	}
}

func FuzzReadMetrics(f *testing.F) {
	f.Add(sample)
	f.Add("traefik_service_requests_total{code=\"200\"} NaN\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := traefik.ReadMetrics(strings.NewReader(text))
		if err != nil {
			return
		}
		for name, c := range m.Services {
			if c.Failed+c.ClientErrors > c.Answered {
				t.Errorf("%s has %+v", name, c)
			}
		}
		if d := m.Since(m); d.Reloads != 0 {
			t.Errorf("since itself %+v", d)
		}
	})
}

func TestStarvedVariations(t *testing.T) {
	shares := func(canary traffic.Weight) traffic.Shares { return split(1, canary).Shares }
	seen := func(requests, reloads, canary uint64) traefik.Seen {
		return traefik.Seen{Requests: requests, Reloads: reloads, By: map[string]uint64{"stable": requests - canary, "canary": canary}}
	}
	for name, tc := range map[string]struct {
		shares traffic.Shares
		seen   traefik.Seen
		want   []traffic.Starved
	}{
		"nothing was seen":                   {shares(200), seen(0, 0, 0), nil},
		"the share, without reloads":         {shares(200), seen(577, 1, 11), nil},
		"too few requests to know":           {shares(200), seen(100, 0, 0), nil},
		"few reloads, many requests between": {shares(200), seen(5_000, 20, 100), nil},
		"a variation at 0":                   {shares(0), seen(5_000, 500, 0), nil},
		"a variation with all":               {shares(traffic.Total), seen(5_000, 500, 5_000), nil},
		"steps each 250 ms at 1 %":           {shares(100), seen(6_320, 300, 0), []traffic.Starved{{Variation: "canary", Why: "it got 0 of 6320 requests, and its share is 1 %"}}},
		"another Service changes each 0.3 s": {shares(200), seen(551, 23, 1), []traffic.Starved{{Variation: "canary", Why: "it got 1 of 551 requests, and its share is 2 %"}}},
		"ten requests between reloads":       {shares(200), seen(640, 64, 3), []traffic.Starved{{Variation: "canary", Why: "the round robin starts again after each 16 requests, and reaches a share of 2 % after 50"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, traefik.FindStarved(tc.shares, tc.seen)); d != "" {
				t.Errorf("starved (-want +got):\n%s", d)
			}
		})
	}
}

// A round robin that starts anew gives no more than the function says, so a canary that has its share is not called
// starved: simulated with the deadlines by which Traefik chooses, and Poisson arrivals.
func TestARoundRobinThatIsNotDisturbedStarvesNobody(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a simulation
	for _, tc := range []struct {
		canary  traffic.Weight
		between float64
		starved bool
	}{{200, 12, true}, {200, 25, true}, {200, 300, false}, {1_000, 2, true}, {1_000, 60, false}, {5_000, 1, false}, {5_000, 30, false}} {
		seen := traefik.Seen{By: map[string]uint64{}}
		for range 2_000 {
			seen.Reloads++
			deadlines := map[string]float64{"stable": 0, "canary": 0}
			weights := map[string]float64{"stable": float64(traffic.Total - tc.canary), "canary": float64(tc.canary)}
			for name, w := range weights {
				deadlines[name] = 1 / w
			}
			for range poisson(random, tc.between) {
				to := "stable"
				if deadlines["canary"] < deadlines["stable"] {
					to = "canary"
				}
				deadlines[to] += 1 / weights[to]
				seen.Requests++
				seen.By[to]++
			}
		}
		got := traefik.FindStarved(split(1, tc.canary).Shares, seen)
		if is := len(got) == 1 && got[0].Variation == "canary"; is != tc.starved || len(got) > 1 {
			t.Errorf("with %s %% and %.0f requests between reloads starved are %+v, and the canary got %d of %d", tc.canary.Percent(), tc.between, got, seen.By["canary"], seen.Requests)
		}
	}
}

func poisson(random *rand.Rand, mean float64) int {
	n, p, limit := 0, random.Float64(), math.Exp(-mean)
	for p > limit {
		n++
		p *= random.Float64()
	}
	return n
}
