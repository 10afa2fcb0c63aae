// SPDX-License-Identifier: Apache-2.0

package traefik

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Port is a port that Traefik serves, with what is behind it.
type Port struct {
	Served
	// Split is the one to carry out; nil if requests are not divided.
	Split *traffic.Split
	// Arms are the endpoints of each variation. The first share of the split answers for a variation without endpoints.
	Arms map[string][]netip.AddrPort
	// All are the endpoints of the Service, for requests that are not divided.
	All []netip.AddrPort
}

// document is the dynamic configuration; its fields are those of Traefik v3.
type document struct {
	HTTP *sections `json:"http,omitempty"`
}

type sections struct {
	Routers  map[string]router  `json:"routers,omitempty"`
	Services map[string]service `json:"services"`
}

type router struct {
	EntryPoints []string `json:"entryPoints,omitempty"`
	Rule        string   `json:"rule"`
	Priority    int      `json:"priority"`
	Service     string   `json:"service"`
}

type service struct {
	Weighted     *weighted     `json:"weighted,omitempty"`
	LoadBalancer *loadBalancer `json:"loadBalancer,omitempty"`
}

type weighted struct {
	Services []child `json:"services"`
}

// child has its weight written where it is 0: without one Traefik takes 1.
type child struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
}

type loadBalancer struct {
	Servers []server `json:"servers"`
}

type server struct {
	URL string `json:"url"`
}

// Render returns the dynamic configuration of all ports. The same ports give the same bytes, so that Traefik reloads
// only for a change.
func Render(ports []Port) ([]byte, error) {
	if len(ports) == 0 {
		return []byte("{}\n"), nil
	}
	s := sections{map[string]router{}, map[string]service{}}
	for _, p := range ports {
		s.add(p)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // people read the rules
	encoder.SetIndent("", " ")
	if err := encoder.Encode(document{&s}); err != nil {
		return nil, fmt.Errorf("writing the dynamic configuration: %w", err)
	}
	return out.Bytes(), nil
}

func (s *sections) add(p Port) {
	name := p.Name()
	if p.Route.Rule != "" {
		s.Routers[name] = p.router(p.Route.Rule, 0, name)
	}
	if p.Split == nil {
		s.Services[name] = service{Weighted: &weighted{[]child{{name + undividedPart, 1}}}}
		s.Services[name+undividedPart] = p.servers(p.All)
		return
	}
	marker := p.marker(p.Split.Sequence)
	s.Services[marker] = p.servers(nil)
	children := []child{{marker, 0}}
	for _, share := range p.Split.Shares {
		arm := s.addArm(p, share.Variation)
		children = append(children, child{arm, int(share.Weight)})
		s.addHeaders(p, share.Variation, arm)
	}
	s.Services[name] = service{Weighted: &weighted{children}}
}

// addArm adds the service of a variation, and returns its name.
func (s *sections) addArm(p Port, variation string) string {
	name, endpoints := p.arm(variation), p.Arms[variation]
	if len(endpoints) == 0 && variation != p.Split.Shares[0].Variation {
		name, endpoints = name+failoverPart, p.Arms[p.Split.Shares[0].Variation]
	}
	s.Services[name] = p.servers(endpoints)
	return name
}

// addHeaders adds the routers of headers that send requests to a variation.
func (s *sections) addHeaders(p Port, variation, arm string) {
	if p.Route.Rule == "" {
		return
	}
	var values []string
	for value, to := range p.Split.Match.Values {
		if to == variation {
			values = append(values, matchHeader(p.Split.Match.Header, value))
		}
	}
	slices.Sort(values)
	if len(values) > 0 {
		s.Routers[p.arm(variation)] = p.router(fmt.Sprintf("(%s) && (%s)", p.Route.Rule, strings.Join(values, " || ")), 1, arm)
	}
	if header := p.Split.Override; header != "" {
		forced := p.arm(variation) + forcedPart
		s.Services[forced] = p.servers(p.Arms[variation])
		s.Routers[forced] = p.router(fmt.Sprintf("(%s) && %s", p.Route.Rule, matchHeader(header, variation)), 2, forced)
	}
}

// matchHeader is a matcher of a whole value. Strings of a rule are those of Go.
func matchHeader(header, value string) string {
	return fmt.Sprintf("Header(%s, %s)", strconv.Quote(header), strconv.Quote(value))
}

func (p Port) router(rule string, above int, to string) router {
	priority := p.Route.Priority
	if priority == 0 {
		priority = len(p.Route.Rule)
	}
	return router{p.Route.EntryPoints, rule, priority + above, to}
}

// servers are in order, because sources of endpoints have none.
func (p Port) servers(endpoints []netip.AddrPort) service {
	scheme := "http"
	if p.HTTP2 {
		scheme = "h2c"
	}
	endpoints = slices.Clone(endpoints)
	slices.SortFunc(endpoints, netip.AddrPort.Compare)
	all := []server{}
	for _, e := range slices.Compact(endpoints) {
		all = append(all, server{scheme + "://" + e.String()})
	}
	return service{LoadBalancer: &loadBalancer{all}}
}
