// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// envoy is a client as Envoy 1.40 was measured to be: it acknowledges clusters only when
// all of them have endpoints, applies a part of a response that it refuses, and
// subscribes to what its clusters and listeners need.
type envoy struct {
	has  map[ads.Key]*ads.Resource
	want map[ads.Key]bool // endpoints and routes that it has asked for
	// bad says what it refuses; partial, which of the others of a response it applies.
	bad     func(*ads.Resource) bool
	partial func(int) bool
	// stuck says which clusters can never be built, and yet are not refused. Some of
	// them, whose names end in "|mute", do not even ask for endpoints.
	stuck func(*ads.Resource) bool
	// rewarms are clusters that changed and wait for their endpoints anew.
	rewarms map[string]bool
	// silent are those of which it reports an older version than it has: the rest of a
	// response that it refused, when the stream broke before it was sent again. Envoy
	// does so too, and nobody can know.
	silent map[ads.Key]bool
	// asked are those that it has asked for anew and not got since.
	asked map[ads.Key]bool
	// withheld are answers about clusters that wait for endpoints.
	withheld []ads.Request
	// reported are the versions that it tells when it reconnects: those of responses
	// that it took as a whole.
	reported map[ads.Key]string
	// claimed are those that it told when this stream began.
	claimed map[ads.Key]string
	out     []ads.Request
	// starting are the types whose first response it waits for before it opens a
	// listener: with nothing in it, if there is nothing.
	starting map[ads.Type]bool
	// took is called before a resource is applied, went before one goes.
	took, went func(ads.Key, *ads.Resource)
}

func newEnvoy() *envoy {
	return &envoy{
		rewarms: map[string]bool{}, asked: map[ads.Key]bool{}, silent: map[ads.Key]bool{}, has: map[ads.Key]*ads.Resource{}, want: map[ads.Key]bool{}, reported: map[ads.Key]string{},
		bad: func(*ads.Resource) bool { return false }, stuck: func(*ads.Resource) bool { return false }, partial: func(int) bool { return false },
	}
}

// connect begins a stream. Routes and endpoints are asked for by name.
func (e *envoy) connect(withVersions bool) {
	e.out, e.withheld, e.rewarms = nil, nil, map[string]bool{}
	clear(e.asked)
	e.claimed = map[ads.Key]string{}
	if !withVersions {
		e.starting = map[ads.Type]bool{ads.Cluster: true, ads.Listener: true}
		e.has, e.want, e.reported = map[ads.Key]*ads.Resource{}, map[ads.Key]bool{}, map[ads.Key]string{}
	}
	for k, r := range e.has {
		e.silent[k] = e.reported[k] != r.Version.String()
	}
	for _, t := range []ads.Type{ads.Cluster, ads.Endpoints, ads.Listener, ads.Route} {
		r := ads.Request{Type: t, Initial: map[string]string{}}
		for k, version := range e.reported {
			if k.Type == t && e.has[k] != nil {
				r.Initial[k.Name], e.claimed[k] = version, version
			}
		}
		for k := range e.want {
			if k.Type == t {
				r.Subscribe = append(r.Subscribe, k.Name)
			}
		}
		slices.Sort(r.Subscribe)
		if t == ads.Cluster || t == ads.Listener || len(r.Subscribe) > 0 {
			e.out = append(e.out, r)
		}
	}
}

// take is what it does with a response.
func (e *envoy) take(s ads.Send) {
	answer := ads.Request{Type: s.Type, Nonce: s.Nonce}
	delete(e.starting, s.Type)
	for _, r := range s.Resources {
		if e.bad(r) {
			answer.Refused, answer.Message = true, "bad: "+r.Name
		}
	}
	fragile := s.Type == ads.Endpoints || s.Type == ads.Route
	for i, r := range s.Resources {
		if e.bad(r) || answer.Refused && fragile && !e.partial(i) {
			continue
		}
		e.apply(r, !answer.Refused)
	}
	for _, name := range s.Removed {
		e.drop(ads.Key{Type: s.Type, Name: name})
	}
	if s.Type == ads.Cluster && !e.warming() { // the last one that was stuck is gone
		e.out, e.withheld = append(e.out, e.withheld...), nil
	}
	if s.Type == ads.Cluster && e.warming() {
		e.withheld = append(e.withheld, answer)
		return
	}
	e.out = append(e.out, answer)
	if s.Type == ads.Endpoints && !e.warming() {
		e.out = append(e.out, e.withheld...)
		e.withheld = nil
	}
}

func (e *envoy) apply(r *ads.Resource, whole bool) {
	k := ads.Key{Type: r.Type, Name: r.Name}
	if (r.Type == ads.Endpoints || r.Type == ads.Route) && !e.want[k] {
		return // nobody waits for it any more
	}
	if e.took != nil {
		e.took(k, r)
	}
	changed := e.has[k] != nil && e.has[k].Version != r.Version
	e.has[k] = r
	delete(e.asked, k)
	delete(e.silent, k)
	if whole {
		e.reported[k] = r.Version.String()
	}
	switch r.Type {
	case ads.Cluster:
		if !r.Inline && !strings.HasSuffix(r.Name, "|mute") {
			e.rewarms[r.Name] = changed && e.want[ads.Key{Type: ads.Endpoints, Name: r.Name}]
			e.subscribe(ads.Key{Type: ads.Endpoints, Name: r.Name})
		}
	case ads.Listener:
		e.subscribe(ads.Key{Type: ads.Route, Name: r.Name})
	case ads.Endpoints:
		delete(e.rewarms, r.Name)
	case ads.Route:
	}
}

// askAnew asks for something that it has.
func (e *envoy) askAnew(k ads.Key) {
	e.asked[k] = true
	e.out = append(e.out, ads.Request{Type: k.Type, Subscribe: []string{k.Name}})
}

func (e *envoy) subscribe(k ads.Key) {
	if e.want[k] {
		return
	}
	e.want[k] = true
	e.out = append(e.out, ads.Request{Type: k.Type, Subscribe: []string{k.Name}})
}

func (e *envoy) drop(k ads.Key) {
	if e.has[k] == nil {
		return
	}
	if e.went != nil {
		e.went(k, e.has[k])
	}
	delete(e.has, k)
	delete(e.reported, k)
	switch k.Type {
	case ads.Cluster:
		delete(e.rewarms, k.Name)
		e.unsubscribe(ads.Key{Type: ads.Endpoints, Name: k.Name})
	case ads.Listener:
		e.unsubscribe(ads.Key{Type: ads.Route, Name: k.Name})
	case ads.Endpoints, ads.Route:
	}
}

func (e *envoy) unsubscribe(k ads.Key) {
	if !e.want[k] {
		return
	}
	delete(e.want, k)
	delete(e.asked, k)
	delete(e.has, k)
	delete(e.reported, k)
	e.out = append(e.out, ads.Request{Type: k.Type, Unsubscribe: []string{k.Name}})
}

// warming says that a cluster waits for its endpoints.
func (e *envoy) warming() bool {
	for k, r := range e.has {
		if k.Type != ads.Cluster {
			continue
		}
		if e.stuck(r) || e.rewarms[k.Name] || !r.Inline && e.has[ads.Key{Type: ads.Endpoints, Name: k.Name}] == nil {
			return true
		}
	}
	return false
}

// names of what it has of a type.
func (e *envoy) names(t ads.Type) []string {
	var names []string
	for k := range maps.Keys(e.has) {
		if k.Type == t {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	return names
}
