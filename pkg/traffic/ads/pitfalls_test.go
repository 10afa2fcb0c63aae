// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// script is a stream of which a test plays the proxy, message by message. The pitfalls
// by their numbers are those of docs/reference/xds-pitfalls.md.
type script struct {
	t      testing.TB
	now    time.Time
	stream *ads.Stream
	view   *ads.View
	proofs *proofs
	// told are effects that are no responses.
	told []ads.Effect
}

func newScript(t testing.TB, resources ...*ads.Resource) *script {
	s := &script{t: t, now: time.Unix(1_800_000_000, 0), view: ads.NewView(resources...), proofs: newProofs()}
	s.stream = ads.NewStream(ads.Config{}, s.proofs, nothingThere, s.view)
	return s
}

// of names a version of something; a route names clusters.
func of(kind ads.Type, name, hash string, clusters ...string) *ads.Resource {
	return &ads.Resource{Type: kind, Name: name, Version: ads.Version{Hash: hash}, Body: []byte(hash), Clusters: clusters}
}

// responses of effects; what else there is, is kept.
func (s *script) responses(effects []ads.Effect) (sends []ads.Send) {
	for _, e := range effects {
		if send, is := e.(ads.Send); is {
			sends = append(sends, send)
			continue
		}
		s.told = append(s.told, e)
	}
	return sends
}

func (s *script) ask(kind ads.Type, names ...string) []ads.Send {
	return s.receive(ads.Request{Type: kind, Subscribe: names})
}

func (s *script) receive(r ads.Request) []ads.Send {
	return s.responses(s.stream.Receive(s.now, r))
}

func (s *script) publish(resources ...*ads.Resource) []ads.Send {
	before := s.view
	s.view = ads.NewView(resources...)
	return s.responses(s.stream.Publish(s.now, s.view, ads.Diff(before, s.view)))
}

func (s *script) pass(d time.Duration) []ads.Send {
	s.now = s.now.Add(d)
	return s.responses(s.stream.Tick(s.now))
}

// acknowledge responses, and what comes of that, until nothing does.
func (s *script) acknowledge(sends ...ads.Send) (all []ads.Send) {
	for len(sends) > 0 {
		var next []ads.Send
		for _, send := range sends {
			next = append(next, s.receive(ads.Request{Type: send.Type, Nonce: send.Nonce})...)
		}
		all, sends = append(all, next...), next
	}
	return all
}

func (s *script) refuse(send ads.Send, why string) []ads.Send {
	return s.receive(ads.Request{Type: send.Type, Nonce: send.Nonce, Refused: true, Message: why})
}

// says is what responses have in them, as "Cluster a=1 -b; Route web=2".
func says(sends []ads.Send) string {
	var texts []string
	for _, send := range sends {
		words := []string{send.Type.String()}
		for _, r := range send.Resources {
			words = append(words, r.Name+"="+r.Version.Hash)
		}
		for _, name := range send.Removed {
			words = append(words, "-"+name)
		}
		texts = append(texts, strings.Join(words, " "))
	}
	return strings.Join(texts, "; ")
}

func (s *script) want(what string, got []ads.Send, want string) {
	s.t.Helper()
	if diff := cmp.Diff(want, says(got)); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (s *script) stage(kind ads.Type, name string) ads.Stage {
	for _, state := range s.stream.States(func(k ads.Key) bool { return k == ads.Key{Type: kind, Name: name} }) {
		return state.Stage
	}
	return ""
}

func TestPitfall01AMissingNameDoesNotHoldTheOthersBack(t *testing.T) {
	s := newScript(t, of(ads.Endpoints, "a", "1"), of(ads.Endpoints, "unasked", "1"), of(ads.Route, "web", "1"))
	s.want("one that is there, one that is not", s.ask(ads.Endpoints, "lost", "a"), "Endpoints a=1; Endpoints lost=none")
	s.want("of another type", s.ask(ads.Route, "nowhere", "web"), "Route web=1; Route nowhere=none")
}

func TestPitfall02ARouteWithoutEndpointsHoldsNoOtherBack(t *testing.T) {
	good, bad := of(ads.Cluster, "good", "1"), of(ads.Cluster, "bad", "1")
	s := newScript(t, good, of(ads.Endpoints, "good", "1"), of(ads.Route, "cart", "1", "good"), of(ads.Route, "web", "1", "good"))
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Endpoints, "good")...)
	s.acknowledge(s.ask(ads.Route, "web", "cart")...)
	all := []*ads.Resource{good, of(ads.Endpoints, "good", "1"), bad, of(ads.Route, "cart", "2", "good"), of(ads.Route, "web", "2", "good", "bad")}
	s.want("one route has all that it names", s.publish(all...), "Cluster bad=1; Route cart=2")
	if state := s.stage(ads.Route, "web"); state != ads.Held {
		t.Errorf("the other one is %s", state)
	}
}

