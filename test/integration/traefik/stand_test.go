// SPDX-License-Identifier: Apache-2.0

//go:build integration

package traefik

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	connector "github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/internal/connector/traefik/provider"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/traefik"
)

const (
	// patience bounds every wait.
	patience = 20 * time.Second
	token    = "a-token"
	plain    = "plain"
	// brisk is how often a Traefik polls where the time is not what is tested.
	brisk = 20 * time.Millisecond
)

var services = []types.NamespacedName{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "pay"}, {Namespace: "bank", Name: "web"}}

// stand is a Traefik whose provider is ours.
type stand struct {
	testing.TB
	*provider.Provider
	program  *traefik.Program
	backends map[string]netip.AddrPort

	mu      sync.Mutex
	applied map[types.NamespacedName]traffic.Split
	// asked are the requests that Traefik must have counted.
	asked  atomic.Uint64
	edited atomic.Pointer[[]byte]
	// churn is a number in the configuration, so that another number is another configuration.
	churn atomic.Int64
	hangs bool
}

var (
	_ routertest.Counter = (*stand)(nil)
	_ routertest.Faulty  = (*stand)(nil)
	_ routertest.Loader  = (*stand)(nil)
	_ routertest.Settler = (*stand)(nil)
)

// newStand starts one. change alters the programs that the provider asks; nil leaves them.
func newStand(t testing.TB, change func(*provider.Program, *traefik.Program), interval time.Duration, arguments ...string) *stand {
	t.Helper()
	st := &stand{TB: t, backends: map[string]netip.AddrPort{}, applied: map[types.NamespacedName]traffic.Split{}}
	for _, name := range []string{"stable", "canary", "next", plain} {
		st.backends[name] = st.backend(name)
	}
	var served []connector.Served
	for _, s := range services {
		served = append(served, connector.Served{Service: s, Port: 80, Route: connector.Route{
			Rule: fmt.Sprintf("Host(`%s`)", host(s)), EntryPoints: []string{"web"},
		}})
	}
	source := httptest.NewServer(http.HandlerFunc(st.serve))
	t.Cleanup(source.Close)
	st.program = traefik.Start(t, interval, append(traefik.Poll(source.URL, token, interval), arguments...)...)
	program := provider.Program{Name: "edge/traefik-0", URL: "http://" + st.program.API}
	if change != nil {
		change(&program, st.program)
	}
	st.mu.Lock()
	st.Provider = provider.New(provider.Config{
		Served: served, Endpoints: st, Programs: []provider.Program{program}, Token: token,
		Settle: time.Minute, Client: impatient, Every: 10 * time.Second, Now: time.Now,
	})
	st.mu.Unlock()
	st.Open()
	st.Settle()
	return st
}

func host(s types.NamespacedName) string { return s.Name + "." + s.Namespace }

// serve is the provider's handler, unless a person has put another configuration in its place.
func (st *stand) serve(w http.ResponseWriter, r *http.Request) {
	if edited := st.edited.Load(); edited != nil {
		_, _ = w.Write(*edited) // the Traefik polls again
		return
	}
	st.mu.Lock()
	p := st.Provider
	st.mu.Unlock()
	if p == nil {
		http.Error(w, "not yet", http.StatusServiceUnavailable)
		return
	}
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, r)
	body := rec.Body.String()
	if n := st.churn.Load(); n > 0 { // another Service of the cluster changes
		body = strings.Replace(body, `"services": {`, fmt.Sprintf(`"services": {"other": {"loadBalancer": {"servers": [{"url": "http://127.0.0.1:%d"}]}},`, n), 1)
	}
	w.WriteHeader(rec.Code)
	_, _ = io.WriteString(w, body) // as above
}

// backend answers with its name.
func (st *stand) backend(name string) netip.AddrPort {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the client is gone
		}
		if r.Header.Get("X-Slow") != "" {
			<-time.After(5 * time.Millisecond)
		}
		w.Header().Set("Variation", name)
		if r.Header.Get("X-Fails") != "" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	st.Cleanup(s.Close)
	return netip.MustParseAddrPort(s.Listener.Addr().String())
}

