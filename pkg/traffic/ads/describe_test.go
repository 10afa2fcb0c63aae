// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// described is a stream that is asked about itself, and what it has sent.
type described struct {
	stream *ads.Stream
	now    time.Time
	sent   map[ads.Type]string // the last nonce of each type
}

func (d *described) note(effects []ads.Effect) {
	for _, e := range effects {
		if send, is := e.(ads.Send); is {
			d.sent[send.Type] = send.Nonce
		}
	}
}

func (d *described) receive(r ads.Request) { d.note(d.stream.Receive(d.now, r)) }

func (d *described) acknowledge(kind ads.Type) {
	d.receive(ads.Request{Type: kind, Nonce: d.sent[kind]})
}

func (d *described) refuse(kind ads.Type, message string) {
	d.receive(ads.Request{Type: kind, Nonce: d.sent[kind], Refused: true, Message: message})
}

func (d *described) pass(by time.Duration) {
	d.now = d.now.Add(by)
	d.note(d.stream.Tick(d.now))
}

func (d *described) publish(before, after *ads.View) {
	d.note(d.stream.Publish(d.now, after, ads.Diff(before, after)))
}

// A cluster with endpoints, and a route to it: each stage that a resource may be in,
// why, and since when.
func TestAStreamSaysHowFarEachResourceIs(t *testing.T) {
	version := func(hash string) ads.Version { return ads.Version{Hash: hash} }
	cluster := &ads.Resource{Type: ads.Cluster, Name: "a", Version: version("c1")}
	ends := &ads.Resource{Type: ads.Endpoints, Name: "a", Version: version("e1")}
	route := &ads.Resource{Type: ads.Route, Name: "web", Version: version("r2"), Clusters: []string{"a"}}
	began := time.Unix(1_000, 0)
	base := func(k ads.Type, name string, stage ads.Stage) ads.State {
		return ads.State{Type: k, Name: name, Stage: stage}
	}
	with := func(s ads.State, change func(*ads.State)) ads.State { change(&s); return s }
	full := ads.NewView(cluster, ends, route)
	tests := map[string]struct {
		view *ads.View
		acts func(d *described)
		key  ads.Key
		want ads.State
	}{
		"sent, without an answer": {
			full, func(d *described) { d.receive(ads.Request{Type: ads.Cluster}) },
			ads.Key{Type: ads.Cluster, Name: "a"},
			with(base(ads.Cluster, "a", ads.OnTheWay), func(s *ads.State) { s.Sent, s.Wants, s.Since = version("c1"), version("c1"), began }),
		},
		"sent, without an answer for long": {
			full, func(d *described) { d.receive(ads.Request{Type: ads.Cluster}); d.pass(time.Minute) },
			ads.Key{Type: ads.Cluster, Name: "a"},
			with(base(ads.Cluster, "a", ads.OnTheWay), func(s *ads.State) {
				s.Sent, s.Wants, s.Since, s.Why = version("c1"), version("c1"), began, "the proxy does not answer"
			}),
		},
		"acknowledged": {
			full, func(d *described) {
				d.receive(ads.Request{Type: ads.Cluster})
				d.pass(time.Second)
				d.acknowledge(ads.Cluster)
			},
			ads.Key{Type: ads.Cluster, Name: "a"},
			with(base(ads.Cluster, "a", ads.Acknowledged), func(s *ads.State) {
				s.Has, s.Wants, s.Since = version("c1"), version("c1"), began.Add(time.Second)
			}),
		},
		"refused, with what the proxy says": {
			full, func(d *described) {
				d.receive(ads.Request{Type: ads.Cluster})
				d.refuse(ads.Cluster, "no such policy")
			},
			ads.Key{Type: ads.Cluster, Name: "a"},
			with(base(ads.Cluster, "a", ads.Refused), func(s *ads.State) { s.Wants, s.Since, s.Why = version("c1"), began, "no such policy" }),
		},
		"held until there are endpoints": {
			full, func(d *described) {
				d.receive(ads.Request{Type: ads.Cluster})
				d.receive(ads.Request{Type: ads.Endpoints, Subscribe: []string{"a"}})
				d.receive(ads.Request{Type: ads.Route, Subscribe: []string{"web"}, Initial: map[string]string{"web": "0.r1"}})
			},
			ads.Key{Type: ads.Route, Name: "web"},
			with(base(ads.Route, "web", ads.Held), func(s *ads.State) {
				s.Has, s.Wants, s.Since, s.Why = version("r1"), version("r2"), began, "endpoints of [a] are not acknowledged"
			}),
		},
		"ready, and sent when what is large was answered": {
			ads.NewView(cluster, ends, route, &ads.Resource{Type: ads.Route, Name: "large", Version: version("r1"), Body: make([]byte, 300<<10)}),
			func(d *described) {
				d.receive(ads.Request{Type: ads.Cluster, Initial: map[string]string{"a": "0.c1"}})
				d.receive(ads.Request{Type: ads.Endpoints, Subscribe: []string{"a"}, Initial: map[string]string{"a": "0.e1"}})
				d.receive(ads.Request{Type: ads.Route, Subscribe: []string{"large", "web"}})
			},
			ads.Key{Type: ads.Route, Name: "web"},
			with(base(ads.Route, "web", ads.Queued), func(s *ads.State) {
				s.Wants, s.Why = version("r2"), "the version before has no answer yet"
			}),
		},
		"held back because a route names it": {
			full, func(d *described) {
				d.receive(ads.Request{Type: ads.Cluster, Initial: map[string]string{"a": "0.c1"}})
				d.receive(ads.Request{Type: ads.Route, Subscribe: []string{"web"}, Initial: map[string]string{"web": "0.r2"}})
				d.publish(full, ads.NewView(route))
			},
			ads.Key{Type: ads.Cluster, Name: "a"},
			with(base(ads.Cluster, "a", ads.Going), func(s *ads.State) {
				s.Has, s.Since, s.Why = version("c1"), began, "a route may still name it"
			}),
		},
		"gone, and still wanted by the proxy": {
			full, func(d *described) {
				d.receive(ads.Request{Type: ads.Cluster, Initial: map[string]string{"a": "0.c1"}})
				d.receive(ads.Request{Type: ads.Route, Subscribe: []string{"web"}, Initial: map[string]string{"web": "0.r2"}})
				d.publish(full, ads.NewView())
			},
			ads.Key{Type: ads.Route, Name: "web"},
			with(base(ads.Route, "web", ads.Going), func(s *ads.State) {
				s.Has, s.Why = version("r2"), "the proxy still wants it: connections of before may be open"
			}),
		},
		"gone, without an answer": {
			ads.NewView(cluster), func(d *described) {
				d.receive(ads.Request{Type: ads.Cluster})
				d.acknowledge(ads.Cluster)
				d.receive(ads.Request{Type: ads.Route, Subscribe: []string{"none"}})
				d.acknowledge(ads.Route)
				d.publish(ads.NewView(cluster), ads.NewView())
			},
			ads.Key{Type: ads.Cluster, Name: "a"},
			with(base(ads.Cluster, "a", ads.Going), func(s *ads.State) {
				s.Has, s.Since, s.Why = version("c1"), began, "the proxy has not acknowledged the removal"
			}),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := &described{stream: ads.NewStream(ads.Config{}, newProofs(), nothingThere, tc.view), now: began, sent: map[ads.Type]string{}}
			tc.acts(d)
			only := func(k ads.Key) bool { return k == tc.key }
			if diff := cmp.Diff([]ads.State{tc.want}, d.stream.States(only)); diff != "" {
				t.Errorf("it says (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[ads.Stage]int{tc.want.Stage: 1}, d.stream.Count(only)); diff != "" {
				t.Errorf("it counts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAProxySaysIsKeptInPart(t *testing.T) {
	view := ads.NewView(&ads.Resource{Type: ads.Cluster, Name: "a", Version: ads.Version{Hash: "c1"}})
	d := &described{stream: ads.NewStream(ads.Config{}, newProofs(), nothingThere, view), now: time.Unix(1, 0), sent: map[ads.Type]string{}}
	d.receive(ads.Request{Type: ads.Cluster})
	d.refuse(ads.Cluster, "x"+strings.Repeat("ü", 1<<20))
	if why := d.stream.States(func(ads.Key) bool { return true })[0].Why; len(why) > 600 || !strings.HasSuffix(why, "ü…") {
		t.Errorf("of a message of two mebibytes %d bytes are kept", len(why))
	}
}
