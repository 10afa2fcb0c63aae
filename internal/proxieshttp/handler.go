// SPDX-License-Identifier: Apache-2.0

package proxieshttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// Port is where a replica serves them by default, at loopback addresses of its pod. Prefix is
// that of the paths that programs ask for, and Page is for people.
const (
	Port   = 8083
	Prefix = "/proxies"
	Page   = "/proxies.html"
)

// Proxies are those that a discovery server has.
type Proxies interface {
	Page(ctx context.Context, q serve.Query) (page []serve.Connected, more bool)
}

// Handler shows proxies, once it has been told of a server. [New] makes one.
type Handler struct {
	replica string
	now     func() time.Time
	proxies atomic.Pointer[Proxies]
	turns   chan struct{}
}

// atOnce is how many requests are answered at once, and turnWait how long others wait.
const (
	atOnce   = 2
	turnWait = 5 * time.Second
)

// New handler of a replica, which is named in what it answers.
func New(replica string, now func() time.Time) *Handler {
	return &Handler{replica: replica, now: now, turns: make(chan struct{}, atOnce)}
}

// Show the proxies of a server from now on.
func (h *Handler) Show(proxies Proxies) { h.proxies.Store(&proxies) }

// Routes answers what is asked about proxies, by whoever reaches the port.
func (h *Handler) Routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix, h.bounded(h.list))
	mux.HandleFunc("GET "+Prefix+"/{namespace}/{pod}", h.bounded(h.one))
	mux.HandleFunc("GET "+Page, h.bounded(h.page))
	return LocalOnly(mux)
}

// LocalOnly refuses a request for another host than this one. A browser that a forwarded port
// leads here sends such a request when a page elsewhere has its own name lead to the port (DNS
// rebinding), and would let that page read the answer.
func LocalOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		if address, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !address.IsLoopback()) {
			http.Error(w, fmt.Sprintf("the host %q is not served: ask for localhost", host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answer to one who may have his turn.
type answer func(w http.ResponseWriter, r *http.Request, proxies Proxies)

// bounded answers when the server is there and few others are asking.
func (h *Handler) bounded(next answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		proxies := h.proxies.Load()
		if proxies == nil {
			http.Error(w, "no proxies are served yet: try again", http.StatusServiceUnavailable)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), turnWait)
		defer cancel()
		select {
		case h.turns <- struct{}{}:
			defer func() { <-h.turns }()
		case <-ctx.Done():
			http.Error(w, "others are asking: try again", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next(w, r, *proxies)
	}
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, proxies Proxies) {
	f, err := parse(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	write(w, h.collect(r.Context(), proxies, f))
}

// looks is how often more proxies are asked for one page, if few are in the stage.
const looks = 8

// collect a page.
func (h *Handler) collect(ctx context.Context, proxies Proxies, f Filter) List {
	list := List{Replica: h.replica, Proxies: []Proxy{}}
	q := f.query()
	for range looks {
		q.Limit = f.Limit - len(list.Proxies)
		page, more := proxies.Page(ctx, q)
		for i := range page {
			if f.keeps(&page[i]) {
				list.Proxies = append(list.Proxies, proxyOf(&page[i]))
			}
		}
		if !more || len(page) == 0 {
			return list
		}
		last := page[len(page)-1]
		q.After = serve.Place{Namespace: last.Namespace, Pod: last.Pod}
		if 2*len(list.Proxies) >= f.Limit { // to fill it would cost as many looks as are missing
			break
		}
	}
	list.Continue = q.After.Namespace + "/" + q.After.Pod
	return list
}

// errNotConnected is the answer about a pod that this replica does not know.
var errNotConnected = errors.New("the pod has no proxy that is connected to this replica")

func (h *Handler) one(w http.ResponseWriter, r *http.Request, proxies Proxies) {
	f, err := parse(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.Namespace, f.Pod = r.PathValue("namespace"), r.PathValue("pod")
	list, err := h.details(r.Context(), proxies, f)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	write(w, list)
}

// details of the proxy of one pod; there are two for a moment when it connects anew.
func (h *Handler) details(ctx context.Context, proxies Proxies, f Filter) (List, error) {
	q := f.query()
	q.Details, q.After = true, serve.Place{}
	page, _ := proxies.Page(ctx, q)
	if len(page) == 0 {
		return List{}, errNotConnected
	}
	list := List{Replica: h.replica}
	for i := range page {
		p := proxyOf(&page[i])
		f.narrow(&p)
		list.Proxies = append(list.Proxies, p)
	}
	return list, nil
}

func write(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(document) // who does not listen any more needs no answer
}
