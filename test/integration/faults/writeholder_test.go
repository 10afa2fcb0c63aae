// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// writeHolder is a way to an API server that can hold writes up, and passes
// reads: so a process learns everything it decides by, and its decisions do not
// arrive. It ends TLS to see which is which, and logs in as the administrator;
// whom a client acts for goes through in its headers.
type writeHolder struct {
	server *httptest.Server

	mu      sync.Mutex
	release chan struct{} // nil while nothing is held up
	held    []string      // "METHOD path" of each
	ended   sync.WaitGroup
}

func holdWrites(t *testing.T, c *cluster) *writeHolder {
	t.Helper()
	target, err := url.Parse(c.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	tls, err := rest.TLSConfigFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true}
	pass := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1, // watches are streams
		ErrorLog: log.New(io.Discard, "", 0), // of clients that went away
	}
	h := &writeHolder{}
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			arrived, err := h.await(r)
			if err != nil {
				http.Error(w, "the write was cut off", http.StatusBadRequest)
				return
			}
			defer arrived()
		}
		pass.ServeHTTP(w, r)
	}))
	h.server.EnableHTTP2 = true
	h.server.Config.ErrorLog = pass.ErrorLog
	h.server.StartTLS()
	t.Cleanup(func() {
		h.let()
		h.server.CloseClientConnections()
		h.server.Close()
		transport.CloseIdleConnections()
	})
	return h
}

// await holds a write up. What was sent arrives, also when its sender has given
// up or is gone by then. What it returns is to be called when it has arrived.
func (h *writeHolder) await(r *http.Request) (arrived func(), err error) {
	h.mu.Lock()
	release := h.release
	h.mu.Unlock()
	if release == nil {
		return func() {}, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading a write: %w", err)
	}
	h.mu.Lock()
	h.held = append(h.held, r.Method+" "+r.URL.Path)
	h.ended.Add(1)
	h.mu.Unlock()
	<-release
	*r = *r.WithContext(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return h.ended.Done, nil
}

// hold holds writes up from now on.
func (h *writeHolder) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.release = make(chan struct{})
}

// let has the writes that were held up arrive, waits until they have, and passes
// all later ones.
func (h *writeHolder) let() {
	h.mu.Lock()
	if h.release != nil {
		close(h.release)
		h.release = nil
	}
	h.mu.Unlock()
	h.ended.Wait()
}

// holds counts the writes that are held up and begin so.
func (h *writeHolder) holds(method, path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, write := range h.held {
		if strings.HasPrefix(write, method+" ") && strings.Contains(write, path) {
			n++
		}
	}
	return n
}

// through returns a configuration that reaches the API server this way.
func (h *writeHolder) through(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.Host = h.server.URL
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})
	own.CAData = slices.Concat(own.CAData, certificate)
	return own
}
