// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// drainPatience is shorter than a pod's default grace period of 30 s, so that
	// the exit is ours and not the kubelet's.
	drainPatience   = 20 * time.Second
	upstreamTimeout = 3 * time.Second
	headerTimeout   = 5 * time.Second
	maxAnswer       = 1 << 20
)

// config is what the environment says.
type config struct {
	Name, Version, Address, Upstream string
}

func configFrom(getenv func(string) string, hostname func() (string, error)) config {
	host, err := hostname()
	if err != nil {
		host = "unknown"
	}
	return config{
		Name:     cmp.Or(getenv("SHOP_NAME"), host),
		Version:  cmp.Or(getenv("SHOP_VERSION"), "dev"),
		Address:  cmp.Or(getenv("SHOP_ADDRESS"), ":8080"),
		Upstream: getenv("SHOP_UPSTREAM"),
	}
}

// answer is what the shop says about itself.
type answer struct {
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	Upstream json.RawMessage `json:"upstream,omitempty"` // answer of the other shop
}

// run serves until ctx is done and then lets requests finish.
func run(ctx context.Context, c config, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	fmt.Fprintf(out, "%s %s listens on %s\n", c.Name, c.Version, listener.Addr())
	server := &http.Server{Handler: handler(c), ReadHeaderTimeout: headerTimeout}
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainPatience)
		defer cancel()
		drained <- server.Shutdown(patience)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving: %w", err)
	}
	if err := <-drained; err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	fmt.Fprintln(out, "drained")
	return nil
}

func handler(c config) http.Handler {
	client := &http.Client{Timeout: upstreamTimeout}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // a client that left is no error of ours
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, answer{Name: c.Name, Version: c.Version})
	})
	mux.HandleFunc("GET /checkout", func(w http.ResponseWriter, r *http.Request) {
		upstream, err := ask(r.Context(), client, c.Upstream)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		reply(w, http.StatusOK, answer{Name: c.Name, Version: c.Version, Upstream: upstream})
	})
	return mux
}

func reply(w http.ResponseWriter, status int, a answer) {
	data, err := json.Marshal(a)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
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
