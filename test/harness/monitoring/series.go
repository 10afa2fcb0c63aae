// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Series are the samples of one set of labels, with a label __name__.
type Series struct {
	Labels map[string]string
	// Start is the time of the first value, and Step the time between two.
	Start  time.Time
	Step   time.Duration
	Values []float64
}

// WriteSeries stores samples of the past, which takes a Prometheus with --web.enable-remote-write-receiver.
// The samples of one series are to come in the order of their times.
func (s *Server) WriteSeries(all ...Series) {
	s.tb.Helper()
	var message []byte
	for i := range all {
		message = protowire.AppendTag(message, 1, protowire.BytesType)
		message = protowire.AppendBytes(message, all[i].encode())
	}
	request, err := http.NewRequest(http.MethodPost, s.URL()+"/api/v1/write", bytes.NewReader(snappy(message))) //nolint:noctx // on loopback
	if err != nil {
		s.tb.Fatal(err)
	}
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.tb.Fatal(err)
	}
	text, _ := io.ReadAll(response.Body) // for the message alone
	_ = response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		s.tb.Fatalf("writing series: %s: %s", response.Status, text)
	}
}

// encode writes a TimeSeries of https://prometheus.io/docs/specs/prw/remote_write_spec/.
func (s *Series) encode() (message []byte) {
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		label := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
		label = protowire.AppendString(protowire.AppendTag(label, 2, protowire.BytesType), s.Labels[name])
		message = protowire.AppendBytes(protowire.AppendTag(message, 1, protowire.BytesType), label)
	}
	for i, value := range s.Values {
		at := s.Start.Add(time.Duration(i) * s.Step).UnixMilli()
		sample := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(value))
		sample = protowire.AppendVarint(protowire.AppendTag(sample, 2, protowire.VarintType), uint64(at)) //nolint:gosec // after 1970
		message = protowire.AppendBytes(protowire.AppendTag(message, 2, protowire.BytesType), sample)
	}
	return message
}

// snappy writes a block of Snappy that has the bytes as one literal.
func snappy(data []byte) []byte {
	const literalOfFourBytes = 63 << 2
	out := append(binary.AppendUvarint(nil, uint64(len(data))), literalOfFourBytes)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(data)-1)), data...) //nolint:gosec // a test's few series
}
