// SPDX-License-Identifier: Apache-2.0

//go:build integration

package signals

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// names of services.
const (
	web, limits, refuses, empties, hangs = "web", "web-" + timed, "refused", "empty", "hole"
	deserted, unanswered                 = "deserted", "web-" + slow
)

// split sends a tenth of the users to a canary.
func split(name, stable string, canary ...string) ir.Service {
	endpoint := func(address string) ir.Endpoint {
		return ir.Endpoint{Address: netip.MustParseAddrPort(address)}
	}
	slots := []ir.Slot{{Variation: "stable", Endpoints: []ir.Endpoint{endpoint(stable)}}, {Variation: "canary"}}
	for _, address := range canary {
		slots[1].Endpoints = append(slots[1].Endpoints, endpoint(address))
	}
	return ir.Service{
		Namespace: "shop", Name: name, Ports: []ir.Port{{Number: 80, Protocol: ir.HTTP, Slots: slots}},
		Routing: &traffic.Routing{
			Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total - 1000}, {Variation: "canary", Weight: 1000, Reserved: traffic.Total}},
			Key:    traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}, Salt: "s1",
		},
	}
}

// counted are what the requests of one kind come to: counters that are not 0, and
// latencies, of which those in the top bucket are told apart.
type counted struct {
	Counters map[string]uint64
	Samples  uint64
	Top      uint64
}

var names = map[signals.Counter]string{
	signals.Started: "started", signals.Completed: "completed", signals.Class1: "1xx", signals.Class2: "2xx",
	signals.Class3: "3xx", signals.Class4: "4xx", signals.Class5: "5xx", signals.TimedOut: "timed-out",
	signals.Reset: "reset", signals.Retried: "retried", signals.RetryLimit: "retry-limit",
	signals.NoneHealthy: "none-healthy", signals.NotConnected: "not-connected", signals.Overflowed: "overflowed",
	signals.Abandoned: "abandoned", signals.GRPCOK: "grpc-ok", signals.GRPCRefused: "grpc-refused",
	signals.GRPCUnavailable: "grpc-unavailable", signals.GRPCFailed: "grpc-failed",
	signals.Canceled: "canceled", signals.Failed: "failed", signals.FailedOver: failedOver,
}

// attempts are counters of attempts. How many a request makes of them hangs on how soon an
// endpoint is ejected. Of one that begins before a flush and fails over after it, the beginning
// is told as one of the variation.
var attempts = []signals.Counter{signals.Started, signals.Retried, signals.RetryLimit, signals.NoneHealthy, signals.NotConnected, signals.Abandoned}

// since is what was counted after before. How often Envoy tries to connect is its own
// affair, so that is not in it.
func since(before, after signals.Counts, without []signals.Counter) counted {
	out := counted{Counters: map[string]uint64{}}
	for c, name := range names {
		if n := after[c] - before[c]; n != 0 && !slices.Contains(without, c) {
			out.Counters[name] = n
		}
	}
	for i, n := range after.Latency() {
		if n -= before.Latency()[i]; i < signals.Buckets-1 {
			out.Samples += n
		} else {
			out.Top += n
		}
	}
	return out
}

// kind of request, and what one of it counts as.
type kind struct {
	service string
	request
	status int
	counts string
	// canary is what one counts as at the canary, if that differs. The stable variation
	// answers a request that fails over.
	canary       string
	canaryStatus int
	// without are counters that are not compared.
	without []signals.Counter
}

const (
	ok       = "started completed 2xx sampled"
	grpcOK   = "started completed 2xx grpc-ok sampled"
	hurried  = 3 * time.Second // 40 at once have begun by then
	noAnswer = 0
	// failedOver is a request to the canary that the stable variation serves.
	failedOver = "failed-over"
)