func TestPitfall03ARouteWaitsForAcknowledgedEndpointsThroughEveryPublication(t *testing.T) {
	stable := []*ads.Resource{of(ads.Cluster, "a", "1"), of(ads.Endpoints, "a", "1")}
	s := newScript(t, append(stable, of(ads.Route, "web", "1", "a"))...)
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Endpoints, "a")...)
	s.acknowledge(s.ask(ads.Route, "web")...)
	with := func(hash string) []*ads.Resource {
		return append(stable, of(ads.Cluster, "b", "1"), of(ads.Endpoints, "b", "1"), of(ads.Route, "web", hash, "a", "b"))
	}
	cluster := s.publish(with("2")...)
	s.want("the cluster goes first", cluster, "Cluster b=1")
	s.want("its acknowledgment says nothing", s.acknowledge(cluster...), "")
	s.want("the next snapshot does not overtake it", s.publish(with("3")...), "")
	ends := s.ask(ads.Endpoints, "b")
	s.want("endpoints go when they are asked for", ends, "Endpoints b=1")
	s.want("nor one while they are on the way", s.publish(with("4")...), "")
	s.want("the last one goes when they are acknowledged", s.acknowledge(ends...), "Route web=4")
}

func TestPitfall04WhatGoesIsNotInTheResponseThatBringsItsSuccessor(t *testing.T) {
	s := newScript(t, of(ads.Cluster, "old", "1"), of(ads.Endpoints, "old", "1"), of(ads.Route, "web", "1", "old"))
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Endpoints, "old")...)
	s.acknowledge(s.ask(ads.Route, "web")...)
	cluster := s.publish(of(ads.Cluster, "new", "1"), of(ads.Endpoints, "new", "1"), of(ads.Route, "web", "2", "new"))
	s.want("the successor", cluster, "Cluster new=1")
	s.acknowledge(cluster...)
	route := s.receive(ads.Request{Type: ads.Endpoints, Nonce: s.ask(ads.Endpoints, "new")[0].Nonce})
	s.want("then the route", route, "Route web=2")
	s.want("then what nobody names", s.acknowledge(route...), "Cluster -old; Endpoints old=none")
}