// FindArms implements provider.Endpoints by the label version of selectors.
func (st *stand) FindArms(_ context.Context, split traffic.Split, _ uint16) (map[string][]netip.AddrPort, error) {
	return st.arms(split), nil
}

func (st *stand) arms(split traffic.Split) map[string][]netip.AddrPort {
	arms := map[string][]netip.AddrPort{}
	for _, v := range split.Variations {
		arms[v.Name] = []netip.AddrPort{st.backends[v.Selector.MatchLabels["version"]]}
	}
	return arms
}

// FindAddresses implements provider.Endpoints.
func (st *stand) FindAddresses(context.Context, types.NamespacedName, uint16) ([]netip.AddrPort, error) {
	return []netip.AddrPort{st.backends[plain]}, nil
}

// recorded remembers the split that was applied last, to tell which variation a backend is.
type recorded struct {
	provider.Router
	st   *stand
	name types.NamespacedName
}

func (r recorded) Apply(ctx context.Context, split traffic.Split) error {
	err := r.Router.Apply(ctx, split)
	if err == nil {
		r.st.mu.Lock()
		defer r.st.mu.Unlock()
		r.st.applied[r.name] = split
	}
	return err
}

func (r recorded) Remove(ctx context.Context) error {
	r.st.mu.Lock()
	defer r.st.mu.Unlock()
	delete(r.st.applied, r.name)
	return r.Router.Remove(ctx)
}

// Router implements routertest.Stand.
func (st *stand) Router(release types.NamespacedName) traffic.Router {
	return recorded{st.Provider.Router(release), st, release}
}

// Settle implements routertest.Settler: it ends an edit, and waits until requests go by the configuration of now.
func (st *stand) Settle() {
	st.Helper()
	st.edited.Store(nil)
	if st.hangs {
		return
	}
	poll.Confirmation.Until(st, patience, "the Traefik has the configuration", func() error {
		for _, service := range services {
			want := ""
			st.mu.Lock()
			for name, split := range st.applied {
				if split.Service == service.Name && split.Namespace == service.Namespace {
					want = name.String()
				}
			}
			st.mu.Unlock()
			if err := st.has(service, want); err != nil {
				return err
			}
		}
		return nil
	})
	st.Count(st.Context())
}

// has tells whether the Traefik has the split of a release for a Service; "" is none.
func (st *stand) has(service types.NamespacedName, release string) error {
	if release == "" {
		answer, err := st.request(service, http.MethodGet, nil)
		if err == nil && answer != plain {
			err = fmt.Errorf("requests of %s go to %q", service, answer)
		}
		return err
	}
	namespace, name, _ := strings.Cut(release, "/")
	seen, err := st.Provider.Router(types.NamespacedName{Namespace: namespace, Name: name}).Observe(st.Context())
	if err == nil && seen.Knowledge != traffic.Proven {
		err = fmt.Errorf("%s: %s, %v", release, seen.Knowledge, seen.OutOfSync)
	}
	return err
}

var impatient = &http.Client{Timeout: 5 * time.Second}

// request returns the name of the backend that answered.
func (st *stand) request(service types.NamespacedName, method string, headers map[string]string) (string, error) {
	r, err := http.NewRequestWithContext(st.Context(), method, "http://"+st.program.Web+"/", strings.NewReader("a body"))
	if err != nil {
		return "", err
	}
	r.Host = host(service)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := impatient.Do(r)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if closing := response.Body.Close(); err == nil {
		err = closing
	}
	if name := response.Header.Get("Variation"); name != "" || err != nil {
		return name, err
	}
	return "", fmt.Errorf("answered %s", response.Status)
}

