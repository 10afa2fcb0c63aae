// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Prefix is the path of a configuration at a [Port], up to the name of the TrafficRouter.
const Prefix = "/traefik/"

// relayedHeader marks a request that another replica relays, so that no replica relays it once more.
const relayedHeader = "X-Plumbline-Relayed"

// relayPatience bounds the question to the other replicas. A Traefik waits for five seconds by default.
const relayPatience = 3 * time.Second

// Port serves Traefiks at each replica. The leader answers by itself. A follower asks the leader for each answer, because
// the caches of the follower may be behind.
type Port struct {
	// Others returns the addresses of the other replicas, as URLs without a path.
	Others func(ctx context.Context) ([]string, error)
	// Client asks the other replicas, and verifies their certificate.
	Client *http.Client

	mu sync.Mutex
	// leading is nil while the replica follows.
	leading *Leading
}

// Leading is a replica that leads.
type Leading struct {
	// Find returns the provider of a TrafficRouter by its name; nil for a name that is not known.
	Find func(name string) *Provider
	// Holds returns the reason why this replica may have lost the lease without having noticed yet. The port calls Holds
	// for each answer, because a process that was stopped for a while would take Traefiks back to an older configuration.
	Holds func(ctx context.Context) error
}

// ServeAsLeader has the replica answer by itself until ctx ends.
func (p *Port) ServeAsLeader(ctx context.Context, leading Leading) {
	p.setLeading(&leading)
	defer p.setLeading(nil)
	<-ctx.Done()
}

func (p *Port) setLeading(leading *Leading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leading = leading
}

// Routes returns the handler of the port.
func (p *Port) Routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix+"{name}", p.serveTraefik)
	return mux
}

func (p *Port) serveTraefik(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	leading := p.leading
	p.mu.Unlock()
	switch {
	case leading != nil:
		leading.answerTraefik(w, r)
	case r.Header.Get(relayedHeader) != "":
		http.Error(w, errFollows.Error(), http.StatusServiceUnavailable)
	default:
		p.relayRequest(w, r)
	}
}

// answerTraefik answers as the replica that leads.
func (l *Leading) answerTraefik(w http.ResponseWriter, r *http.Request) {
	if err := l.Holds(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	of := l.Find(r.PathValue("name"))
	if of == nil {
		http.Error(w, "no TrafficRouter of type Traefik has this name", http.StatusNotFound)
		return
	}
	of.ServeHTTP(w, r)
}

// relayRequest answers with the answer of the replica that leads.
func (p *Port) relayRequest(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), relayPatience)
	defer cancel()
	got, err := p.askOthers(ctx, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", got.kind)
	w.WriteHeader(got.status)
	_, _ = w.Write(got.body) // a Traefik that is gone polls again
}

// reply is the answer of another replica.
type reply struct {
	status int
	kind   string
	body   []byte
	err    error
}

// askOthers asks all other replicas at once, and returns the answer of the one that leads.
func (p *Port) askOthers(ctx context.Context, r *http.Request) (reply, error) {
	others, err := p.Others(ctx)
	if err != nil {
		return reply{}, fmt.Errorf("asking the replica that leads: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx) // the first answer is enough
	defer cancel()
	replies := make(chan reply, len(others))
	for _, url := range others {
		go func() { replies <- p.askReplica(ctx, r, url) }()
	}
	last := errFollows
	for range others {
		got := <-replies
		switch {
		case got.err != nil:
			last = got.err
		case got.status != http.StatusServiceUnavailable:
			return got, nil
		}
	}
	return reply{}, fmt.Errorf("no replica that leads has answered; keep the configuration of before: %w", last)
}

func (p *Port) askReplica(ctx context.Context, r *http.Request, url string) reply {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+r.URL.Path, http.NoBody)
	if err != nil {
		return reply{err: fmt.Errorf("asking %s: %w", url, err)}
	}
	request.Header.Set("Authorization", r.Header.Get("Authorization"))
	request.Header.Set(relayedHeader, "true")
	response, err := p.Client.Do(request)
	if err != nil {
		return reply{err: fmt.Errorf("asking %s: %w", url, err)}
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("more than %d bytes", maxAnswer)
	}
	if err != nil {
		return reply{err: fmt.Errorf("reading the answer of %s: %w", url, err)}
	}
	return reply{response.StatusCode, response.Header.Get("Content-Type"), body, nil}
}