var kinds = map[string]kind{
	"an answer":                                  {web, request{path: pathOK}, 200, ok, "", 0, nil},
	"an answer of 404":                           {web, request{path: pathMissing}, 404, "started completed 4xx sampled", "", 0, nil},
	"an answer of 500":                           {web, request{path: pathBroken}, 500, "started completed 5xx failed sampled", "", 0, nil},
	"a time-out":                                 {limits, request{path: pathHangs}, 504, "started completed 5xx timed-out failed top", "", 0, nil},
	"a time-out in an answer":                    {limits, request{path: pathStreams}, 200, "started completed 2xx timed-out failed top", "", 0, nil},
	"a time-out of gRPC":                         {limits, request{path: pathHangs, grpc: true}, 200, "started completed 5xx timed-out failed top", "", 0, nil},
	"a client that gives up":                     {web, request{path: pathHangs, patience: hurried}, noAnswer, "started canceled", "", 0, nil},
	"one that gives up over HTTP/2":              {web, request{path: pathHangs, second: true, patience: hurried}, noAnswer, "started canceled", "", 0, nil},
	"one that gives up in an answer":             {web, request{path: pathStreams, patience: hurried}, 200, "started completed 2xx", "", 0, nil},
	"one that gives up a call":                   {web, request{path: pathHangs, grpc: true, patience: hurried}, noAnswer, "started canceled", "", 0, nil},
	"an upstream that breaks off":                {web, request{path: pathResets}, 503, "started completed 5xx failed", "", 0, nil},
	"a call that is broken off":                  {web, request{path: pathResets, grpc: true}, 200, "started completed 5xx reset failed", "", 0, nil},
	"a call":                                     {web, request{path: pathGet, grpc: true}, 200, grpcOK, "", 0, nil},
	"a call that fails":                          {web, request{path: pathFails, grpc: true}, 200, "started completed 2xx grpc-failed failed sampled", "", 0, nil},
	"a call that finds nothing":                  {web, request{path: pathNotFound, grpc: true}, 200, "started completed 2xx grpc-refused sampled", "", 0, nil},
	"a call without trailers":                    {web, request{path: pathUnavailable, grpc: true}, 200, "started completed 2xx grpc-unavailable failed sampled", "", 0, nil},
	"no endpoint of a canary takes a connection": {refuses, request{path: pathOK}, 200, "completed 2xx sampled", failedOver, 200, attempts},
	"none takes that of a call":                  {refuses, request{path: pathGet, grpc: true}, 200, "completed 2xx grpc-ok sampled", failedOver, 200, attempts},
	"a canary has no endpoint":                   {empties, request{path: pathOK}, 200, "completed 2xx sampled", failedOver, 200, attempts},
	"a canary has none for a call":               {empties, request{path: pathGet, grpc: true}, 200, "completed 2xx grpc-ok sampled", failedOver, 200, attempts},
	"connections to a canary hang":               {hangs, request{path: pathOK}, 200, "completed 2xx sampled", failedOver, 200, attempts},
	"what a canary had failed of at the other":   {refuses, request{path: pathBroken}, 500, "completed 5xx failed sampled", failedOver, 500, attempts},
	"no endpoint takes a connection":             {deserted, request{path: pathOK}, 503, "completed 5xx failed", "completed 2xx sampled", 200, attempts},
	"none at all takes that of a call":           {deserted, request{path: pathGet, grpc: true}, 200, "completed 5xx grpc-unavailable failed", "completed 2xx grpc-ok sampled", 200, attempts},
	"a connection that hangs":                    {unanswered, request{path: pathOK, patience: hurried}, noAnswer, "canceled", "", 0, attempts},
}

// ask as all users at once.
func (k kind) ask(t *testing.T, c *client, address string, of map[string]string) {
	t.Helper()
	var users errgroup.Group
	for user, variation := range of {
		users.Go(func() error {
			want, of := k.status, variation
			if variation == "canary" && k.canary != "" {
				want = k.canaryStatus
				if k.canary == failedOver {
					of = "stable"
				}
			}
			if got, by := c.ask(address, user, k.request); got != want || by != "" && by != of {
				return fmt.Errorf("%s of %s gets %d by %q, want %d", user, variation, got, by, want)
			}
			return nil
		})
	}
	must(t, users.Wait())
}

// times is what so many requests count as.
func times(counts string, n uint64) counted {
	out := counted{Counters: map[string]uint64{}}
	if n == 0 {
		return out
	}
	for word := range strings.FieldsSeq(counts) {
		switch word {
		case "sampled":
			out.Samples = n
		case "top":
			out.Top = n
		default:
			out.Counters[word] = n
		}
	}
	return out
}

