// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/historyhttp"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// Replica is a replica of a discovery server with its proxies. Away is why it does not answer; nil if it does.
type Replica struct {
	Proxies []serve.Connected
	Away    error
	// Hours are the last hours of releases by namespace and name; nil for a replica that does not lead.
	Hours map[string]history.Series
}

// Read implements historyhttp.History.
func (r *Replica) Read(of history.Release) (history.Series, bool) {
	hour, known := r.Hours[of.Namespace+"/"+of.Name]
	if !known {
		hour = history.Series{Since: Now.Add(-10 * time.Minute), Cells: []history.Cell{}, Looks: []history.Look{}}
	}
	return hour, r.Hours != nil
}

// Page implements proxieshttp.Proxies; all is one page.
func (r *Replica) Page(_ context.Context, q serve.Query) (page []serve.Connected, more bool) {
	for _, c := range r.Proxies {
		if !q.Keep(c.Proxy) {
			continue
		}
		resources := c.Resources
		c.Resources, c.Counts = nil, map[ads.Stage]int{}
		for _, s := range resources {
			if q.Of(ads.Key{Type: s.Type, Name: s.Name}) {
				c.Counts[s.Stage]++
				if q.Details {
					c.Resources = append(c.Resources, s)
				}
			}
		}
		page = append(page, c)
	}
	return page, false
}

// Routes answers at the port of the replica.
func (r *Replica) Routes(name string, now func() time.Time) http.Handler {
	h := proxieshttp.New(name, now)
	h.Show(r)
	mux := http.NewServeMux()
	mux.Handle("/", h.Routes())
	mux.Handle(historyhttp.Prefix, historyhttp.Routes(name, r))
	return mux
}

// Mesh is a discovery server of several replicas, by the names of their pods, and the pods of a cluster.
type Mesh struct {
	Replicas map[string]*Replica
	Pods     []client.Object
}

// Objects returns the pods of the cluster, with those of the replicas.
func (m *Mesh) Objects() []client.Object {
	objects := append([]client.Object{}, m.Pods...)
	for name := range m.Replicas {
		objects = append(objects, meshPod(actions.SystemNamespace, name, map[string]string{"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "xds"}))
	}
	return objects
}

// transport answers requests.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (a transport) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// Forward makes clients of the replicas' ports, which answer by the real handler.
func (m *Mesh) Forward(t *testing.T) func(portforward.Target) *http.Client {
	return func(target portforward.Target) *http.Client {
		return &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			of := m.Replicas[target.Pod]
			if target.Namespace != actions.SystemNamespace || target.Port != proxieshttp.Port || of == nil {
				t.Errorf("%+v was asked", target)
				return nil, errors.New("there is no such pod")
			}
			if of.Away != nil {
				return nil, of.Away
			}
			w := httptest.NewRecorder()
			of.Routes(target.Pod, func() time.Time { return Now }).ServeHTTP(w, r)
			return w.Result(), nil
		})}
	}
}

func meshPod(namespace, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{ServiceAccountName: "front"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// InjectedPod is a pod that runs with a proxy.
func InjectedPod(namespace, name string) *corev1.Pod {
	return meshPod(namespace, name, map[string]string{inject.LabelProxy: string(inject.Redirect)})
}

func connected(namespace, pod string, resources ...ads.State) serve.Connected {
	return serve.Connected{
		Proxy: identity.Proxy{Namespace: namespace, Pod: pod, ServiceAccount: "front", Expires: Now.Add(time.Minute)}, Node: namespace + "/" + pod,
		Version: [3]uint64{1, 40, 0}, Since: Now.Add(-time.Hour), Resources: resources,
	}
}

func atStage(kind ads.Type, name string, stage ads.Stage, why string) ads.State {
	return ads.State{
		Type: kind, Name: name, Stage: stage, Why: why, Since: Now.Add(-90 * time.Second),
		Has: ads.Version{Sequence: 1, Hash: "aa"}, Wants: ads.Version{Sequence: 2, Hash: "bb"},
	}
}

// MeshOf returns a mesh of two replicas: a proxy that has everything, one that waits for endpoints, one that refuses a
// route, one that never reads, one of another namespace, and a pod that no replica knows.
func MeshOf() *Mesh {
	slow := connected("shop", "slow-0")
	slow.Blocked = true
	fine := atStage(ads.Cluster, "shop/web|80|", ads.Acknowledged, "")
	return &Mesh{
		Replicas: map[string]*Replica{
			"xds-a": {Hours: map[string]history.Series{"shop/web": HourOf(Now)}, Proxies: []serve.Connected{connected("bank", "pay-0", fine), connected("shop", "front-0", fine, atStage(ads.Route, "shop/cart|80", ads.Held, "endpoints of [shop/cart|80|] are not acknowledged"))}},
			"xds-b": {Proxies: []serve.Connected{connected("shop", "front-1", fine, atStage(ads.Route, "shop/web|80", ads.Refused, "no such matcher")), slow}},
		},
		Pods: []client.Object{
			InjectedPod("shop", "front-0"), InjectedPod("shop", "front-1"), InjectedPod("shop", "slow-0"), InjectedPod("shop", "lost-0"), InjectedPod("bank", "pay-0"),
			meshPod("shop", "plain-0", nil),
		},
	}
}