func TestPitfall05OnlyWhatIsAcknowledgedCountsAsDelivered(t *testing.T) {
	s := newScript(t, of(ads.Cluster, "a", "1"))
	first := s.ask(ads.Cluster)
	if state := s.stage(ads.Cluster, "a"); state != ads.OnTheWay {
		t.Errorf("what was sent is %s", state)
	}
	s.receive(ads.Request{Type: ads.Cluster, Nonce: "99"})
	if state := s.stage(ads.Cluster, "a"); state != ads.OnTheWay {
		t.Errorf("after the answer to something else it is %s", state)
	}
	s.acknowledge(first...)
	if state := s.stage(ads.Cluster, "a"); state != ads.Acknowledged {
		t.Errorf("what was acknowledged is %s", state)
	}
	s.refuse(s.publish(of(ads.Cluster, "a", "2"))[0], "no such thing")
	if state := s.stage(ads.Cluster, "a"); state != ads.Refused {
		t.Errorf("what was refused is %s", state)
	}
	want := []ads.Effect{
		ads.Stale{Type: ads.Cluster, Nonce: "99"}, ads.Acked{Resources: []*ads.Resource{of(ads.Cluster, "a", "1")}},
		ads.Rejected{Resource: of(ads.Cluster, "a", "2"), Message: "no such thing"},
	}
	if diff := cmp.Diff(want, s.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestPitfall06WhatIsRefusedIsNotSentAgainUntilItChanges(t *testing.T) {
	s := newScript(t, of(ads.Route, "web", "bad"))
	sent := s.ask(ads.Route, "web")
	s.want("it is sent", sent, "Route web=bad")
	s.want("a proxy without any gets what stands for it", s.refuse(sent[0], "bad"), "Route web=none")
	for range 100 {
		if again := s.pass(time.Minute); len(again) > 0 {
			t.Fatalf("it is sent again: %s", says(again))
		}
	}
	s.want("something else changes", s.publish(of(ads.Route, "web", "bad"), of(ads.Route, "cart", "1")), "")
}

func TestPitfall07WhoAsksAgainIsAnsweredAgain(t *testing.T) {
	for _, kind := range []ads.Type{ads.Cluster, ads.Endpoints, ads.Listener, ads.Route} {
		s := newScript(t, of(kind, "a", "1"))
		s.acknowledge(s.ask(kind, "a")...)
		again := s.ask(kind, "a")
		s.want("what it has", again, kind.String()+" a=1")
		s.want("while that is on the way", s.ask(kind, "a"), kind.String()+" a=1")
	}
}

func TestPitfall08OfWhatIsMissingTheProxyIsToldAtOnce(t *testing.T) {
	s := newScript(t)
	s.want("endpoints", s.ask(ads.Endpoints, "a"), "Endpoints a=none")
	s.want("a route", s.ask(ads.Route, "web"), "Route web=none")
	s.want("what a proxy had when it comes back",
		s.receive(ads.Request{Type: ads.Listener, Initial: map[string]string{"10.0.0.1:80": "0.1"}}), "Listener -10.0.0.1:80")
}

func TestPitfall09WhatEverythingMeans(t *testing.T) {
	type step struct {
		request ads.Request
		want    string
	}
	subscribe := func(kind ads.Type, names ...string) ads.Request { return ads.Request{Type: kind, Subscribe: names} }
	leave := func(names ...string) ads.Request { return ads.Request{Type: ads.Cluster, Unsubscribe: names} }
	tests := map[string][]step{
		"no name at first is all clusters":     {{subscribe(ads.Cluster), "Cluster a=1 b=1"}},
		"and all listeners":                    {{subscribe(ads.Listener), "Listener l=1"}},
		"but no endpoints":                     {{subscribe(ads.Endpoints), ""}},
		"and no routes":                        {{subscribe(ads.Route), ""}},
		"a star is everything":                 {{subscribe(ads.Cluster, "*"), "Cluster a=1 b=1"}},
		"also later":                           {{subscribe(ads.Cluster, "a"), "Cluster a=1"}, {subscribe(ads.Cluster, "*"), "Cluster b=1"}},
		"a name is that name alone":            {{subscribe(ads.Cluster, "b"), "Cluster b=1"}},
		"no name later is no change":           {{subscribe(ads.Cluster, "b"), "Cluster b=1"}, {subscribe(ads.Cluster), ""}},
		"a name beside everything is answered": {{subscribe(ads.Cluster, "*", "lost"), "Cluster a=1 b=1 -lost"}},
		"who leaves everything keeps the name": {{subscribe(ads.Cluster, "*", "a"), "Cluster a=1 b=1"}, {leave("*"), ""}, {subscribe(ads.Cluster, "b"), "Cluster b=1"}},
		// The client cannot know whether everything has it in it.
		"who leaves a name and keeps everything is sent it anew": {{subscribe(ads.Cluster, "*", "a"), "Cluster a=1 b=1"}, {leave("a"), "Cluster a=1"}},
		"or that it is not there":                                {{subscribe(ads.Cluster, "*", "lost"), "Cluster a=1 b=1 -lost"}, {leave("lost"), "Cluster -lost"}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, of(ads.Cluster, "a", "1"), of(ads.Cluster, "b", "1"), of(ads.Listener, "l", "1"), of(ads.Endpoints, "a", "1"), of(ads.Route, "r", "1"))
			s.receive(ads.Request{Type: ads.Route, Subscribe: []string{"none"}}) // no route names a cluster
			for i, step := range steps {
				got := s.receive(step.request)
				s.want(fmt.Sprint("request ", i), got, step.want)
				s.acknowledge(got...)
			}
		})
	}
}

func TestPitfall10WhoComesBackToANameGetsItsLastVersion(t *testing.T) {
	cluster := of(ads.Cluster, "a", "1")
	s := newScript(t, cluster, of(ads.Endpoints, "a", "1"))
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Endpoints, "a")...)
	s.receive(ads.Request{Type: ads.Endpoints, Unsubscribe: []string{"a"}})
	s.want("what it has left", s.publish(cluster, of(ads.Endpoints, "a", "2")), "")
	s.want("asked for again", s.ask(ads.Endpoints, "a"), "Endpoints a=2")
	s.acknowledge(s.ask(ads.Route, "none")...) // no route names the cluster
	gone := s.publish()
	s.want("the cluster goes", gone, "Cluster -a; Endpoints a=none")
	s.acknowledge(gone...)
	back := s.publish(cluster, of(ads.Endpoints, "a", "2"))
	s.want("and comes back, as do the endpoints that the proxy has asked for once", append(back, s.acknowledge(back...)...), "Cluster a=1; Endpoints a=2")
}

// counted says how often the proofs, which all streams share, are asked.
type counted struct {
	*proofs
	asked int
}

func (c *counted) Proven(r *ads.Resource) bool  { c.asked++; return c.proofs.Proven(r) }
func (c *counted) Last(k ads.Key) *ads.Resource { c.asked++; return c.proofs.Last(k) }
func (c *counted) Prove(r *ads.Resource)        { c.asked++; c.proofs.Prove(r) }

func clustersOf(n int) (all []*ads.Resource) {
	for i := range n {
		all = append(all, of(ads.Cluster, fmt.Sprint("c", i), "1"))
	}
	return all
}

