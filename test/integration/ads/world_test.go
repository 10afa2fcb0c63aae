// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience is how long is waited for what takes milliseconds on an idle machine.
const patience = time.Minute

// world is a discovery server, whose proxies all see the same.
type world struct {
	t         testing.TB
	authority []byte
	serving   tls.Certificate
	address   string
	group     *serve.Group
	proofs    *serve.Proofs
	config    ads.Config
	missing   ads.Missing

	mu      sync.Mutex
	server  *serve.Server
	grpc    *grpc.Server
	effects []ads.Effect
	watch   func(ads.Effect) // is told of all that happens, responses included; may be nil
}

func newWorld(t testing.TB) *world { return newWorldWith(t, ads.Config{}) }

func newWorldWith(t testing.TB, config ads.Config) *world { return newWorldOf(t, config, missing) }

// newWorldOf is one in which something else stands for what is missing.
func newWorldOf(t testing.TB, config ads.Config, missing ads.Missing) *world {
	w := &world{t: t, config: config, missing: missing, group: serve.NewGroup(nil), proofs: serve.NewProofs()}
	w.serving, w.authority = envoy.NewServing(t)
	port := freeport.For(t)
	w.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	w.serve()
	t.Cleanup(func() { w.grpc.Stop() })
	return w
}

// proxy starts one, as a pod.
func (w *world) proxy(pod string) *envoy.Envoy {
	w.t.Helper()
	return envoy.Start(w.t, envoy.Options{Address: w.address, Authority: w.authority, Node: pod, Token: pod})
}

// proxyAt starts one that has a listener of its own at an address; those of the view
// are every proxy's, and the connections to these fall to any of them.
func (w *world) proxyAt(pod, address, routes string) *envoy.Envoy {
	w.t.Helper()
	return envoy.Start(w.t, envoy.Options{
		Address: w.address, Authority: w.authority, Node: pod, Token: pod, Listeners: []*listenerv3.Listener{listenerOf(address, routes)},
	})
}

// serve begins to.
func (w *world) serve() {
	w.t.Helper()
	l, err := net.Listen("tcp", w.address) //nolint:noctx // as a server would
	if err != nil {
		w.t.Fatal(err)
	}
	options := append(serve.Options(), grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{w.serving}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}})))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grpc = grpc.NewServer(options...)
	w.server = serve.New(serve.Config{Stream: w.config}, w, w.proofs, w.missing, w)
	w.server.Register(w.grpc)
	running := w.grpc
	go func() {
		if err := running.Serve(l); err != nil {
			w.t.Errorf("the server ended: %v", err)
		}
	}()
}

// Admit implements serve.Directory: a token is the name of a pod.
func (w *world) Admit(_ context.Context, authorization []string) (serve.Admission, error) {
	token, err := identity.Bearer(authorization)
	return serve.Admission{Proxy: identity.Proxy{Namespace: "shop", Pod: token, PodUID: token}, Group: w.group}, err
}

// Opened, Closed, Refused, Sent and Happened implement serve.Observer.
func (*world) Opened(identity.Proxy)           {}
func (*world) Closed(identity.Proxy, error)    {}
func (*world) Refused(codes.Code, serve.Bound) {}
func (w *world) Sent(_ identity.Proxy, send *ads.Send, _ int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watch != nil {
		w.watch(*send)
	}
}
func (w *world) Happened(_ identity.Proxy, e ads.Effect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects = append(w.effects, e)
	if w.watch != nil {
		w.watch(e)
	}
}

// told says whether an effect was told.
func told[E ads.Effect](w *world, is func(E) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.effects {
		if of, ok := e.(E); ok && is(of) {
			return true
		}
	}
	return false
}

func (w *world) publish(resources ...*ads.Resource) { w.group.Publish(ads.NewView(resources...)) }

// stage of a resource at a proxy; empty when nothing is known.
func (w *world) stage(pod string, kind ads.Type, name string) ads.State {
	w.mu.Lock()
	s := w.server
	w.mu.Unlock()
	for _, p := range s.Proxies(w.t.Context(), func(p identity.Proxy) bool { return p.Pod == pod }) {
		for _, state := range p.Resources {
			if state.Type == kind && state.Name == name {
				return state
			}
		}
	}
	return ads.State{}
}

// acknowledged waits until a proxy has a resource.
func (w *world) acknowledged(pod string, r *ads.Resource) {
	w.t.Helper()
	poll.Confirmation.Until(w.t, patience, "the proxy has "+r.Type.String()+" "+r.Name, func() error {
		if state := w.stage(pod, r.Type, r.Name); state.Stage != ads.Acknowledged || state.Has != r.Version {
			return fmt.Errorf("it is %+v", state)
		}
		return nil
	})
}

// gone waits until a proxy no longer has a resource.
func (w *world) gone(pod string, kind ads.Type, name string) {
	w.t.Helper()
	eventually(w.t, "the proxy has no longer "+name, func() error {
		if state := w.stage(pod, kind, name); state.Name != "" {
			return fmt.Errorf("it is %+v", state)
		}
		return nil
	})
}

// eventually looks very often: what is waited for takes a millisecond, a thousand times.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < time.Second; {
		if check() == nil {
			return
		}
	}
	poll.Until(t, patience, what, check)
}

// answers gets / and says which backend it was, and the code.
func answers(t testing.TB, address string) (string, int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), 0
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error(), 0
	}
	return string(body), response.StatusCode
}
