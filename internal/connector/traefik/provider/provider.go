// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
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

// Endpoints are the sources of endpoints. An implementation may be asked by several goroutines at once.
type Endpoints interface {
	// Arms returns the endpoints of each variation of a split.
	Arms(port traefik.Served, split traffic.Split) map[string][]netip.AddrPort
	// All returns the endpoints of the Service.
	All(port traefik.Served) []netip.AddrPort
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
	// Every is the time between two looks at the metrics.
	Every time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Provider has the splits of all releases. Its methods may be called by several goroutines at once.
type Provider struct {
	config Config
	token  [sha256.Size]byte

	mu       sync.Mutex
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
		config: config, token: sha256.Sum256([]byte(config.Token)),
		releases: map[types.NamespacedName]*release{}, looks: map[string]look{},
	}
}

// Open has the provider answer Traefiks: all splits of before are applied.
func (p *Provider) Open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = true
}

// Run looks at the metrics of all Traefiks until the context ends.
func (p *Provider) Run(ctx context.Context) {
	tick := time.NewTicker(p.config.Every)
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
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum := sha256.Sum256([]byte(token))
	if !bearer || p.config.Token == "" || subtle.ConstantTimeCompare(sum[:], p.token[:]) != 1 {
		http.Error(w, "the bearer token is not the one of this provider", http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodGet {
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open {
		http.Error(w, "the splits are not known yet; keep the configuration of before", http.StatusServiceUnavailable)
		return
	}
	document, err := p.render()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(document); err == nil {
		p.fetched = sha256.Sum256(document)
	}
}

// render returns the configuration of now. The caller has the lock.
func (p *Provider) render() ([]byte, error) {
	ports := make([]traefik.Port, 0, len(p.config.Served))
	for _, served := range p.config.Served {
		port := traefik.Port{Served: served, Split: p.splitOf(served.Service)}
		if port.Split == nil {
			port.All = p.config.Endpoints.All(served)
		} else {
			port.Arms = p.config.Endpoints.Arms(served, *port.Split)
		}
		ports = append(ports, port)
	}
	return traefik.Render(ports)
}

// splitOf returns the split of a Service: of several releases that of the oldest, and of two of one age the first by
// name.
func (p *Provider) splitOf(service types.NamespacedName) *traffic.Split {
	var first *traffic.Split
	names := slices.SortedFunc(maps.Keys(p.releases), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		told := p.releases[name].told
		if told == nil || told.Split.Namespace != service.Namespace || told.Split.Service != service.Name {
			continue
		}
		if first == nil || told.Split.Created.Before(first.Created) {
			first = &told.Split
		}
	}
	return first
}
