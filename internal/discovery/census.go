// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// census counts the injected pods that run, and those that are connected here, when
// somebody asks. It implements prometheus.Collector. Each replica sees all pods and
// the streams of its own, so what is connected nowhere is known by adding up.
type census struct {
	pods                func(ctx context.Context) ([]corev1.Pod, error)
	seated              func(uid string) bool
	injected, connected *prometheus.Desc
}

// registerCensus counts the pods of a cluster, and the seats of a directory.
func registerCensus(registry prometheus.Registerer, from *sources, d *Directory) error {
	c := &census{
		pods: from.injectedPods, seated: d.seated,
		injected:  prometheus.NewDesc("plumbline_xds_injected_pods", "Injected pods that run; each replica counts all of them.", nil, nil),
		connected: prometheus.NewDesc("plumbline_xds_connected_pods", "Running injected pods with a proxy that is connected to this replica.", nil, nil),
	}
	if err := registry.Register(c); err != nil {
		return fmt.Errorf("registering the metrics of injected pods: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (c *census) Describe(out chan<- *prometheus.Desc) {
	out <- c.injected
	out <- c.connected
}

// scrapeWait is how long a scrape waits for caches that are not synced yet.
const scrapeWait = time.Second

// Collect implements prometheus.Collector. What cannot be read is left out: nothing
// would be a number like any other.
func (c *census) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWait)
	defer cancel()
	pods, err := c.pods(ctx)
	if err != nil {
		return
	}
	injected, connected := 0, 0
	for i := range pods {
		if pods[i].Status.Phase != corev1.PodRunning || pods[i].DeletionTimestamp != nil {
			continue
		}
		injected++
		if c.seated(string(pods[i].UID)) {
			connected++
		}
	}
	out <- prometheus.MustNewConstMetric(c.injected, prometheus.GaugeValue, float64(injected))
	out <- prometheus.MustNewConstMetric(c.connected, prometheus.GaugeValue, float64(connected))
}

// injectedField is that of an index: each release that is not acknowledged asks for
// injected pods once a second, and most pods of a cluster may be others.
const injectedField = "injected"

// injected is the value of injectedField. Gateways have no sidecar, and are known by their
// account where that matters.
func injected(object client.Object) []string {
	pod, is := object.(*corev1.Pod)
	if is && (inject.Injected(pod) || pod.Labels[inject.LabelProxy] == inject.Gateway) {
		return []string{"true"}
	}
	return nil
}

// injectedPods are those with a proxy, whatever their phase. Nobody changes them.
func (s *sources) injectedPods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := s.cache.List(ctx, &pods, client.MatchingFields{injectedField: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the cache of pods: %w", err)
	}
	return pods.Items, nil
}

// seated says whether a pod has a stream.
func (d *Directory) seated(uid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seats[uid] != nil
}
