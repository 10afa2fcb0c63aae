// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"sync/atomic"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	"google.golang.org/grpc"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
)

// counted takes what proxies of our server count. It implements receive.Directory and
// receive.Observer.
type counted struct {
	of                *ours
	rejected, streams atomic.Int64
}

func (c *counted) register(g *grpc.Server) { receive.New(receive.Config{}, c, c, time.Now).Register(g) }

// Admit implements receive.Directory.
func (c *counted) Admit(ctx context.Context, authorization []string) (receive.Admission, error) {
	in, err := c.of.Admit(ctx, authorization)
	if err != nil {
		return receive.Admission{}, err
	}
	return receive.Admission{
		Proxy: in.Proxy, Has: func(cluster string) bool { return in.Group.View().Get(ads.Cluster, cluster) != nil },
	}, nil
}

// Streams implements receive.Observer.
func (c *counted) Streams(change int) { c.streams.Add(int64(change)) }

// Received implements receive.Observer.
func (*counted) Received(int) {}

// Rejected implements receive.Observer.
func (c *counted) Rejected(_ receive.Reason, times int) { c.rejected.Add(int64(times)) }

// dropped reads what proxies of the other servers count, by the types of the library,
// and keeps nothing of it: they have nobody who would add it up.
type dropped struct {
	metricsv3.UnimplementedMetricsServiceServer
	verifier *identity.Verifier
}

// StreamMetrics implements the service.
func (d *dropped) StreamMetrics(s metricsv3.MetricsService_StreamMetricsServer) error {
	if _, _, err := admit(s.Context(), d.verifier); err != nil {
		return err
	}
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
	}
}
