// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

// Batch is how many metrics an Envoy puts into one message, as its bootstrap tells it: some
// 600 KB. A message with as many is followed by another one of the same flush.
const Batch = 1_000

// The bounds of what a proxy may send at once. One that tells of 64 slots at once, as one
// whose bootstrap has no batches, sends some 400 KB, its node included.
const (
	maxMessage  = 1 << 20
	maxFamilies = 8192
	maxLabel    = 1024
	// maxNumber is the largest that a counter of Envoy has exactly.
	maxNumber = 1 << 53
	// maxUptime is how many seconds a process may be old.
	maxUptime = 1 << 32
)

// The numbers of the fields, of envoy/service/metrics/v3/metrics_service.proto and
// io/prometheus/client/metrics.proto.
const (
	messageFamilies = 2

	familyName   = 1
	familyMetric = 4

	metricLabel     = 1
	metricGauge     = 2
	metricCounter   = 3
	metricTime      = 6
	metricHistogram = 7

	labelName  = 1
	labelValue = 2

	numberValue = 1

	histogramCount  = 1
	histogramBucket = 3

	bucketCount = 1
	bucketBound = 2
)

// The labels that are read.
const (
	clusterLabel = "envoy.cluster_name"
	classLabel   = "envoy.response_code_class"
)

// errWire says that bytes are no message.
var errWire = errors.New("malformed protobuf")

// flush is what is read of a message. It is used again for others.
type flush struct {
	signals.Flush
	// ignored are the families of clusters that the proxy does not have.
	ignored int
	bytes   int
	// families are those of the message.
	families int

	find     func(cluster []byte) (name string, slot signals.Slot, found bool)
	clusters []string // of Slots
	places   map[string]int
	last     int // the slot that the family before was of
	metric   metric
}

// metric is one while it is read.
type metric struct {
	cluster, class []byte
	value          float64
	valued         bool
	samples        uint64
	sampled        bool
	buckets        []bucket
}

type bucket struct {
	count uint64 // of this and those below
	bound float64
}

func (f *flush) reset() {
	clear(f.Slots)
	f.Slots, f.clusters = f.Slots[:0], f.clusters[:0]
	clear(f.places)
	f.At, f.Began, f.ignored, f.bytes, f.families, f.last = time.Time{}, time.Time{}, 0, 0, 0, 0
}

// decode reads a message. It keeps nothing of data.
func (f *flush) decode(data []byte) error {
	f.reset()
	f.bytes = len(data)
	if len(data) > maxMessage {
		return fmt.Errorf("reading counts: a message of %d bytes, want at most %d", len(data), maxMessage)
	}
	err := fields(data, func(number protowire.Number, value field) error {
		if number != messageFamilies || value.kind != protowire.BytesType {
			return nil
		}
		if f.families++; f.families > maxFamilies {
			return fmt.Errorf("more than %d metrics", maxFamilies)
		}
		return f.family(value.bytes)
	})
	f.metric.cluster, f.metric.class = nil, nil // they are parts of data
	if err != nil {
		return fmt.Errorf("reading counts: %w", err)
	}
	return nil
}

func (f *flush) family(data []byte) error {
	var name []byte
	if err := fields(data, func(number protowire.Number, value field) error {
		if number == familyName && value.kind == protowire.BytesType {
			name = value.bytes
		}
		return nil
	}); err != nil {
		return err
	}
	s, ours := seriesOf(name)
	if string(name) == uptimeFamily {
		s, ours = series{kind: uptime}, true
	}
	if !ours {
		return nil
	}
	return fields(data, func(number protowire.Number, value field) error {
		if number != familyMetric || value.kind != protowire.BytesType {
			return nil
		}
		return f.read(s, value.bytes)
	})
}

// read a metric of a series and count it.
func (f *flush) read(s series, data []byte) error {
	m := &f.metric
	*m = metric{buckets: m.buckets[:0]}
	if err := fields(data, func(number protowire.Number, value field) error {
		switch {
		case number == metricTime && value.kind == protowire.VarintType:
			f.At = time.UnixMilli(int64(value.number)) //nolint:gosec // as it was written
		case value.kind != protowire.BytesType:
		case number == metricLabel:
			return m.label(value.bytes)
		case number == metricGauge && s.kind.gauges(), number == metricCounter && s.kind.counts():
			m.valued = true
			return m.number(value.bytes)
		case number == metricHistogram && s.kind == histogram:
			m.sampled = true
			return m.histogram(value.bytes)
		}
		return nil
	}); err != nil {
		return err
	}
	if !m.valued && !m.sampled {
		return nil
	}
	if s.kind == uptime {
		return f.began()
	}
	told := f.slot()
	if told == nil {
		return nil
	}
	return m.count(s, told)
}

