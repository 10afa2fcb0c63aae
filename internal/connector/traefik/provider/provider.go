// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Endpoints are the sources of endpoints. An implementation may be asked by several goroutines at once. An error keeps
// the configuration of before in force.
type Endpoints interface {
	// FindArms returns the endpoints of each variation of a split behind a port.
	FindArms(ctx context.Context, split traffic.Split, port uint16) (map[string][]netip.AddrPort, error)
	// FindAddresses returns the endpoints of a Service behind a port.
	FindAddresses(ctx context.Context, service types.NamespacedName, port uint16) ([]netip.AddrPort, error)
}

// Config of a provider.
type Config struct {
	// Served are the ports that the Traefiks serve.
	Served    []traefik.Served
	Endpoints Endpoints
	// Programs are all Traefiks that poll the provider.
	Programs []Program
	// Token is what a Traefik sends as `Authorization: Bearer TOKEN`; it must not be empty.
	Token string
	// Settle is how long after Apply a split counts at a Traefik without API.
	Settle time.Duration
	// Client asks the Traefiks. It must follow no redirect, so that a password goes to the named URL alone.
	Client *http.Client
	// Every is the time between two looks at the metrics. [Provider.ReplaceConfig] does not change it.
	Every time.Duration
	// Now is the clock. [Provider.ReplaceConfig] does not change it.
	Now func() time.Time
}

// Provider has the splits of all releases. Its methods may be called by several goroutines at once.
type Provider struct {
	every time.Duration
	now   func() time.Time

	mu       sync.Mutex
	config   Config
	open     bool
	fetched  [sha256.Size]byte
	releases map[types.NamespacedName]*release
	looks    map[string]look
}

// release is what the provider knows of one release.
type release struct {
	told *traefik.Told
	counts
}

// New returns a provider that answers no Traefik before Open.
func New(config Config) *Provider {
	return &Provider{
		every: config.Every, now: config.Now, config: config,
		releases: map[types.NamespacedName]*release{}, looks: map[string]look{},
	}
}

// ReplaceConfig replaces the configuration. The splits and the counts of releases stay.
func (p *Provider) ReplaceConfig(config Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.config = config
	maps.DeleteFunc(p.looks, func(name string, _ look) bool {
		return !slices.ContainsFunc(config.Programs, func(program Program) bool { return program.Name == name })
	})
}

// configured returns the configuration of now.
func (p *Provider) configured() Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.config
}

// RestoreSplit has the provider carry out a split that was in force before the process began to lead. A later sequence of
// the release stays.
func (p *Provider) RestoreSplit(name types.NamespacedName, split traffic.Split) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.releaseOf(name)
	if own.told == nil || own.told.Split.Sequence < split.Sequence {
		own.told = &traefik.Told{Split: cloneSplit(split), At: p.now(), Settle: p.config.Settle}
	}
}

// ForgetRelease drops the split and the counts of a release that is gone.
func (p *Provider) ForgetRelease(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.releases, name)
}

// releaseOf returns the memory of a release. The caller has the lock.
func (p *Provider) releaseOf(name types.NamespacedName) *release {
	if p.releases[name] == nil {
		p.releases[name] = &release{counts: counts{epoch: p.now().UnixNano()}}
	}
	return p.releases[name]
}

// Open has the provider answer Traefiks: all splits of before are applied.
func (p *Provider) Open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = true
}

// Run looks at the metrics of all Traefiks until the context ends.
func (p *Provider) Run(ctx context.Context) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.Count(ctx)
		}
	}
}

// ServeHTTP answers a Traefik that polls.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !hasToken(r, p.configured().Token) {
		http.Error(w, "the bearer token is not the one of this provider", http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodGet {
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	if !p.IsOpen() {
		http.Error(w, "the splits are not known yet; keep the configuration of before", http.StatusServiceUnavailable)
		return
	}
	document, err := p.render(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(document); err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fetched = sha256.Sum256(document)
	}
}

// hasToken compares the bearer token of a request in a time that does not depend on the token.
func hasToken(r *http.Request, token string) bool {
	sent, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	got, want := sha256.Sum256([]byte(sent)), sha256.Sum256([]byte(token))
	return bearer && token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// IsOpen tells whether the provider answers Traefiks.
func (p *Provider) IsOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// render returns the configuration of now. Endpoints that cannot be read are an error, and no empty list.
func (p *Provider) render(ctx context.Context) ([]byte, error) {
	ports, endpoints := p.ports()
	for i := range ports {
		if err := fillPort(ctx, &ports[i], endpoints); err != nil {
			return nil, fmt.Errorf("finding the endpoints of port %d of Service %s: %w", ports[i].Port, ports[i].Service, err)
		}
	}
	return traefik.Render(ports)
}

// fillPort finds the endpoints behind a port.
func fillPort(ctx context.Context, port *traefik.Port, endpoints Endpoints) (err error) {
	if port.Split == nil {
		port.All, err = endpoints.FindAddresses(ctx, port.Service, port.Port)
		return err //nolint:wrapcheck // the caller names the port
	}
	port.Arms, err = endpoints.FindArms(ctx, *port.Split, port.Port)
	return err //nolint:wrapcheck // as above
}

// ports returns the ports of now with their splits, and the source of their endpoints.
func (p *Provider) ports() ([]traefik.Port, Endpoints) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ports := make([]traefik.Port, 0, len(p.config.Served))
	for _, served := range p.config.Served {
		ports = append(ports, traefik.Port{Served: served, Split: p.splitOf(served.Service)})
	}
	return ports, p.config.Endpoints
}

// splitOf returns a copy of the split of a Service: of several releases that of the oldest, and of two of one age the
// first by name. The caller has the lock.
func (p *Provider) splitOf(service types.NamespacedName) *traffic.Split {
	var first *traffic.Split
	names := slices.SortedFunc(maps.Keys(p.releases), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		told := p.releases[name].told
		if told == nil || told.Split.Namespace != service.Namespace || told.Split.Service != service.Name {
			continue
		}
		if first == nil || told.Split.Created.Before(first.Created) {
			copied := cloneSplit(told.Split)
			first = &copied
		}
	}
	return first
}

func cloneSplit(s traffic.Split) traffic.Split {
	s.Shares, s.Variations, s.Match.Values = slices.Clone(s.Shares), slices.Clone(s.Variations), maps.Clone(s.Match.Values)
	return s
}
