// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/printable"
)

// The bounds of an answer of Prometheus.
const (
	// MaxPrometheusAnswer in bytes.
	MaxPrometheusAnswer = 1 << 20
	// MaxSampleAge is how far the time of a sample can be from now, either way.
	MaxSampleAge = 2 * time.Minute
)

// instant is an answer of the API for instant queries, by
// https://prometheus.io/docs/prometheus/latest/querying/api/.
type instant struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// ParsePrometheus reads the one number of an answer to an instant query: of a scalar, or of a vector of one
// sample. The error says why there is no data: a status other than 200, an error of Prometheus, an empty
// vector, several samples, NaN, an infinite number, a sample that is too far from now, or another form.
func ParsePrometheus(status int, body []byte, now time.Time) (float64, error) {
	if len(body) > MaxPrometheusAnswer {
		return 0, fmt.Errorf("the answer has more than %d bytes", MaxPrometheusAnswer)
	}
	var in instant
	err := json.Unmarshal(body, &in)
	switch {
	case err == nil && in.Status == "error":
		return 0, fmt.Errorf("Prometheus answers %d: %s", status, printable.Line(in.Error, maxMessage)) //nolint:staticcheck // a name
	case status != 200:
		return 0, fmt.Errorf("Prometheus answers %d", status) //nolint:staticcheck // a name
	case err != nil || in.Status != "success":
		return 0, errors.New("the answer is not one of the API of Prometheus")
	}
	var sample [2]json.RawMessage
	switch in.Data.ResultType {
	case "scalar":
		if err := json.Unmarshal(in.Data.Result, &sample); err != nil {
			return 0, errors.New("the scalar is not a pair of time and value")
		}
	case "vector":
		var vector []struct {
			Value [2]json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal(in.Data.Result, &vector); err != nil {
			return 0, errors.New("the vector is not a list of samples")
		}
		if len(vector) != 1 {
			return 0, fmt.Errorf("the result has %d samples, want one", len(vector))
		}
		sample = vector[0].Value
	default:
		return 0, fmt.Errorf("the result is of type %q, want a vector or a scalar", printable.Line(in.Data.ResultType, maxNameBytes))
	}
	return readSample(sample, now)
}

// readSample reads a pair of seconds since 1970 and a number in a string.
func readSample(sample [2]json.RawMessage, now time.Time) (float64, error) {
	var at float64
	var text string
	if json.Unmarshal(sample[0], &at) != nil || json.Unmarshal(sample[1], &text) != nil {
		return 0, errors.New("the sample is not a pair of time and value")
	}
	value, err := strconv.ParseFloat(text, 64)
	switch age := float64(now.UnixMilli())/1000 - at; {
	case err != nil || math.IsNaN(value) || math.IsInf(value, 0):
		return 0, fmt.Errorf("the value is %q, which is no number", printable.Line(text, maxNameBytes))
	case math.Abs(age) > MaxSampleAge.Seconds():
		return 0, fmt.Errorf("the sample is %.0f s old, want at most %.0f s", age, MaxSampleAge.Seconds())
	}
	return value, nil
}
