// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// sight is what a leader sees of Services and of the routes of proxies.
type sight struct {
	there, reported map[types.NamespacedName]bool
	unknown         error
}

// Services implements Services.
func (s *sight) Services(context.Context) (map[types.NamespacedName]bool, error) { return s.there, nil }

// Reported implements Reporters.
func (s *sight) Reported() (map[types.NamespacedName]bool, error) { return s.reported, s.unknown }

// swept is a ledger, and those who lead one after the other.
type swept struct {
	*testing.T
	client.Client
	*sight
	clock   *clocktesting.FakeClock
	metrics *Metrics
	resign  func()
	now     *Sweeper
}

func newSwept(t *testing.T, data map[string]string, objects ...client.Object) *swept {
	t.Helper()
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: release.LedgerName}, Data: data}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s := &swept{
		T: t, Client: fakeclient.NewBuilder(kinds).WithObjects(append(objects, stored)...).Build(),
		sight: &sight{there: map[types.NamespacedName]bool{}, reported: map[types.NamespacedName]bool{}}, clock: clocktesting.NewFakeClock(noon), metrics: metrics,
	}
	s.elect()
	return s
}

// elect has another one lead.
func (s *swept) elect() {
	s.resign = s.metrics.lead()
	s.now = &Sweeper{
		Ledger: &Ledger{Live: s.Client, Client: s.Client, Namespace: "plumbline-system", Clock: s.clock, Metrics: s.metrics},
		Client: s.Client, Live: s.Client, Services: s.sight, Reporters: s.sight, Clock: s.clock, Log: logr.Discard(),
	}
}

// passes lets time pass, in which the leader sweeps every minute.
func (s *swept) passes(d time.Duration) {
	s.Helper()
	for range int(d / time.Minute) {
		s.clock.Step(time.Minute)
		if err := s.now.Sweep(s.Context()); err != nil && s.unknown == nil {
			s.Fatal(err)
		}
	}
}

func (s *swept) has(want map[string]string) {
	s.Helper()
	if diff := cmp.Diff(want, storedIn(s.T, s.Client)); diff != "" {
		s.Errorf("the ledger (-want +got):\n%s", diff)
	}
}

// Two replicas told of one ledger: the one that writes it, and the one that wrote it before.
func TestWhoLeadsNoMoreTellsOfNoLedger(t *testing.T) {
	s := newSwept(t, map[string]string{"shop.web": `{"plain":3000}`})
	told := func() [2]float64 {
		return [2]float64{testutil.ToFloat64(s.metrics.entries), testutil.ToFloat64(s.metrics.bytes)}
	}
	s.passes(2 * time.Minute)
	if got := told(); got[0] != 1 || got[1] == 0 {
		t.Fatalf("while it leads, it is told to have %v", got)
	}
	s.resign()
	if got := told(); got != [2]float64{} {
		t.Errorf("of the ledger is left what was told: %v", got)
	}
	if err := s.now.Ledger.Settle(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}); err != nil { // which ends late
		t.Fatal(err)
	}
	if got := told(); got != [2]float64{} {
		t.Errorf("what ends late tells %v", got)
	}
}

// M3 of the review of the mesh: the entries of Services that are gone stayed for ever.
func TestTheEntryOfAServiceThatIsGoneIsDropped(t *testing.T) {
	web, pay := types.NamespacedName{Namespace: "shop", Name: "web"}, types.NamespacedName{Namespace: "shop", Name: "pay"}
	const held = `{"plain":0,"ceiling":1000,"release":"pay","holder":"uid-1"}`
	data := func() map[string]string {
		return map[string]string{"shop.web": `{"plain":3000}`, "shop.pay": held, "bank.old": "{"}
	}
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pay", UID: "uid-1"}}
	want := map[string]string{"_.dropped": `{"plain":3000,"floor":3000}`, "shop.pay": held, "bank.old": "{"}

	t.Run("while one leads, and no proxy has a route of it", func(t *testing.T) {
		s := newSwept(t, data(), r.DeepCopy())
		s.there[pay] = true
		s.passes(40 * time.Minute)
		if _, is := storedIn(t, s.Client)["shop.web"]; !is {
			t.Fatal("it is dropped too early")
		}
		s.passes(10 * time.Minute)
		s.has(want)
		if n := testutil.ToFloat64(s.metrics.dropped); n != 1 {
			t.Errorf("%v are told to be dropped", n)
		}
		if n, bytes := testutil.ToFloat64(s.metrics.entries), testutil.ToFloat64(s.metrics.bytes); n != 2 || bytes < 50 || bytes > 150 {
			t.Errorf("it is told to have %v entries of %v bytes", n, bytes)
		}
	})
	t.Run("whoever leads meanwhile", func(t *testing.T) {
		s := newSwept(t, data(), r.DeepCopy())
		for range 5 {
			s.passes(10 * time.Minute)
			s.elect()
		}
		s.has(want)
	})
	t.Run("not while a proxy has a route of it", func(t *testing.T) {
		s := newSwept(t, data(), r.DeepCopy())
		s.reported[web] = true
		s.passes(2 * time.Hour)
		if _, is := storedIn(t, s.Client)["shop.web"]; !is {
			t.Fatal("it is dropped")
		}
		delete(s.reported, web)
		s.passes(time.Minute) // the proxy may be between two streams
		if _, is := storedIn(t, s.Client)["shop.web"]; !is {
			t.Fatal("it is dropped at the first sight")
		}
		s.passes(time.Minute)
		s.has(want)
	})
	t.Run("not while a replica is not heard", func(t *testing.T) {
		s := newSwept(t, data(), r.DeepCopy())
		s.unknown = errors.New("replica xds-1 is not heard")
		s.passes(2 * time.Hour)
		if _, is := storedIn(t, s.Client)["shop.web"]; !is {
			t.Fatal("it is dropped")
		}
	})
	t.Run("not while the Service is there, or back", func(t *testing.T) {
		s := newSwept(t, data(), r.DeepCopy())
		s.passes(30 * time.Minute)
		s.there[web] = true
		s.passes(time.Minute)
		delete(s.there, web)
		s.passes(30 * time.Minute)
		if _, is := storedIn(t, s.Client)["shop.web"]; !is {
			t.Fatal("it is dropped")
		}
	})
	t.Run("not by a cache that is behind", func(t *testing.T) {
		s := newSwept(t, data(), r.DeepCopy(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
		s.passes(2 * time.Hour)
		if _, is := storedIn(t, s.Client)["shop.web"]; !is {
			t.Fatal("it is dropped")
		}
	})
	t.Run("when its release ended while nobody led", func(t *testing.T) {
		s := newSwept(t, data())
		s.there[web] = true
		s.passes(50 * time.Minute)
		s.has(map[string]string{"shop.web": `{"plain":3000}`, "bank.old": "{", "_.dropped": `{"plain":1000,"floor":1000}`})
	})
}
