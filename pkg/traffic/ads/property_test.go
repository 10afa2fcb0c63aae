// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

var names = []string{"web", "cart", "pay"}

func TestAProxyHasWhatThereIsAndNeverARouteToNowhere(t *testing.T) {
	for part := range 60 { // a hundred runs each
		t.Run(fmt.Sprint(part), func(t *testing.T) { rapid.Check(t, play) })
	}
}

func play(t *rapid.T) {
	m := newModel(t)
	steps := map[string]func(*rapid.T){
		"a service comes or goes": func(t *rapid.T) {
			name := rapid.SampledFrom(names).Draw(t, "name")
			if m.services[name] != nil {
				delete(m.services, name)
			} else {
				m.services[name] = &service{arms: []string{name + "|a"}, route: m.decided()}
			}
			m.publish()
		},
		"an arm comes or goes": func(t *rapid.T) {
			s := m.services[rapid.SampledFrom(names).Draw(t, "name")]
			if s == nil {
				t.Skip("there is none")
			}
			arm := rapid.SampledFrom([]string{"b", "i", "stuck", "mute"}).Draw(t, "arm")
			m.stuck = m.stuck || cannotBeBuilt("|"+arm)
			arm = s.arms[0][:len(s.arms[0])-1] + arm
			if i := slices.Index(s.arms, arm); i >= 0 {
				s.arms = slices.Delete(s.arms, i, i+1)
			} else {
				s.arms = append(s.arms, arm)
			}
			s.route = m.decided()
			m.publish()
		},
		"something of a service changes": func(t *rapid.T) {
			s := m.services[rapid.SampledFrom(names).Draw(t, "name")]
			if s == nil {
				t.Skip("there is none")
			}
			[]func(){func() { s.route = m.decided() }, func() { s.ends++ }, func() { s.shape++ }}[rapid.IntRange(0, 2).Draw(t, "what")]()
			m.publish()
		},
		"the next version of something is refused": func(t *rapid.T) {
			name := rapid.SampledFrom(names).Draw(t, "name")
			s := m.services[name]
			if s == nil {
				t.Skip("there is none")
			}
			if rapid.Bool().Draw(t, "route") {
				s.route = m.decided()
			} else {
				s.ends++
			}
			for _, r := range []*ads.Resource{m.compile().Get(ads.Route, name), m.compile().Get(ads.Endpoints, s.arms[0])} {
				if m.view.Get(r.Type, r.Name) != r && !m.proofs.Proven(r) {
					m.bad[id(r)] = true
				}
			}
			m.publish()
		},
		"endpoints are as they were before": func(t *rapid.T) {
			if s := m.services[rapid.SampledFrom(names).Draw(t, "name")]; s != nil && s.ends > 0 {
				s.ends--
				m.publish()
			}
		},
		"another proxy acknowledges everything": func(*rapid.T) {
			for t := range ads.Type(4) {
				for _, name := range m.view.Names(t) {
					if r := m.view.Get(t, name); !m.envoy.stuck(r) {
						m.proofs.Prove(r)
					}
				}
			}
		},
		"the proxy asks anew": func(*rapid.T) {
			for _, name := range m.envoy.names(ads.Endpoints) {
				m.envoy.askAnew(ads.Key{Type: ads.Endpoints, Name: name})
			}
		},
		"a replica that is behind takes the stream over": func(*rapid.T) {
			m.reconnectTo(m.former, true)
			m.flow(20)
			m.do(m.stream.Publish(m.now, m.view, ads.Diff(m.former, m.view)))
		},
		"an answer is overtaken":  func(*rapid.T) { m.overtake() },
		"an answer is kept back":  func(*rapid.T) { m.keep() },
		"what was kept back goes": func(*rapid.T) { m.hand() },
		"a request arrives":       func(*rapid.T) { m.up() },
		"a response arrives":      func(*rapid.T) { m.downward() },
		"messages flow":           func(t *rapid.T) { m.flow(rapid.IntRange(2, 40).Draw(t, "messages")) },
		"time passes": func(t *rapid.T) {
			m.pass(time.Duration(rapid.IntRange(1, 7).Draw(t, "seconds")) * time.Second)
		},
		"the stream breaks":     func(*rapid.T) { m.reconnect(true) },
		"the proxy starts anew": func(*rapid.T) { m.reconnect(false) },
		"":                      func(*rapid.T) {},
	}
	t.Repeat(steps)
	m.rest()
	m.settled()
}