func TestPitfall12AnAnswerCostsWhatItAnswersAndNotWhatThereIs(t *testing.T) {
	cost := func(n int) (asked int, allocated float64) {
		s := newScript(t, clustersOf(n)...)
		c := &counted{proofs: s.proofs}
		s.stream = ads.NewStream(ads.Config{Batch: n, Window: 1 << 30}, c, nothingThere, s.view)
		s.acknowledge(s.ask(ads.Cluster)...)
		other := of(ads.Cluster, "c0", "2")
		views := []*ads.View{ads.NewView(append(clustersOf(n), other)...), s.view}
		c.asked = 0
		turn := 0
		allocated = testing.AllocsPerRun(20, func() {
			sent := s.responses(s.stream.Publish(s.now, views[turn%2], []ads.Key{{Type: ads.Cluster, Name: "c0"}}))
			s.receive(ads.Request{Type: ads.Cluster, Nonce: sent[0].Nonce})
			s.told, turn = s.told[:0], turn+1
		})
		return c.asked, allocated
	}
	fewAsked, fewAllocated := cost(50)
	manyAsked, manyAllocated := cost(5_000)
	if fewAsked != manyAsked || manyAllocated > fewAllocated+1 {
		t.Errorf("with 50 clusters the proofs are asked %d times and %.0f objects made, with 5,000 %d times and %.0f", fewAsked, fewAllocated, manyAsked, manyAllocated)
	}
}

func TestPitfall14AStreamKeepsLittleOfWhatItsProxyWantsAndNothingOfTheRest(t *testing.T) {
	const streams, wanted = 500, 50
	var all []*ads.Resource
	for i := range 5_000 {
		all = append(all, of(ads.Endpoints, fmt.Sprint("c", i), "1"))
	}
	view, kept := ads.NewView(all...), make([]*ads.Stream, streams)
	var names []string
	for i := range wanted {
		names = append(names, all[i].Name)
	}
	shared := newProofs()
	before := heap()
	for i := range kept {
		s := &script{now: time.Unix(0, 0), proofs: shared, view: view}
		s.stream = ads.NewStream(ads.Config{}, s.proofs, nothingThere, view)
		for range 3 { // a thousand responses would keep no more
			s.acknowledge(s.ask(ads.Endpoints, names...)...)
		}
		kept[i] = s.stream
	}
	each := (heap() - before) / streams
	runtime.KeepAlive(kept)
	t.Logf("%d bytes for each of %d streams with %d names of %d", each, streams, wanted, len(all))
	if most := 16 << 10; each > most {
		t.Errorf("a stream keeps %d bytes, want at most %d", each, most)
	}
}

// heap is what is in use after a collection.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // far below
}

func TestPitfall22ClustersGoToAProxyThatForgetsToAskForThem(t *testing.T) {
	s := newScript(t, of(ads.Cluster, "a", "2"), of(ads.Endpoints, "a", "1"))
	s.want("it comes back and asks for the rest", s.receive(ads.Request{Type: ads.Endpoints, Subscribe: []string{"a"}, Initial: map[string]string{"a": "0.1"}}), "")
	s.want("before a second", s.pass(999*time.Millisecond), "")
	s.want("after it", s.pass(time.Millisecond), "Cluster a=2; Endpoints a=1")
}

func TestPitfall23OfARefusedResponseTheBadResourceIsFound(t *testing.T) {
	first := []*ads.Resource{of(ads.Endpoints, "a", "1"), of(ads.Endpoints, "b", "1"), of(ads.Endpoints, "c", "1")}
	s := newScript(t, first...)
	for _, name := range []string{"a", "b", "c"} { // another proxy takes all of them
		s.proofs.Prove(of(ads.Endpoints, name, "2"))
	}
	s.acknowledge(s.ask(ads.Endpoints, "a", "b", "c")...)
	together := s.publish(of(ads.Endpoints, "a", "2"), of(ads.Endpoints, "b", "2"), of(ads.Endpoints, "c", "2"))
	s.want("what others have acknowledged travels together", together, "Endpoints a=2 b=2 c=2")
	alone := s.refuse(together[0], "one of them")
	s.want("then each alone", alone, "Endpoints a=2; Endpoints b=2; Endpoints c=2")
	s.acknowledge(alone[0], alone[2])
	s.want("the cluster may wait for the bad one: what it had comes once more", s.refuse(alone[1], "b is bad"), "Endpoints b=1")
	for name, want := range map[string]ads.Stage{"a": ads.Acknowledged, "b": ads.OnTheWay, "c": ads.Acknowledged} {
		if state := s.stage(ads.Endpoints, name); state != want {
			t.Errorf("%s is %s, want %s", name, state, want)
		}
	}
	if last := s.told[len(s.told)-1]; cmp.Diff(ads.Rejected{Resource: of(ads.Endpoints, "b", "2"), Message: "b is bad"}, last) != "" {
		t.Errorf("told is %+v", last)
	}
}
