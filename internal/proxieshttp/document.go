// SPDX-License-Identifier: Apache-2.0

package proxieshttp

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// List is a page of proxies.
type List struct {
	// Replica of the discovery server that answers: each knows its own proxies alone.
	Replica string  `json:"replica"`
	Proxies []Proxy `json:"proxies"`
	// Continue is what to ask for the next page with; empty on the last one. A page may
	// be empty and not the last.
	Continue string `json:"continue,omitempty"`
}

// Proxy that is connected.
type Proxy struct {
	Namespace      string `json:"namespace"`
	Pod            string `json:"pod"`
	PodUID         string `json:"podUID"`
	ServiceAccount string `json:"serviceAccount"`
	// Node, Kind of the program, such as envoy or haproxy, and Envoy, the version of the program, are what
	// the proxy says about itself.
	Node  string `json:"node,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Envoy string `json:"envoy,omitempty"`
	// ConnectedSince is when its stream began.
	ConnectedSince time.Time `json:"connectedSince,omitzero"`
	// TokenExpires is the end of the token that its stream began with. The stream
	// outlives it; the next one needs another.
	TokenExpires time.Time `json:"tokenExpires,omitzero"`
	// Blocked says that it does not read its stream, Waiting that it has asked for
	// nothing yet or waits for its turn to start. Its stages are not known then.
	Blocked bool `json:"blocked,omitempty"`
	Waiting bool `json:"waiting,omitempty"`
	// Stages are how many of its resources are in each one.
	Stages map[ads.Stage]int `json:"stages"`
	// Unserved is what the annotations of its pod or namespace ask for and it cannot have,
	// and why.
	Unserved []string `json:"unserved,omitempty"`
	// Resources are there when one pod is asked for.
	Resources []Resource `json:"resources,omitempty"`
}

// Resource at a proxy.
type Resource struct {
	Type  string    `json:"type"`
	Name  string    `json:"name"`
	Stage ads.Stage `json:"stage"`
	// Has is the version that the proxy has acknowledged, Sent what is on the way, Wants
	// what it should have; empty is that there is none.
	Has   string `json:"has,omitempty"`
	Sent  string `json:"sent,omitempty"`
	Wants string `json:"wants,omitempty"`
	// Why says what is waited for, or what Envoy says against it.
	Why string `json:"why,omitempty"`
	// Since is when the stage began, if that is known.
	Since *time.Time `json:"since,omitempty"`
}

func proxyOf(c *serve.Connected) Proxy {
	p := Proxy{
		Namespace: c.Namespace, Pod: c.Pod, PodUID: c.PodUID, ServiceAccount: c.ServiceAccount, Node: c.Node, Kind: c.Kind,
		ConnectedSince: c.Since.UTC(), TokenExpires: c.Expires.UTC(), Blocked: c.Blocked, Waiting: c.Waiting, Stages: c.Counts,
		Unserved: c.Unserved,
	}
	if c.Version != [3]uint64{} {
		p.Envoy = fmt.Sprintf("%d.%d.%d", c.Version[0], c.Version[1], c.Version[2])
	}
	if p.Stages == nil {
		p.Stages = map[ads.Stage]int{}
	}
	for i := range c.Resources {
		p.Resources = append(p.Resources, resourceOf(&c.Resources[i]))
	}
	return p
}

func resourceOf(s *ads.State) Resource {
	r := Resource{
		Type: s.Type.String(), Name: s.Name, Stage: s.Stage, Why: s.Why,
		Has: version(s.Has), Sent: version(s.Sent), Wants: version(s.Wants),
	}
	if !s.Since.IsZero() {
		since := s.Since.UTC()
		r.Since = &since
	}
	return r
}

func version(v ads.Version) string {
	if v == (ads.Version{}) {
		return ""
	}
	return v.String()
}