// began reads how many seconds ago the proxy's process began.
func (f *flush) began() error {
	up, err := whole(f.metric.value)
	if err != nil || f.At.IsZero() {
		return err
	}
	f.Began = f.At.Add(-time.Duration(min(up, maxUptime)) * time.Second)
	return nil
}

// slot that the metric is of; nil when it is of none that the proxy has.
func (f *flush) slot() *signals.Reported {
	cluster := f.metric.cluster
	if f.last < len(f.clusters) && f.clusters[f.last] == string(cluster) {
		return &f.Slots[f.last]
	}
	if i, known := f.places[string(cluster)]; known {
		f.last = i
		return &f.Slots[i]
	}
	name, of, found := f.find(cluster)
	if !found {
		f.ignored++
		return nil
	}
	return f.add(name, of)
}

// add a slot.
func (f *flush) add(cluster string, of signals.Slot) *signals.Reported {
	if f.places == nil {
		f.places = map[string]int{}
	}
	f.last = len(f.clusters)
	f.places[cluster] = f.last
	f.clusters = append(f.clusters, cluster)
	f.Slots = append(f.Slots, signals.Reported{Slot: of})
	return &f.Slots[f.last]
}

// join the next message of the same flush. An Envoy puts counters, gauges and histograms of one
// slot into several.
func (f *flush) join(next *flush) {
	for i := range next.Slots {
		told := &next.Slots[i]
		place, known := f.places[next.clusters[i]]
		var into *signals.Reported
		if known {
			into = &f.Slots[place]
		} else {
			into = f.add(next.clusters[i], told.Slot)
		}
		into.Counts.Add(&told.Counts)
		into.FailedOver.Add(&told.FailedOver)
		into.Active += told.Active
	}
	f.families = next.families
	if f.At.IsZero() {
		f.At = next.At
	}
	if f.Began.IsZero() {
		f.Began = next.Began
	}
}

// continues says that a message is one of the same flush as those before. One that has no number
// that counts has no time either.
func (f *flush) continues(next *flush) bool {
	return f.At.IsZero() || next.At.IsZero() || f.At.Equal(next.At)
}

// whole says that no message of the same flush follows.
func (f *flush) whole() bool { return f.families != Batch }

func (m *metric) label(data []byte) error {
	var name, value []byte
	if err := fields(data, func(number protowire.Number, v field) error {
		switch {
		case v.kind != protowire.BytesType:
		case number == labelName:
			name = v.bytes
		case number == labelValue:
			value = v.bytes
		}
		return nil
	}); err != nil {
		return err
	}
	if len(value) > maxLabel || len(name) > maxLabel {
		return fmt.Errorf("a label of %d bytes, want at most %d", max(len(name), len(value)), maxLabel)
	}
	switch string(name) {
	case clusterLabel:
		m.cluster = value
	case classLabel:
		m.class = value
	}
	return nil
}

// number is the value of a counter or gauge.
func (m *metric) number(data []byte) error {
	return fields(data, func(number protowire.Number, v field) error {
		if number == numberValue && v.kind == protowire.Fixed64Type {
			m.value = math.Float64frombits(v.number)
		}
		return nil
	})
}

func (m *metric) histogram(data []byte) error {
	return fields(data, func(number protowire.Number, v field) error {
		switch {
		case number == histogramCount && v.kind == protowire.VarintType:
			m.samples = v.number
		case number == histogramBucket && v.kind == protowire.BytesType:
			b := bucket{}
			m.buckets = append(m.buckets, b)
			return m.buckets[len(m.buckets)-1].decode(v.bytes)
		}
		return nil
	})
}

func (b *bucket) decode(data []byte) error {
	return fields(data, func(number protowire.Number, v field) error {
		switch {
		case number == bucketCount && v.kind == protowire.VarintType:
			b.count = v.number
		case number == bucketBound && v.kind == protowire.Fixed64Type:
			b.bound = math.Float64frombits(v.number)
		}
		return nil
	})
}

// field is the value of one; number is that of all kinds that have one.
type field struct {
	kind   protowire.Type
	number uint64
	bytes  []byte
}

// fields calls f for each field.
func fields(data []byte, f func(protowire.Number, field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errWire
		}
		data = data[n:]
		v := field{kind: kind}
		switch kind {
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(data)
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(data)
		case protowire.Fixed64Type:
			v.number, n = protowire.ConsumeFixed64(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return errWire
		}
		data = data[n:]
		if err := f(number, v); err != nil {
			return err
		}
	}
	return nil
}
