// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	// drainPatience is shorter than a pod's default grace period of 30 s, so that
	// the exit is ours and not the kubelet's.
	drainPatience   = 20 * time.Second
	upstreamTimeout = 3 * time.Second
	headerTimeout   = 5 * time.Second
	maxAnswer       = 1 << 20
	// leaves is longer than proxies of the mesh keep a connection that is idle.
	leaves = 1500 * time.Millisecond
)

// answer is what the shop says about itself.
type answer struct {
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	Upstream json.RawMessage `json:"upstream,omitempty"` // answer of the other shop
}

// run serves until ctx is done and then lets requests finish. A server that closes a connection which
// is idle may lose a request that is on its way. So each connection ends with its next answer first,
// and clients have time to end the others.
func run(ctx context.Context, c config, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	fmt.Fprintf(out, "%s %s listens on %s\n", c.Name, c.Version, listener.Addr())
	visitors, err := newVisitors(c.Visit)
	if err != nil {
		return err
	}
	var visiting sync.WaitGroup
	defer visiting.Wait()
	visits, stopVisits := context.WithCancel(ctx)
	defer stopVisits()
	if c.Visit.URL != "" {
		visiting.Go(func() { visitors.run(visits) })
	}
	if c.Faults.Crash > 0 {
		crash := time.AfterFunc(c.Faults.Crash, func() {
			fmt.Fprintln(out, "this version is bad: it ends")
			os.Exit(1)
		})
		defer crash.Stop()
	}
	if c.Faults.Hoard > 0 {
		hoards := time.AfterFunc(c.Faults.Hoard, func() {
			hoarded := hoard()
			<-ctx.Done()
			runtime.KeepAlive(hoarded)
		})
		defer hoards.Stop()
	}
	server := &http.Server{Handler: lastAnswers(ctx, handler(ctx, c, visitors)), ReadHeaderTimeout: headerTimeout, Protocols: protocols()}
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		_ = listener.Close() // no connection comes any more
		<-time.After(leaves)
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainPatience)
		defer cancel()
		drained <- server.Shutdown(patience)
	})
	if err := server.Serve(listener); ctx.Err() == nil && !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving: %w", err)
	}
	if err := <-drained; err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	fmt.Fprintln(out, "drained")
	return nil
}

// lastAnswers end their connections when ctx is done.
func lastAnswers(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// protocols are those of the port: HTTP/1.1 with WebSockets, and HTTP/2 without TLS for gRPC.
func protocols() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return &p
}

// handler of all paths. When ctx is done, WebSockets take no further order.
func handler(ctx context.Context, c config, v *visitors) http.Handler {
	client := &http.Client{Timeout: upstreamTimeout}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // a client that left is no error of ours
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprintf(w, "# TYPE shop_info gauge\nshop_info{version=%q} 1\n", c.Version) // as above
	})
	mux.Handle("GET /{$}", c.Faults.spoil(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, answer{Name: c.Name, Version: c.Version})
	})))
	mux.Handle("POST /orders", c.Faults.spoil(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, io.LimitReader(r.Body, maxAnswer)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reply(w, answer{Name: c.Name, Version: c.Version})
	})))
	mux.Handle("POST "+callPath, serveCalls(c.Version, c.Faults.spoilCalls()))
	mux.Handle("GET "+socketPath, serveSockets(ctx, c.Version))
	mux.HandleFunc("GET /visits", func(w http.ResponseWriter, _ *http.Request) { reply(w, v.report()) })
	mux.HandleFunc("GET /checkout", func(w http.ResponseWriter, r *http.Request) {
		upstream, err := ask(r.Context(), client, c.Upstream)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		reply(w, answer{Name: c.Name, Version: c.Version, Upstream: upstream})
	})
	return mux
}

func reply(w http.ResponseWriter, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n')) // a client that left is no error of ours
}

// ask returns the JSON answer of the other shop, or nothing when there is none.
func ask(ctx context.Context, client *http.Client, url string) (json.RawMessage, error) {
	if url == "" {
		return nil, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("asking upstream: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking upstream: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading upstream's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK || !json.Valid(body) {
		return nil, fmt.Errorf("upstream answered %s: %.200q", response.Status, body)
	}
	return body, nil
}
