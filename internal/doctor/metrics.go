// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strconv"
	"strings"
)

// Metrics are samples of one process by name. Those of one name are summed up
// over their labels.
type Metrics map[string]float64

// Names of the metrics that checks look at.
const (
	metricExpiry  = "plumbline_certificate_expiry_timestamp_seconds"
	metricReviews = "plumbline_admission_reviews_total"
	metricRedisUp = "plumbline_admission_records_redis_up"
	metricWritten = "plumbline_admission_records_written_total"
	metricDropped = "plumbline_admission_records_dropped_total"
	metricDepth   = "plumbline_admission_records_queue_depth"
	metricBuild   = "plumbline_build_info"
	metricPrefix  = "plumbline_"
)

// ParseMetrics reads our own metrics from the text format of Prometheus. Lines
// that it does not understand are left out: an absent metric is unknown.
func ParseMetrics(text string) Metrics {
	m := Metrics{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.IndexAny(line, "{ ")
		if !strings.HasPrefix(line, metricPrefix) || end < 0 {
			continue
		}
		rest := line[end:]
		if rest[0] == '{' { // values of labels may hold spaces and braces, none of ours ends in one
			rest = rest[strings.LastIndexByte(rest, '}')+1:]
		}
		fields := strings.Fields(rest) // value, and perhaps a timestamp
		if len(fields) == 0 {
			continue
		}
		if value, err := strconv.ParseFloat(fields[0], 64); err == nil {
			m[line[:end]] += value
		}
	}
	return m
}

// BuildVersion reads the version of the binary from the same text; empty if it is not there.
func BuildVersion(text string) string {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, metricBuild+"{") {
			continue
		}
		_, rest, found := strings.Cut(line, `,version="`)
		if version, _, ends := strings.Cut(rest, `"`); found && ends {
			return version
		}
	}
	return ""
}

// Reviews adds up what the replicas of the webhook have answered; it is unknown
// as soon as it is unknown of one.
func Reviews(pods Read[[]Pod]) Read[float64] {
	if !pods.present() {
		return Read[float64]{State: pods.State, Reason: pods.Reason, Right: pods.Right}
	}
	sum := Gone[float64]()
	for _, pod := range pods.Value {
		if pod.Component != webhookComponent {
			continue
		}
		if !pod.Metrics.present() {
			return Read[float64]{Reason: pod.Metrics.Reason, Right: pod.Metrics.Right}
		}
		sum = Got(sum.Value + pod.Metrics.Value[metricReviews]) // absent: it has not answered any
	}
	return sum
}
