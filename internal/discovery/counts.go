// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
)

// counting admits proxies that tell what they count. It implements receive.Directory.
type counting struct{ directory *Directory }

// Admit implements receive.Directory: a proxy is believed what it counts of clusters
// that it was given. What its pod cannot have is told of its other stream.
func (c counting) Admit(ctx context.Context, authorization []string) (receive.Admission, error) {
	in, err := c.directory.admit(ctx, authorization, false)
	if err != nil {
		return receive.Admission{}, err
	}
	if in.Group.View() == nil {
		if in.Leave != nil {
			in.Leave()
		}
		// What is sent before it is known which clusters there are would be lost.
		return receive.Admission{}, status.Error(codes.Unavailable, "it is not known yet which services there are: try again")
	}
	return receive.Admission{
		Proxy: in.Proxy, Gateway: in.Gateway, Ended: in.Ended, Leave: in.Leave,
		Has: func(cluster string) bool { return in.Group.View().Get(ads.Cluster, cluster) != nil },
	}, nil
}

// countsObserver counts what comes of counts. It implements receive.Observer.
type countsObserver struct {
	streams         prometheus.Gauge
	messages, bytes prometheus.Counter
	rejected        *prometheus.CounterVec
}

func newCountsObserver(registry prometheus.Registerer) (*countsObserver, error) {
	o := &countsObserver{
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_xds_metrics_streams", Help: "Streams on which proxies send their counts of the requests to variations.",
		}),
		messages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_xds_metrics_messages_total", Help: "Messages with counts that were taken from proxies, one for each proxy every ten seconds.",
		}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_xds_metrics_bytes_total", Help: "Bytes of the messages with counts that were taken from proxies.",
		}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_xds_metrics_rejected_total",
			Help: "Refused parts of proxies' counts, by reason: a stream (token, unavailable, streams, proxies, message, rate), " +
				"a number of a cluster that the proxy was not given (cluster), or a slot for which there is no room (slots).",
		}, []string{"reason"}),
	}
	for _, c := range []prometheus.Collector{o.streams, o.messages, o.bytes, o.rejected} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of proxies' counts: %w", err)
		}
	}
	return o, nil
}

// Streams implements receive.Observer.
func (o *countsObserver) Streams(change int) { o.streams.Add(float64(change)) }

// Received implements receive.Observer.
func (o *countsObserver) Received(bytes int) {
	o.messages.Inc()
	o.bytes.Add(float64(bytes))
}

// Rejected implements receive.Observer.
func (o *countsObserver) Rejected(why receive.Reason, times int) {
	o.rejected.WithLabelValues(string(why)).Add(float64(times))
}
