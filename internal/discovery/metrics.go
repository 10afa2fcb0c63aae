// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// observer counts what the server tells, and logs what somebody has to see. It
// implements serve.Observer.
type observer struct {
	index                               *acknowledged.Index
	log                                 logr.Logger
	streams                             prometheus.Gauge
	refused, limited, tokens            *prometheus.CounterVec
	responses, bytes, rejected, stalled *prometheus.CounterVec
	acknowledged                        *prometheus.CounterVec
	late, withheld, misreads            prometheus.Counter
	// latest is told of a route that is late; may be nil.
	latest func(p identity.Proxy, route string)
}

func newObserver(registry prometheus.Registerer, log logr.Logger) (*observer, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "plumbline_xds_" + name, Help: help}, labels)
	}
	o := &observer{
		index: acknowledged.NewIndex(), log: log,
		streams:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "plumbline_xds_streams", Help: "Streams that are open."}),
		refused:      counter("streams_refused_total", "Streams that were not admitted, or ended because of the proxy's messages, by their gRPC code.", "code"),
		limited:      counter("streams_limited_total", "Streams that ended at a bound of one pod: streams at once, requests per second, names of one stream that do not exist (names), or those of all streams of the pod (pod_names).", "bound"),
		tokens:       counter("tokens_refused_total", "Tokens that did not prove a proxy, by reason.", "reason"),
		responses:    counter("responses_total", "Responses sent, by type of resource.", "type"),
		bytes:        counter("response_bytes_total", "Bytes of the resources sent, by type.", "type"),
		acknowledged: counter("acknowledged_total", "Resources that a proxy has acknowledged, by type.", "type"),
		rejected:     counter("rejected_total", "Resources that a proxy has refused, by type.", "type"),
		stalled:      counter("stalled_total", "Responses without an answer for too long, by type.", "type"),
		late:         prometheus.NewCounter(prometheus.CounterOpts{Name: "plumbline_xds_late_routes_total", Help: "Routes sent although the proxy had not acknowledged all of their endpoints."}),
		withheld:     prometheus.NewCounter(prometheus.CounterOpts{Name: "plumbline_xds_withheld_envoy_clusters_total", Help: "Clusters withheld from a proxy that acknowledged no clusters any more because of them."}),
		misreads:     prometheus.NewCounter(prometheus.CounterOpts{Name: "plumbline_xds_scope_problems_total", Help: "Requests by annotations of a proxy's pod that cannot be met, counted when a stream begins."}),
	}
	for _, c := range []prometheus.Collector{o.misreads, o.streams, o.refused, o.limited, o.tokens, o.responses, o.bytes, o.acknowledged, o.rejected, o.stalled, o.late, o.withheld} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of the discovery server: %w", err)
		}
	}
	return o, nil
}

// Opened implements serve.Observer.
func (o *observer) Opened(p identity.Proxy) {
	o.streams.Inc()
	o.index.Opened(voterOf(p), time.Now())
}

func voterOf(p identity.Proxy) acknowledged.Proxy {
	return acknowledged.Proxy{UID: p.PodUID, Namespace: p.Namespace, Pod: p.Pod}
}

// Closed implements serve.Observer.
func (o *observer) Closed(p identity.Proxy, why error) {
	o.streams.Dec()
	o.index.Closed(voterOf(p), time.Now())
	if why != nil {
		o.log.V(1).Info("a stream ended", "namespace", p.Namespace, "pod", p.Pod, "why", why.Error())
	}
}

// Refused implements serve.Observer.
func (o *observer) Refused(code codes.Code, at serve.Bound) {
	o.refused.WithLabelValues(code.String()).Inc()
	if at != "" {
		o.limited.WithLabelValues(string(at)).Inc()
	}
}

func (o *observer) token(why identity.Reason) { o.tokens.WithLabelValues(string(why)).Inc() }

// maxTold is how many of the things that a pod cannot have are logged: it is done each
// time that a stream begins.
const maxTold = 10

// misread tells of what a pod asks for and cannot have.
func (o *observer) misread(pod *corev1.Pod, wrong []string) {
	o.misreads.Add(float64(len(wrong)))
	o.log.Info("a proxy does not get all that its pod asks for",
		"namespace", pod.Namespace, "pod", pod.Name, "count", len(wrong), "wrong", wrong[:min(len(wrong), maxTold)])
}

// Sent implements serve.Observer.
func (o *observer) Sent(p identity.Proxy, send *ads.Send, bytes int) {
	if send.Type == ads.Route {
		o.index.Happened(voterOf(p), *send)
	}
	o.responses.WithLabelValues(send.Type.String()).Inc()
	o.bytes.WithLabelValues(send.Type.String()).Add(float64(bytes))
}

// Happened implements serve.Observer.
func (o *observer) Happened(p identity.Proxy, e ads.Effect) {
	o.index.Happened(voterOf(p), e)
	if x, is := e.(ads.Acked); is { // as nearly all are
		for _, r := range x.Resources {
			o.acknowledged.WithLabelValues(r.Type.String()).Inc()
		}
		return
	}
	log := o.log.WithValues("namespace", p.Namespace, "pod", p.Pod)
	switch x := e.(type) {
	case ads.Rejected:
		o.rejected.WithLabelValues(x.Resource.Type.String()).Inc()
		log.Info("a proxy refuses a resource", "type", x.Resource.Type.String(), "name", x.Resource.Name, "version", x.Resource.Version.String(), "message", x.Message)
	case ads.Late:
		o.late.Inc()
		log.Info("a route went before its endpoints were acknowledged", "name", x.Route.Name)
		if o.latest != nil {
			o.latest(p, x.Route.Name)
		}
	case ads.Ahead:
		log.V(1).Info("a proxy has a route of a later decision than there is", "route", x.Route, "has", x.Version.String())
	case ads.Withheld:
		o.withheld.Inc()
		log.Info("a cluster kept a proxy from acknowledging any other", "name", x.Cluster.Name)
	case ads.Stalled:
		o.stalled.WithLabelValues(x.Type.String()).Inc()
		log.Info("a proxy does not answer", "type", x.Type.String())
	case ads.Stale:
		log.V(1).Info("a proxy answers a response that it was not sent", "type", x.Type.String())
	case ads.Send, ads.Acked:
	}
}
