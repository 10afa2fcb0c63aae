// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// leaving is a proxy whose one service is not managed any more.
func leaving(t *testing.T) (s *script, gone []ads.Send) {
	s = newScript(t, of(ads.Cluster, "web", "1"), of(ads.Endpoints, "web", "1"), of(ads.Listener, "outbound", "1"), of(ads.Route, "web", "1", "web"))
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Endpoints, "web")...)
	s.acknowledge(s.ask(ads.Listener)...)
	s.acknowledge(s.ask(ads.Route, "web")...)
	return s, s.publish()
}

// H1 of the review of the mesh: connections that were open were answered with 503, because the
// route was replaced by one that answers so, and the clusters went after thirty seconds.
func TestAServiceThatIsNotManagedAnyMoreIsServedUntilItsListenerIsDrained(t *testing.T) {
	s, gone := leaving(t)
	s.want("the listener goes, and nothing else", gone, "Listener -outbound")
	s.want("the proxy drains it", s.acknowledge(gone...), "")
	s.want("for ten minutes", s.pass(10*time.Minute), "")
	if next := s.stream.Next(); !next.IsZero() {
		t.Errorf("the stream is to be woken at %s", next)
	}
	s.want("the listener is drained", s.receive(ads.Request{Type: ads.Route, Unsubscribe: []string{"web"}}), "Cluster -web; Endpoints web=none")
}

func TestAServiceThatComesBackWhileItsListenerIsDrainedIsSentAnew(t *testing.T) {
	s, gone := leaving(t)
	s.acknowledge(gone...)
	back := s.publish(of(ads.Cluster, "web", "1"), of(ads.Endpoints, "web", "2"), of(ads.Listener, "outbound", "1"), of(ads.Route, "web", "2", "web"))
	s.want("the service is back", back, "Endpoints web=2; Listener outbound=1; Route web=2")
}

func TestARouteThatIsGoneIsGivenAgainToAProxyThatAsksAnew(t *testing.T) {
	s, gone := leaving(t)
	s.acknowledge(gone...)
	s.want("asked anew", s.receive(ads.Request{Type: ads.Route, Subscribe: []string{"web"}}), "Route web=1")
}

// A proxy comes back to another server, to which the service was never known.
func TestAProxyThatComesBackKeepsTheRouteOfAServiceThatIsGone(t *testing.T) {
	for name, initial := range map[string]map[string]string{"it reports the route": {"web": "0.1"}, "it reports nothing of it": nil} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			s.want("clusters", s.receive(ads.Request{Type: ads.Cluster, Initial: map[string]string{"web": "0.1"}}), "")
			s.want("endpoints", s.receive(ads.Request{Type: ads.Endpoints, Subscribe: []string{"web"}, Initial: map[string]string{"web": "0.1"}}), "")
			s.want("its route", s.receive(ads.Request{Type: ads.Route, Subscribe: []string{"web"}, Initial: initial}), "")
			s.want("for ten minutes", s.pass(10*time.Minute), "")
			s.want("it is drained", s.receive(ads.Request{Type: ads.Route, Unsubscribe: []string{"web"}}), "Cluster -web; Endpoints web=none")
		})
	}
}

// L1 of the review of the mesh: the removal was sent a thousand times in the same moment.
func TestARemovalThatIsRefusedIsSentAgainLater(t *testing.T) {
	s := newScript(t, of(ads.Listener, "a", "1"), of(ads.Listener, "b", "1"))
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Listener)...)
	removal := s.publish(of(ads.Listener, "a", "1"))
	s.want("it goes", removal, "Listener -b")
	s.want("the proxy refuses", s.receive(ads.Request{Type: ads.Listener, Nonce: removal[0].Nonce, Refused: true, Message: "no"}), "")
	if next := s.stream.Next().Sub(s.now); next != 30*time.Second {
		t.Errorf("the stream is to be woken in %s", next)
	}
	s.want("half a minute later", s.pass(30*time.Second), "Listener -b")
}

