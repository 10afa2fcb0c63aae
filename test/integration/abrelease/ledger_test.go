// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// ledger is the ConfigMap of sequences; nil when there is none.
func (s *shop) ledger() *corev1.ConfigMap {
	s.t.Helper()
	var m corev1.ConfigMap
	err := admin.Get(s.t.Context(), types.NamespacedName{Namespace: s.namespace, Name: release.LedgerName}, &m)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return &m
}

func (s *shop) key() string {
	return release.EntryKey(types.NamespacedName{Namespace: s.namespace, Name: "web"})
}

// damages of the ConfigMap, in which the entry of the Service web was once another one.
var damages = map[string]func(s *shop, m *corev1.ConfigMap, once string) error{
	"deleted": func(s *shop, m *corev1.ConfigMap, _ string) error { return admin.Delete(s.t.Context(), m) },
	"emptied": func(s *shop, m *corev1.ConfigMap, _ string) error {
		m.Data = nil
		return admin.Update(s.t.Context(), m)
	},
	"cut off": func(s *shop, m *corev1.ConfigMap, _ string) error {
		m.Data[s.key()] = m.Data[s.key()][:9]
		return admin.Update(s.t.Context(), m)
	},
	"filled with something else": func(s *shop, m *corev1.ConfigMap, _ string) error {
		m.Data = map[string]string{"readme": "this is mine"}
		return admin.Update(s.t.Context(), m)
	},
	"put back to what it was": func(s *shop, m *corev1.ConfigMap, once string) error {
		m.Data[s.key()] = once
		return admin.Update(s.t.Context(), m)
	},
}

// damaged does it, again where the leader has written meanwhile.
func (s *shop) damaged(damage func(*shop, *corev1.ConfigMap, string) error, once string) {
	s.t.Helper()
	s.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error { return damage(s, s.ledger(), once) }))
}

// Once while somebody leads, and once while nobody does: nothing moves, the ledger is
// written again, and what comes then is above all that was.
func TestTheSequencesAreWrittenAgain(t *testing.T) {
	for name, damage := range damages {
		// One after the other: who leads decides about the releases of all namespaces.
		t.Run("which somebody has "+name, func(t *testing.T) {
			s, _ := shopWithTwo(t)
			s.plain("web", backend.Start(t, "plain"))
			r := s.start(leads)
			proxy, front := s.proxy(r, "front-0")
			once := s.retire("first")
			current := s.release("web", "{type: Percentage, percentages: {stable: 0, canary: 100}}")
			s.split(current, "stable 0 / canary 100")
			last := current.Status.Effective.Sequence
			s.carries(proxy, last)
			was := s.ledger().Data[s.key()]

			s.damaged(damage, once)
			s.written(front, func(e release.Entry) bool { return e.String() == was })
			s.unmoved(current, last)
			s.patch(current, "spec: {variations: "+both+", trafficSplit: {overrideHeader: x-variation}}")
			last++
			s.carries(proxy, last)

			r.stop()
			s.damaged(damage, once)
			s.startAt(r.address, r, leads)
			s.connected(proxy)
			s.written(front, func(e release.Entry) bool { return e.Holder == string(current.UID) && e.Ceiling > uint64(last) }) //nolint:gosec // sequences are positive
			s.unmoved(current, last)
			if is, err := sequence(t, proxy); err != nil || is != last {
				t.Errorf("the proxy has sequence %d after %d: %v", is, last, err)
			}
			s.must(admin.Delete(t.Context(), current))
			reaches(t, front, "200 plain")
			if is, err := sequence(t, proxy); err != nil || is <= last {
				t.Errorf("without the release the proxy has sequence %d after %d: %v", is, last, err)
			}
		})
	}
}

