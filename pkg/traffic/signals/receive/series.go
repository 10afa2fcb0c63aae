// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

// series is what the metrics of a family are.
type series struct {
	kind    kind
	counter signals.Counter
	// failover says that it is about the endpoints of the stable variation alone.
	failover bool
}

type kind int

const (
	counter   kind = iota
	byClass        // a counter whose label says which class of status
	gauge          // the requests in flight
	histogram      // the latencies
	uptime         // the seconds since the process began
)

// uptimeFamily is the gauge that tells when a process of Envoy began.
const uptimeFamily = "server.uptime"

// gauges says that the metrics are gauges, and counts that they are counters.
func (k kind) gauges() bool { return k == gauge || k == uptime }
func (k kind) counts() bool { return k == counter || k == byClass }

// families by their names, without what they all begin with.
var families = map[string]series{
	"upstream_rq_total":                 {counter: signals.Started},
	"upstream_rq_completed":             {counter: signals.Completed},
	"upstream_rq_xx":                    {kind: byClass},
	"upstream_rq_timeout":               {counter: signals.TimedOut},
	"upstream_rq_rx_reset":              {counter: signals.Reset},
	"upstream_rq_retry":                 {counter: signals.Retried},
	"upstream_rq_retry_limit_exceeded":  {counter: signals.RetryLimit},
	"upstream_rq_pending_overflow":      {counter: signals.Overflowed},
	"upstream_rq_pending_failure_eject": {counter: signals.NotConnected},
	"upstream_rq_cancelled":             {counter: signals.Abandoned},
	"upstream_cx_none_healthy":          {counter: signals.NoneHealthy},
	"upstream_cx_connect_fail":          {counter: signals.ConnectFailed},
	"upstream_rq_active":                {kind: gauge},
	"upstream_rq_time":                  {kind: histogram},
}

var (
	familyPrefix = []byte("cluster.")
	// Envoy counts endpoints with the metadata "canary" apart. In our clusters these are the
	// endpoints of the stable variation, behind those of another one.
	failoverPrefix = []byte("canary.")
	grpcPrefix     = []byte("grpc.")
)

// seriesOf a family; false for one that is not counted.
func seriesOf(name []byte) (series, bool) {
	rest, of := bytes.CutPrefix(name, familyPrefix)
	if !of {
		return series{}, false
	}
	if status, grpc := bytes.CutPrefix(rest, grpcPrefix); grpc {
		if len(status) > 2 || len(status) == 0 || status[0] < '0' || status[0] > '9' {
			return series{}, false // such as grpc.total, which is their sum
		}
		code, err := strconv.Atoi(string(status))
		if err != nil {
			return series{}, false
		}
		c, known := signals.GRPCStatus(code)
		return series{counter: c}, known
	}
	rest, failover := bytes.CutPrefix(rest, failoverPrefix)
	s, known := families[string(rest)]
	s.failover = failover
	return s, known
}

// count what was read.
func (m *metric) count(s series, told *signals.Reported) error {
	into := &told.Counts
	if s.failover {
		into = &told.FailedOver
	}
	if s.kind == histogram {
		return m.countSamples(into.Latency())
	}
	n, err := whole(m.value)
	if err != nil {
		return err
	}
	switch s.kind {
	case counter:
		into[s.counter] += n
	case byClass:
		if len(m.class) == 1 && m.class[0] >= '1' && m.class[0] <= '5' {
			into[signals.Class1+signals.Counter(m.class[0]-'1')] += n
		}
	case gauge:
		told.Active = n
	case histogram, uptime: // above, and elsewhere
	}
	return nil
}

// countSamples of buckets, each of which has what those below have.
func (m *metric) countSamples(into []uint64) error {
	below := uint64(0)
	for _, b := range m.buckets {
		switch {
		case math.IsNaN(b.bound), b.count > maxNumber:
			return fmt.Errorf("a bucket up to %v with %d is not a bucket", b.bound, b.count)
		case b.count < below:
			return errors.New("a bucket has less than those below it")
		}
		into[signals.Bucket(b.bound)] += b.count - below
		below = b.count
	}
	if m.samples < below || m.samples > maxNumber {
		return fmt.Errorf("a histogram has %d in its buckets and %d in all", below, m.samples)
	}
	into[signals.Buckets-1] += m.samples - below
	return nil
}

// whole is what a number counts.
func whole(n float64) (uint64, error) {
	if !(n >= 0 && n <= maxNumber) { // as not a number is neither
		return 0, fmt.Errorf("%v counts nothing", n)
	}
	return uint64(n), nil
}