// The stream was woken without a pause for 25 seconds, since a route that waits for endpoints waits for five.
func TestAProxyThatRefusesTheRemovalOfARouteWakesTheStreamOnce(t *testing.T) {
	s := newScript(t, of(ads.Cluster, "web", "1"), of(ads.Endpoints, "web", "1"), of(ads.Route, "web", "1", "web"))
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Endpoints, "web")...)
	removal := s.receive(ads.Request{Type: ads.Route, Subscribe: []string{"web", "*"}, Initial: map[string]string{"web": "0.1", "old": "0.1"}})
	s.want("one that is not there", removal, "Route -old")
	s.want("the proxy refuses", s.refuse(removal[0], "no"), "")
	for _, after := range []time.Duration{0, 6 * time.Second} {
		s.want("the removal is not asked again at once", s.pass(after), "")
		if next := s.stream.Next().Sub(s.now); next != 30*time.Second-after {
			t.Errorf("after %s the stream is to be woken in %s", after, next)
		}
	}
	s.want("half a minute later", s.pass(24*time.Second), "Route -old")
}

// The refusal of a removal had begun the time for which a route waits for endpoints.
func TestARouteThatComesBackAfterARefusedRemovalWaitsForItsEndpoints(t *testing.T) {
	web := []*ads.Resource{of(ads.Cluster, "web", "1"), of(ads.Endpoints, "web", "1"), of(ads.Route, "web", "1", "web")}
	s := newScript(t, web...)
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Endpoints, "web")...)
	removal := s.receive(ads.Request{Type: ads.Route, Subscribe: []string{"web", "*"}, Initial: map[string]string{"web": "0.1", "old": "0.1"}})
	s.want("one that is not there", removal, "Route -old")
	s.refuse(removal[0], "no")
	s.pass(20 * time.Second)
	s.acknowledge(s.publish(append(web, of(ads.Cluster, "old", "1"), of(ads.Endpoints, "old", "1"), of(ads.Route, "old", "2", "old"))...)...)
	if next := s.stream.Next().Sub(s.now); next != 5*time.Second {
		t.Errorf("the stream is to be woken in %s, when the route has waited for five seconds", next)
	}
	s.wantLate("it is not late yet")
}

// H5 of the review of the mesh: the time at which a route was to go lay in the past while others
// before it had no answer, and the stream was woken again and again.
func TestAStreamThatWaitsForAnswersIsNotWokenByTime(t *testing.T) {
	all := []*ads.Resource{of(ads.Cluster, "slow", "1"), of(ads.Endpoints, "slow", "1"), of(ads.Cluster, "ok", "1"), of(ads.Endpoints, "ok", "1"), of(ads.Route, "a", "1", "slow")}
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("b%02d", i))
		r := of(ads.Route, names[i], "1", "ok")
		r.Body = make([]byte, 25_000)
		all = append(all, r)
	}
	s := newScript(t, all...)
	s.acknowledge(s.receive(ads.Request{Type: ads.Cluster, Initial: map[string]string{"old": "1.x"}})...)
	s.acknowledge(s.ask(ads.Endpoints, "ok")...)
	s.receive(ads.Request{Type: ads.Endpoints, Subscribe: []string{"slow"}})
	s.ask(ads.Route, "a")
	s.receive(ads.Request{Type: ads.Route, Subscribe: names})
	s.pass(6 * time.Second)
	if next := s.stream.Next(); !next.After(s.now) {
		t.Errorf("the stream is to be woken at %s, and it is %s", next, s.now)
	}
}

// H5 of the review of the mesh: 70,000 requests without an answer were 70,000 responses.
func TestResponsesWithoutAnAnswerAreBounded(t *testing.T) {
	s := newScript(t, of(ads.Listener, "a", "1"))
	s.ask(ads.Listener)
	sent := 1
	for range 10_000 {
		sent += len(s.receive(ads.Request{Type: ads.Listener, Subscribe: []string{"x"}}))
	}
	if sent != 64 {
		t.Errorf("%d responses have no answer, want 64", sent)
	}
}
