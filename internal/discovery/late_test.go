// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// teller is an observer of a mesh with these Services, and the Events that it makes.
func teller(t *testing.T, services ...client.Object) (*observer, *clocktesting.FakeClock, chan string) {
	t.Helper()
	o, err := newObserver(prometheus.NewRegistry(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	recorder, clock := events.NewFakeRecorder(1_000), clocktesting.NewFakeClock(begin)
	l := &lateEvents{recorder: recorder, service: sourcesOf(t, services...).service, told: telling{now: clock.Now}}
	o.latest = l.late
	return o, clock, recorder.Events
}

func lateRoute(name string) ads.Effect {
	return ads.Late{Route: &ads.Resource{Type: ads.Route, Name: name}}
}

func TestALateRouteIsCountedAndToldOnItsService(t *testing.T) {
	o, clock, made := teller(t, clusterService(at("shop", "web", 0), "10.0.0.1"))
	web := lateRoute(envoyname.RouteName("shop", "web", 80))
	for i := range 1_000 { // all proxies are late at one moment
		o.Happened(identity.Proxy{Namespace: "shop", Pod: fmt.Sprint("cart-", i), PodUID: fmt.Sprint(i)}, web)
	}
	if n := testutil.ToFloat64(o.late); n != 1_000 {
		t.Errorf("%v late routes are counted", n)
	}
	if len(made) != 1 {
		t.Fatalf("%d Events, want one for the Service", len(made))
	}
	if text := <-made; !strings.HasPrefix(text, "Warning RouteLate the proxy of pod shop/cart-0 was sent route shop/web|80 before") {
		t.Errorf("the Event says %q", text)
	}
	clock.Step(toldEvery)
	o.Happened(identity.Proxy{Namespace: "shop", Pod: "cart-7"}, web)
	if len(made) != 1 {
		t.Errorf("%d Events ten minutes later, want one", len(made))
	}
}

func TestALateRouteIsOnlyCountedWhen(t *testing.T) {
	tests := map[string]string{
		"its Service is gone":      envoyname.RouteName("shop", "former", 80),
		"it is that of a gateway":  "edge",
		"it is that of no Service": "a|b",
	}
	for name, route := range tests {
		t.Run(name, func(t *testing.T) {
			o, _, made := teller(t, clusterService(at("shop", "web", 0), "10.0.0.1"))
			o.Happened(identity.Proxy{}, lateRoute(route))
			if n := testutil.ToFloat64(o.late); n != 1 || len(made) != 0 {
				t.Errorf("%v are counted and %d Events made", n, len(made))
			}
		})
	}
}

func TestFewServicesAreToldOfAtOnce(t *testing.T) {
	const services = 3 * toldObjects
	var all []client.Object
	for i := range services {
		all = append(all, clusterService(at("shop", fmt.Sprint("s", i), 0), "10.0.0.1"))
	}
	o, clock, made := teller(t, all...)
	for range 2 {
		for i := range services {
			o.Happened(identity.Proxy{}, lateRoute(envoyname.RouteName("shop", fmt.Sprint("s", i), 80)))
		}
		if len(made) != toldObjects {
			t.Errorf("%d Events, want %d", len(made), toldObjects)
		}
		for range len(made) {
			<-made
		}
		clock.Step(toldEvery)
	}
	if n := testutil.ToFloat64(o.late); n != 2*services {
		t.Errorf("%v are counted", n)
	}
}
