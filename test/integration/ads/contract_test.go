// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

// undivided is the backend that the Services have by themselves.
const undivided = "undivided"

// routed is a proxy that is told of splits, with the Services shop/web, shop/pay and bank/web.
type routed struct {
	*mesh
	in     ir.Inputs
	told   map[types.NamespacedName]*toldRouter
	fronts map[types.NamespacedName]string
	client *http.Client
	step   int
}

// toldRouter has a proxy told of what was applied, and returns when the proxy goes by it.
type toldRouter struct {
	routertest.Recorder
	of       *routed
	validate func(traffic.Split) error
}

func newRouted(t *testing.T) *routed {
	t.Helper()
	r := &routed{
		mesh: newMesh(t), told: map[types.NamespacedName]*toldRouter{}, fronts: map[types.NamespacedName]string{},
		// One connection to each Service stays with one worker of the proxy.
		client: &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: patience},
	}
	t.Cleanup(r.client.CloseIdleConnections)
	r.in.Sequences = map[types.NamespacedName]uint64{}
	own := backend(t, undivided)
	for i, name := range []types.NamespacedName{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "pay"}, {Namespace: "bank", Name: "web"}} {
		s := slice(name.Name, own)
		s.Namespace = name.Namespace
		r.in.Slices = append(r.in.Slices, s)
		r.in.Services = append(r.in.Services, object(name.Name, fmt.Sprint("10.0.0.", i+1), i, func(s *corev1.Service) { s.Namespace = name.Namespace }))
	}
	for _, version := range []string{"stable", "canary", "next"} {
		for _, namespace := range []string{"shop", "bank"} {
			p := pod(version, backend(t, version))
			p.Namespace = namespace
			r.in.Pods = append(r.in.Pods, p)
		}
	}
	services := ir.Build(r.in).Services
	r.serves(services...)
	_, fronts := r.sidecar("web-0", services...)
	for i, s := range services {
		r.fronts[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = fronts[i]
		answersSoon(t, fronts[i], "200 "+undivided)
	}
	return r
}

// Router implements routertest.Stand.
func (r *routed) Router(release types.NamespacedName) traffic.Router {
	if r.told[release] == nil {
		r.told[release] = &toldRouter{of: r, validate: discovery.NewRouters().Router(release).Validate}
	}
	return r.told[release]
}

// Validate implements traffic.Router.
func (r *toldRouter) Validate(split traffic.Split) error { return r.validate(split) }

// Apply implements traffic.Router.
func (r *toldRouter) Apply(ctx context.Context, split traffic.Split) error {
	before := r.Current()
	if err := r.Recorder.Apply(ctx, split); err != nil {
		return err
	}
	if !cmp.Equal(before, r.Current()) {
		r.of.tell() //nolint:contextcheck // it waits by the context of the test
	}
	return nil
}

// Remove implements traffic.Router.
func (r *toldRouter) Remove(ctx context.Context) error {
	if err := r.Recorder.Remove(ctx); err != nil {
		return err
	}
	r.of.tell() //nolint:contextcheck // it waits by the context of the test
	return nil
}

// tell the proxy what is applied. What it acknowledges its workers take a moment later, so a value of a header
// that each split maps for this says when they have.
func (r *routed) tell() {
	r.t.Helper()
	r.step++
	r.in.Splits = nil
	marks := map[types.NamespacedName]string{}
	for _, router := range r.told {
		if split := router.Current(); split != nil {
			s := *split
			name := types.NamespacedName{Namespace: s.Namespace, Name: s.Service}
			r.in.Sequences[name] = max(r.in.Sequences[name], s.Sequence)
			s.Match, marks[name] = r.marked(s)
			r.in.Splits = append(r.in.Splits, s)
		}
	}
	r.serves(ir.Build(r.in).Services...)
	for _, kind := range []ads.Type{ads.Cluster, ads.Endpoints, ads.Route} {
		for _, name := range r.view.Names(kind) {
			r.has("web-0", kind, name)
		}
	}
	for service := range r.fronts {
		want := undivided
		if mark := marks[service]; mark != "" {
			want, _, _ = strings.Cut(mark, ":")
		}
		eventually(r.t, "the worker has what is applied to "+service.String(), func() error { return r.follows(service, marks[service], want) })
	}
}

// marked maps one more value of a header, to the variation that has the least: its pods, the header and the value.
func (r *routed) marked(s traffic.Split) (traffic.Match, string) {
	least := slices.MinFunc(s.Shares, func(a, b traffic.Share) int { return int(a.Weight - b.Weight) })
	match := traffic.Match{Header: s.Match.Header, Values: maps.Clone(s.Match.Values)}
	if match.Header == "" {
		match = traffic.Match{Header: "x-step", Values: map[string]string{}}
	}
	value := fmt.Sprint("step-", r.step)
	match.Values[value] = least.Variation
	at := slices.IndexFunc(s.Variations, func(v traffic.Variation) bool { return v.Name == least.Variation })
	return match, s.Variations[at].Selector.MatchLabels["version"] + ":" + match.Header + ":" + value
}

// follows says whether requests with a mark go where they have to. By weights alone one in a million times
// twenty would.
func (r *routed) follows(service types.NamespacedName, mark, want string) error {
	headers := map[string]string{}
	if parts := strings.Split(mark, ":"); len(parts) == 3 {
		headers[parts[1]] = parts[2]
	}
	for range 20 {
		if got, _, err := r.request(routertest.Request{Service: service, Headers: headers}); err != nil || got != want {
			return fmt.Errorf("it goes to %q, want %q: %w", got, want, err)
		}
	}
	return nil
}

// request returns which backend answered, and what the client is given for a cookie of a visitor.
func (r *routed) request(request routertest.Request) (backend, visitor string, err error) {
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.fronts[request.Service]+"/", http.NoBody)
	if err != nil {
		return "", "", err
	}
	for name, value := range request.Headers {
		req.Header.Set(name, value)
	}
	for name, value := range request.Cookies {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = resp.Body.Close() }() // it is read
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", "", fmt.Errorf("%d %s: %w", resp.StatusCode, body, err)
	}
	for _, c := range resp.Cookies() {
		visitor = c.Value
	}
	return string(body), visitor, nil
}

// Ask implements routertest.Asker. Whose pod has answered the selectors say.
func (r *routed) Ask(request routertest.Request) (routertest.Answer, error) {
	backend, visitor, err := r.request(request)
	if err != nil {
		return routertest.Answer{}, err
	}
	answer := routertest.Answer{Divided: backend != undivided, Visitor: visitor}
	for _, split := range r.in.Splits {
		for _, v := range split.Variations {
			selector, err := metav1.LabelSelectorAsSelector(v.Selector)
			if err != nil {
				return answer, err
			}
			if split.Namespace == request.Service.Namespace && split.Service == request.Service.Name && selector.Matches(labels.Set{"version": backend}) {
				answer.Variation = v
			}
		}
	}
	return answer, nil
}

func TestEnvoysKeepTheContractOfRouters(t *testing.T) {
	routertest.Conform(t, routertest.Maker{Capabilities: traffic.FullCapabilities(), Begin: func(t *testing.T) routertest.Stand { return newRouted(t) }})
}
