// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/connect"
	"github.com/plumbline-dev/plumbline/internal/connector/traefik/provider"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/discoveryserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/traefik"
)

const (
	traefikToken = "a-token"
	// brisk is how often a Traefik polls where the time is not what is tested.
	brisk = 20 * time.Millisecond
)

// edge is a Traefik of a shop, and its TrafficRouter.
type edge struct {
	*traefik.Program
	s      *shop
	router *v1alpha1.TrafficRouter
	polled *polledPort
	// registry is that of the replica that leads.
	registry *connect.Registry
}

// polledPort stands in front of the port of the replica that leads, and notes the configurations that it sees.
type polledPort struct {
	service string

	mu      sync.Mutex
	port    *provider.Port
	changes int
	// seen are the splits of the Service in their order, such as "2: canary 5000", or "undivided".
	seen []string
}

// ServeHTTP implements http.Handler.
func (p *polledPort) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.port == nil {
		http.Error(w, "no replica leads", http.StatusServiceUnavailable)
		return
	}
	recorder := httptest.NewRecorder()
	p.port.Routes().ServeHTTP(recorder, r)
	body := recorder.Body.String()
	if recorder.Code == http.StatusOK {
		if now := splitIn(body, p.service); len(p.seen) == 0 || p.seen[len(p.seen)-1] != now {
			p.seen = append(p.seen, now)
		}
	}
	if p.changes > 0 { // another Service of the cluster has changed
		body = strings.Replace(body, `"services": {`, fmt.Sprintf(`"services": {"other": {"loadBalancer": {"servers": [{"url": "http://127.0.0.1:%d"}]}},`, p.changes), 1)
	}
	w.WriteHeader(recorder.Code)
	_, _ = io.WriteString(w, body) // the Traefik polls again
}

func (p *polledPort) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *polledPort) splits() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

// splitIn reads the split of a Service from a configuration.
func splitIn(body, service string) string {
	var document struct {
		HTTP struct {
			Services map[string]struct {
				Weighted struct {
					Services []struct {
						Name   string
						Weight int
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		return err.Error()
	}
	sequence, canary := "", ""
	for _, child := range document.HTTP.Services[service].Weighted.Services {
		part := strings.TrimPrefix(child.Name, service+"_")
		switch {
		case part == "_undivided":
			return "undivided"
		case strings.HasPrefix(part, "_"):
			sequence = part[1:]
		case part == "canary":
			canary = strconv.Itoa(child.Weight)
		}
	}
	return sequence + ": canary " + canary
}

// traefikEdge starts a Traefik that serves the Service web, and makes its TrafficRouter. change alters the TrafficRouter.
func (s *shop) traefikEdge(change func(*v1alpha1.TrafficRouter)) *edge {
	s.t.Helper()
	e := &edge{s: s, polled: &polledPort{service: "plb_" + s.namespace + "_web_80"}}
	front := httptest.NewServer(e.polled)
	s.t.Cleanup(front.Close)
	e.Program = traefik.Start(s.t, brisk, traefik.Poll(front.URL+provider.Prefix+s.namespace, traefikToken, brisk)...)
	e.router = s.trafficRouter("", func(r *v1alpha1.TrafficRouter) {
		r.Spec.Type, r.Spec.Webhook = v1alpha1.TrafficRouterTraefik, nil
		r.Spec.Traefik = &v1alpha1.TraefikRouter{
			TokenSecretRef: v1alpha1.RouterSecretKey{Name: "edge", Key: "token"},
			Programs:       []v1alpha1.TraefikProgram{{Name: "edge/traefik-0", URL: "http://" + e.API}},
			Ports: []v1alpha1.TraefikPort{{
				Namespace: s.namespace, ServiceName: "web", Port: 80, Route: &v1alpha1.TraefikRoute{Rule: "Host(`web.shop`)", EntryPoints: []string{"web"}},
			}},
		}
		if change != nil {
			change(r)
		}
	})
	s.create(s.slice("web", backend.Start(s.t, "plain")))
	return e
}

// startLeader starts a replica that leads, and that the Traefik polls from now on.
func (e *edge) startLeader() *replica {
	e.s.t.Helper()
	ctx, end := context.WithCancel(e.s.t.Context())
	registry := &connect.Registry{
		Context: ctx, Client: admin, Live: admin, Now: time.Now,
		Resolve:       func(context.Context, notify.SecretRef) (string, error) { return traefikToken, nil },
		TraefikClient: deliver.NewReader(deliver.Egress{PlainHTTP: true, Allowed: loopback}),
	}
	e.registry, e.s.connectors = registry, registry
	e.s.prepare = func(server *discoveryserver.Server) { registry.Endpoints = server.Window }
	port := &provider.Port{Others: func(context.Context) ([]string, error) { return nil, nil }}
	go port.ServeAsLeader(ctx, provider.Leading{Find: registry.FindProvider, Holds: func(context.Context) error { return nil }})
	e.polled.set(func() { e.polled.port = port })
	r := e.s.start(asksProxies)
	stop := r.stop
	r.stop = func() {
		e.polled.set(func() { e.polled.port = nil })
		end()
		stop()
	}
	return r
}

// askTraefik returns the answer of a request through the Traefik.
func (e *edge) askTraefik(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.Web+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Host = "web.shop"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered %s", response.Status)
	}
	return string(body), err
}

// wantShare demands the answers of the canary among n requests. A round robin is exact to one request.
func (e *edge) wantShare(n, canaries int) {
	e.s.t.Helper()
	got := map[string]int{}
	for range n {
		answer, err := e.askTraefik(e.s.t.Context())
		e.s.must(err)
		got[answer]++
	}
	if d := got["canary"] - canaries; d < -1 || d > 1 || got["canary"]+got["stable"] != n {
		e.s.t.Errorf("of %d requests go %v, want %d to the canary", n, got, canaries)
	}
}

// changeAnother changes another Service in the configuration, and waits until the Traefik has the change.
func (e *edge) changeAnother(n int) {
	e.s.t.Helper()
	e.polled.set(func() { e.polled.changes = n })
	want := fmt.Sprintf("127.0.0.1:%d", n)
	poll.Confirmation.Until(e.s.t, patience, "the Traefik has the change", func() error {
		request, err := http.NewRequestWithContext(e.s.t.Context(), http.MethodGet, "http://"+e.API+"/api/http/services/other@http", http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err == nil && !strings.Contains(string(body), want) {
			err = fmt.Errorf("it has %s", body)
		}
		return err
	})
}
