// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// voters are the proxies that have to acknowledge what is decided about a service: those
// of injected pods that depend on it, and of gateways if it has hosts.
type voters struct {
	service ir.Service
	// scope of a pod; false if it has no proxy.
	scope func(*corev1.Pod) (Scope, bool)
	// edge are the routes of gateways.
	edge []string
	// unfit says why a pod is not expected to answer; empty if nothing is known against it.
	unfit func(*corev1.Pod) string
	// same leaves out proxies of other namespaces, gateways excepted.
	same bool
}

// wanted of pods. One that is about to end, or has ended,
// need not acknowledge anything: it gets no requests any more that it would pass on. One
// that does not run yet is starting; its proxy may be connected already, since
// sidecars are started first.
func (v voters) wanted(pods []corev1.Pod) (wanted []acknowledged.Wanted) {
	own := v.routes(nil)
	for i := range pods {
		pod := &pods[i]
		s, is := v.scope(pod)
		if !is || over(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		w := acknowledged.Wanted{
			Proxy: acknowledged.Proxy{UID: string(pod.UID), Namespace: pod.Namespace, Pod: pod.Name},
			Since: pod.CreationTimestamp.Time, Starting: pod.Status.Phase == corev1.PodPending,
		}
		switch s.face {
		case gateway:
			if len(v.service.Hosts) > 0 {
				w.Routes, w.Shared = v.edge, true
			}
		case explicit:
			if v.hears(pod) {
				w.Routes, w.By = v.routes(&s), v.written(pod, inject.AnnotationLocalPorts)
			}
		case redirected:
			if v.hears(pod) && s.needs(types.NamespacedName{Namespace: v.service.Namespace, Name: v.service.Name}) {
				w.Routes, w.By, w.Redirected = own, v.written(pod, UpstreamsAnnotation), true
			}
		}
		if len(w.Routes) > 0 {
			w.Unfit = v.unfit(pod)
			wanted = append(wanted, w)
		}
	}
	return wanted
}

// hears says whether the sidecar of a pod has a vote.
func (v voters) hears(pod *corev1.Pod) bool {
	return pod.Namespace == v.service.Namespace || !v.same && v.service.KnownTo(pod.Namespace)
}

// written is what has a pod of another namespace depend on the service.
func (v voters) written(pod *corev1.Pod, annotation string) string {
	if pod.Namespace == v.service.Namespace {
		return ""
	}
	return "the annotation " + annotation + " of it or its namespace"
}

// routes of the service's ports: all, or those that the local ports of a scope lead to.
func (v voters) routes(explicit *Scope) (routes []string) {
	add := func(p ir.Port) {
		if p.Protocol != ir.TCP {
			routes = append(routes, envoyname.RouteName(v.service.Namespace, v.service.Name, p.Number))
		}
	}
	if explicit == nil {
		for _, p := range v.service.Ports {
			add(p)
		}
		return routes
	}
	for _, local := range explicit.ports() {
		if local.Namespace != v.service.Namespace || local.Service != v.service.Name {
			continue
		}
		if p, err := v.service.HTTPPort(local.Port); err == nil {
			add(p)
		}
	}
	return routes
}