// M3 of the review of the mesh. The proxy has a route of the Service still, and another process
// leads when the time comes: it knows of the route what the proxy reports.
func TestTheSequenceOfAServiceThatIsGoneIsDroppedWhenNoProxyHasARouteOfIt(t *testing.T) {
	s, _ := shopWithTwo(t)
	r := s.start(asksProxies)
	proxy, _ := s.proxy(r, "front-0")
	first := s.release("first", "{type: Percentage, percentages: {stable: 0, canary: 100}}")
	s.split(first, "stable 0 / canary 100")
	s.carries(proxy, first.Status.Effective.Sequence)
	s.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		m := s.ledger()
		m.Data[s.namespace+".pay"] = release.Entry{Plain: 7000}.String() // no proxy has a route of it
		return admin.Update(t.Context(), m)
	}))
	r.stop()
	s.must(admin.Delete(t.Context(), first)) // while nobody leads, who would note it
	s.must(admin.Delete(t.Context(), &corev1.Service{ObjectMeta: s.named("web")}))

	s.keptFor = time.Second
	r = s.startAt(r.address, r, waits)
	s.connected(proxy)
	r.lead()
	dropped := func(key string) {
		t.Helper()
		poll.Until(t, patience, "the entry "+key+" is dropped", func() error {
			if e, is := s.ledger().Data[key]; is {
				return fmt.Errorf("it is %s", e)
			}
			return nil
		})
	}
	dropped(s.namespace + ".pay")
	if e, err := release.ParseEntry(s.ledger().Data[s.key()]); err != nil || e.Holder != "" || e.Gone == 0 {
		t.Errorf("the entry of the Service of which a proxy has a route is %s, %v", e, err)
	}
	proxy.Stop()
	dropped(s.key())

	s.service("web")
	again := s.release("again", "{type: Percentage, percentages: {stable: 0, canary: 100}}")
	s.split(again, "stable 0 / canary 100")
	if is := again.Status.Effective.Sequence; is <= 7000 {
		t.Errorf("the Service begins at %d, which a proxy that was away may be above", is)
	}
	proxy, _ = s.proxy(r, "front-1")
	s.carries(proxy, again.Status.Effective.Sequence)
}

// M3: a namespace that takes all it can has no release of another one wait.
func TestANamespaceThatFillsTheLedgerHasNoOtherWait(t *testing.T) {
	s, _ := shopWithTwo(t)
	data := map[string]string{}
	for n := range 8 {
		for i := range 480 { // as many as it may
			data[fmt.Sprintf("evil-%d.%063d", n, i)] = release.Entry{Plain: 1000}.String()
		}
	}
	for i := range 600 {
		data[fmt.Sprintf("%s.s%d", s.namespace, i)] = release.Entry{Plain: 1000}.String()
	}
	m := &corev1.ConfigMap{ObjectMeta: s.named(release.LedgerName), Data: data}
	s.create(m)
	s.start(leads)
	current := s.release("web", "{type: Percentage, percentages: {stable: 0, canary: 100}}")
	s.split(current, "stable 0 / canary 100")

	full := newShop(t)
	full.service("web")
	full.backend("web-stable", "web", "stable")
	full.backend("web-canary", "web", "canary")
	// The leader writes the ledger as well, for each release that it looks at.
	poll.Until(t, patience, "the share of the other namespace is full", func() error {
		m := s.ledger()
		for i := range 4000 {
			m.Data[fmt.Sprintf("%s.s%d", full.namespace, i)] = release.Entry{Plain: 1000}.String()
		}
		return admin.Update(t.Context(), m)
	})
	waits := full.release("web", "{type: Percentage, percentages: {stable: 0, canary: 100}}")
	full.wait(waits, "the release whose namespace is full says so", func(r *v1alpha1.ABRelease) bool {
		c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
		return r.Status.Effective == nil && c != nil && contains(c.Message, "the sequences of the Services of namespace "+full.namespace+" would take")
	})
}

// retire has a release be in force once, and returns the Service's entry while it was.
func (s *shop) retire(name string) (entry string) {
	s.t.Helper()
	r := s.release(name, "{type: Percentage, percentages: {stable: 100, canary: 0}}")
	s.split(r, "stable 100 / canary 0")
	entry = s.ledger().Data[s.key()]
	s.must(admin.Delete(s.t.Context(), r))
	poll.True(s.t, patience, "the entry says that its holder is gone", func() bool {
		e, err := release.ParseEntry(s.ledger().Data[s.key()])
		return err == nil && e.Holder == "" && e.Plain > 0
	})
	return entry
}

// written waits until the entry is there again; all requests go to the canary meanwhile.
func (s *shop) written(front string, is func(release.Entry) bool) {
	s.t.Helper()
	poll.Until(s.t, patience, "the ledger is written again", func() error {
		if got, _ := ask(s.t, front); got != "200 canary" {
			s.t.Fatalf("without the ledger it answers %q", got)
		}
		m := s.ledger()
		if m == nil {
			return fmt.Errorf("there is none")
		}
		e, err := release.ParseEntry(m.Data[s.key()])
		if err == nil && !is(e) {
			err = fmt.Errorf("it says %s", e)
		}
		return err
	})
}

// unmoved demands that a release has in force what it had.
func (s *shop) unmoved(r *v1alpha1.ABRelease, last int64) {
	s.t.Helper()
	s.must(admin.Get(s.t.Context(), types.NamespacedName{Namespace: s.namespace, Name: r.Name}, r))
	if is := r.Status.Effective.Sequence; is != last || r.Status.Split != "stable 0 / canary 100" {
		s.t.Errorf("in force is %s with sequence %d after %d", r.Status.Split, is, last)
	}
}
