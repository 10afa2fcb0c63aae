// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"testing"
	"time"
)

// A server that was just started has proxies before it knows of any service. One that
// runs keeps what it has: to take "not known yet" for "not there" would answer its
// requests with 503.
func TestNothingIsSaidBeforeThereIsAView(t *testing.T) {
	cluster := &Resource{Type: Cluster, Name: "a", Version: Version{Hash: "c"}}
	ends := &Resource{Type: Endpoints, Name: "a", Version: Version{Hash: "e"}}
	route := &Resource{Type: Route, Name: "web", Version: Version{Hash: "r"}, Clusters: []string{"a"}}
	instead := func(k Key) *Resource { return &Resource{Type: k.Type, Name: k.Name, Version: Version{Hash: "missing"}} }
	s := NewStream(Config{}, proofs{}, instead, nil)
	now := time.Unix(1_000, 0)
	quiet := func(what string, effects []Effect) {
		t.Helper()
		for _, e := range effects {
			if send, is := e.(Send); is {
				t.Errorf("%s: %v %v is sent, and %v taken away", what, send.Type, send.Resources, send.Removed)
			}
		}
	}
	for _, r := range []*Resource{cluster, ends, route} {
		request := Request{Type: r.Type, Initial: map[string]string{r.Name: r.Version.String()}}
		if r.Type != Cluster {
			request.Subscribe = []string{r.Name}
		}
		quiet("it says what it has", s.Receive(now, request))
	}
	quiet("it asks for something else", s.Receive(now, Request{Type: Route, Subscribe: []string{"new"}}))
	for range 60 {
		now = now.Add(time.Second)
		quiet("time passes", s.Tick(now))
	}
	other := instead(Key{Route, "new"})
	view := NewView(cluster, ends, route, other)
	var sent []*Resource
	for _, e := range s.Publish(now, view, Diff(nil, view)) {
		if send, is := e.(Send); is {
			sent = append(sent, send.Resources...)
			if len(send.Removed) > 0 {
				t.Errorf("%v are taken away", send.Removed)
			}
		}
	}
	if len(sent) != 1 || sent[0] != other {
		t.Errorf("with a view these are sent: %v, want what it has not", sent)
	}
}