// Ask implements routertest.Asker.
func (st *stand) Ask(r routertest.Request) (routertest.Answer, error) {
	headers := map[string]string{}
	maps.Copy(headers, r.Headers)
	if r.Fails {
		headers["X-Fails"] = "yes"
	}
	name, err := st.request(r.Service, http.MethodGet, headers)
	if err != nil || name == plain {
		return routertest.Answer{}, err
	}
	st.asked.Add(1)
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, split := range st.applied {
		if split.Service != r.Service.Name || split.Namespace != r.Service.Namespace {
			continue
		}
		for _, v := range split.Variations {
			if v.Selector.MatchLabels["version"] == name {
				return routertest.Answer{Divided: true, Variation: v}, nil
			}
		}
	}
	return routertest.Answer{}, fmt.Errorf("backend %s answers, which no split names", name)
}

// Flush implements routertest.Counter: Traefik counts a request after its answer, so the metrics are read until all
// requests that were divided are counted.
func (st *stand) Flush() {
	st.Helper()
	poll.Until(st, patience, "the Traefik has counted all requests", func() error {
		total, err := st.counted()
		if err == nil && total < st.asked.Load() {
			err = fmt.Errorf("%d of %d", total, st.asked.Load())
		}
		return err
	})
	st.Count(st.Context())
}

// counted are the divided requests that the Traefik has counted.
func (st *stand) counted() (uint64, error) {
	m, err := st.metrics()
	var total uint64
	for name, c := range m.Services {
		if !strings.HasSuffix(name, "__undivided") {
			total += c.Answered
		}
	}
	return total, err
}

func (st *stand) metrics() (connector.Metrics, error) {
	r, err := http.NewRequestWithContext(st.Context(), http.MethodGet, "http://"+st.program.API+"/metrics", http.NoBody)
	if err != nil {
		return connector.Metrics{}, err
	}
	response, err := impatient.Do(r)
	if err != nil {
		return connector.Metrics{}, err
	}
	defer func() { _ = response.Body.Close() }() // only read
	return connector.ReadMetrics(response.Body)
}

// Hang implements routertest.Faulty.
func (st *stand) Hang() { st.hangs = true; st.program.Signal(syscall.SIGSTOP) }

// Resume implements routertest.Faulty.
func (st *stand) Resume() { st.hangs = false; st.program.Signal(syscall.SIGCONT) }

// Restart implements routertest.Faulty.
func (st *stand) Restart() {
	st.program.Kill()
	st.program.Run()
}

// Edit implements routertest.Faulty: another source answers with its own weights, until the next Settle.
func (st *stand) Edit(types.NamespacedName) {
	st.mu.Lock()
	split := st.applied[types.NamespacedName{Namespace: "shop", Name: "autumn"}]
	st.mu.Unlock()
	split.Shares = traffic.Shares{{Variation: "stable", Weight: traffic.Total}, {Variation: "canary"}}
	port := connector.Served{Service: services[0], Port: 80, Route: connector.Route{Rule: "Host(`web.shop`)"}}
	edited, err := connector.Render([]connector.Port{{Served: port, Split: &split, Arms: st.arms(split)}})
	if err != nil {
		st.Fatal(err)
	}
	st.edited.Store(&edited)
	poll.Until(st, patience, "the Traefik has the edit", func() error {
		name, err := st.request(services[0], http.MethodGet, nil)
		if err == nil && name != "stable" {
			err = fmt.Errorf("requests go to %s", name)
		}
		return err
	})
}

// Load implements routertest.Loader: eight clients post on kept connections, to backends with a delay.
func (st *stand) Load(service types.NamespacedName) func() (sent, lost int) {
	var all sync.WaitGroup
	var sent, lost atomic.Int64
	end := make(chan struct{})
	for range 8 {
		all.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				sent.Add(1)
				if name, err := st.request(service, http.MethodPost, map[string]string{"X-Slow": "yes"}); err != nil || name == plain {
					lost.Add(1)
				}
			}
		})
	}
	return func() (int, int) {
		close(end)
		all.Wait()
		return int(sent.Load()), int(lost.Load())
	}
}

func TestTraefiksKeepTheContractOfRouters(t *testing.T) {
	rotation.Share(t, 3)
	routertest.Conform(t, routertest.Maker{
		Begin:        func(t *testing.T) routertest.Stand { return newStand(t, nil, brisk) },
		Capabilities: connectors.Traefik.Capabilities, RoundRobin: true,
	})
}