// Each kind is asked for by users of both variations; what is counted is just that, of
// each variation, and what the clients saw.
func TestEachKindOfRequestIsCounted(t *testing.T) {
	const users = 40
	p, c := newPlane(t, 200*time.Millisecond), newClient(t)
	stable, canary := upstream(t, "stable"), upstream(t, "canary")
	nobody := net.JoinHostPort("127.0.0.1", fmt.Sprint(freeport.For(t)))
	services := []ir.Service{
		split(web, stable, canary), split(limits, stable, canary), split(refuses, stable, nobody),
		split(empties, stable), split(hangs, stable, backend.Hole(t)), split(deserted, nobody, canary), split(unanswered, backend.Hole(t), backend.Hole(t)),
	}
	published, listeners := p.publish(services...)
	addresses := map[string]string{}
	for i, s := range services {
		addresses[s.Name] = published[i]
	}
	p.proxy("web-0", listeners...)
	// Of a request that is in flight when a proxy tells for the first time, nothing else is
	// known: as many cancellations would be missing from then on.
	p.flushes(1)
	poll.Until(t, patience, "the proxy has its routes", func() error {
		if status, _ := c.ask(addresses[web], "u", request{path: pathOK}); status != http.StatusOK {
			return fmt.Errorf("the status is %d", status)
		}
		return nil
	})
	of := map[string]string{} // variations of users
	sent := map[string]uint64{}
	for i := range users {
		user := fmt.Sprint("user", i)
		_, of[user] = c.ask(addresses[web], user, request{path: pathOK})
		sent[of[user]]++
	}
	if sent["stable"]+sent["canary"] != users || sent["canary"] < 2 {
		t.Fatalf("the users are divided as %v", sent)
	}
	p.flushes(3)
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			before := p.totals(k.service)
			k.ask(t, c, addresses[k.service], of)
			wanted := map[string]counted{"stable": times(k.counts, sent["stable"]), "canary": times(k.counts, sent["canary"])}
			if k.canary != "" {
				wanted["canary"] = times(k.canary, sent["canary"])
			}
			p.counted(t, k.service, before, wanted, k.without...)
			p.flushes(2)
			p.counted(t, k.service, before, wanted, k.without...) // and no more
		})
	}
	t.Run("a WebSocket", func(t *testing.T) { webSocket(t, p, c, addresses[web], of) })
	if n := p.rejected.Load(); n != 0 {
		t.Errorf("%d times something was not taken", n)
	}
	if got := p.counts.Service("shop", web, time.Now().Add(-time.Minute)); got.Gapped != 0 {
		t.Errorf("there are gaps: %v", got.Gaps)
	}
}

// webSocket is in flight as long as it is open, and was not given up when it ends.
func webSocket(t *testing.T, p *plane, c *client, address string, of map[string]string) {
	before, want := p.totals(web), map[string]uint64{}
	var open []net.Conn
	for user, variation := range of {
		open = append(open, c.upgrade(address, user))
		want[variation]++
	}
	inFlight := func(want map[string]uint64) {
		t.Helper()
		poll.Until(t, patience, "those that are open are in flight", func() error {
			if d := cmp.Diff(want, p.inFlight(web)); d != "" {
				return fmt.Errorf("(-want +got):\n%s", d)
			}
			return nil
		})
	}
	inFlight(want)
	for _, conn := range open {
		must(t, conn.Close())
	}
	inFlight(map[string]uint64{"stable": 0, "canary": 0})
	p.flushes(2)
	p.counted(t, web, before, map[string]counted{
		"stable": times("started completed 1xx", want["stable"]), "canary": times("started completed 1xx", want["canary"]),
	})
}

// totals of a service, by variation.
func (p *plane) totals(service string) map[string]signals.Counts {
	out := map[string]signals.Counts{}
	for _, v := range p.counts.Service("shop", service, time.Now()).Variations {
		out[v.Name] = v.Total
	}
	return out
}

// counted waits until just that was counted.
func (p *plane) counted(t *testing.T, service string, before map[string]signals.Counts, want map[string]counted, without ...signals.Counter) {
	t.Helper()
	poll.Until(t, patience, "what was sent is counted", func() error {
		got, after := map[string]counted{}, p.totals(service)
		for variation := range want {
			got[variation] = since(before[variation], after[variation], without)
		}
		if d := cmp.Diff(want, got); d != "" {
			return fmt.Errorf("in flight are %v; (-want +got):\n%s", p.inFlight(service), d)
		}
		return nil
	})
}

// inFlight are the requests of a service that are in flight, by variation.
func (p *plane) inFlight(service string) map[string]uint64 {
	out := map[string]uint64{}
	for _, v := range p.counts.Service("shop", service, time.Now()).Variations {
		out[v.Name] = v.InFlight
	}
	return out
}
