// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// row is a series with a point of each value.
func row(labels string, values ...string) string {
	var points []string
	for i, v := range values {
		points = append(points, fmt.Sprintf(`[%d.5,%q]`, noon.Unix()+int64(15*i), v))
	}
	return `{"metric":{` + labels + `},"values":[` + strings.Join(points, ",") + `]}`
}

func matrixOf(rows ...string) string {
	return `{"status":"success","data":{"resultType":"matrix","result":[` + strings.Join(rows, ",") + `]}}`
}

func repeat(text string, n int) (all []string) {
	for range n {
		all = append(all, text)
	}
	return all
}

func TestParseMatrix(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   []Series
		fault  source.Fault
		why    string
	}{
		"one series":                           {200, matrixOf(row("", "1", "2.5")), []Series{{"", []float64{1, 2.5}}}, "", ""},
		"defect 10: series stay apart":         {200, matrixOf(row(`"pod":"a","le":"1"`, "1"), row(`"pod":"b"`, "2")), []Series{{`{le="1",pod="a"}`, []float64{1}}, {`{pod="b"}`, []float64{2}}}, "", ""},
		"no series":                            {200, matrixOf(), []Series{}, "", ""},
		"defect 9: NaN and Inf are no numbers": {200, matrixOf(row("", "NaN", "1", "+Inf", "-Inf")), []Series{{"", []float64{1}}}, "", ""},
		"labels that are long are cut":         {200, matrixOf(row(`"a":"`+strings.Repeat("b", 300)+`"`, "1")), []Series{{`{a="` + strings.Repeat("b", 193) + "…", []float64{1}}}, "", ""},
		"a scalar":                             {200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`, nil, source.Malformed, "no matrix"},
		"a vector":                             {200, `{"status":"success","data":{"resultType":"vector","result":[]}}`, nil, source.Malformed, "no matrix"},
		"no result":                            {200, `{"status":"success","data":{"resultType":"matrix"}}`, nil, source.Malformed, "no matrix"},
		"another JSON":                         {200, `[]`, nil, source.Malformed, "not the JSON"},
		"no JSON":                              {200, `<html>`, nil, source.Malformed, "not the JSON"},
		"a histogram":                          {200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[[1,{}]]}]}}`, nil, source.Malformed, "histograms"},
		"a value that is no number":            {200, matrixOf(row("", "much")), nil, source.Malformed, `the value "much"`},
		"a sample of one part":                 {200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1]]}]}}`, nil, source.Malformed, "not a pair"},
		"a query that does not parse":          {400, `{"status":"error","errorType":"bad_data","error":"parse error:\nunexpected )"}`, nil, source.Failed, "Prometheus answers 400: parse error: unexpected )"},
		"a query that takes too long":          {503, `{"status":"error","error":"query timed out"}`, nil, source.Failed, "answers 503: query timed out"},
		"a gateway in trouble":                 {502, `Bad Gateway`, nil, source.Failed, "answers 502"},
		"no token":                             {401, ``, nil, source.Refused, "refuses"},
		"20 series":                            {200, matrixOf(repeat(row("", "1"), 20)...), seriesOf(20, 1), "", ""},
		"21 series":                            {200, matrixOf(repeat(row("", "1"), 21)...), nil, source.TooLarge, "21 series, want at most 20"},
		"200 points":                           {200, matrixOf(row("", repeat("1", 200)...)), seriesOf(1, 200), "", ""},
		"201 points":                           {200, matrixOf(row("", repeat("1", 201)...)), nil, source.TooLarge, "201 points, want at most 200"},
		"more bytes than an answer may have":   {200, matrixOf() + strings.Repeat(" ", source.MaxAnswer), nil, source.TooLarge, "more than"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseMatrix(source.NewAnswer(Name, tc.status, "application/json", []byte(tc.body)))
			if tc.fault != "" {
				if fault, message := source.FaultOf(err); err == nil || fault != tc.fault || !strings.Contains(message, tc.why) {
					t.Errorf("the error is %s, %q, want %s, %q", fault, message, tc.fault, tc.why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func seriesOf(n, points int) (all []Series) {
	for range n {
		s := Series{}
		for range points {
			s.Values = append(s.Values, 1)
		}
		all = append(all, s)
	}
	return all
}

func TestARangeIsAskedAsTheAPIDemands(t *testing.T) {
	asked := 0
	c := ask(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		got := []string{r.Method, r.URL.Path, r.FormValue("query"), r.FormValue("start"), r.FormValue("end"), r.FormValue("step"), r.FormValue("timeout")}
		if diff := cmp.Diff([]string{"POST", "/select/0/api/v1/query_range", "up", "1772452800.000", "1772453700.500", "15", "9s"}, got); diff != "" {
			t.Errorf("the request (-want +got):\n%s", diff)
		}
		_, _ = io.WriteString(w, matrixOf())
	})
	window := effect.Span{From: noon, To: noon.Add(15*time.Minute + 500*time.Millisecond), Step: 15 * time.Second}
	if got, err := c.QueryRange(t.Context(), "up", window); err != nil || len(got) != 0 {
		t.Errorf("got %v and %v", got, err)
	}
	window.To = noon.Add(-time.Second)
	if got, err := c.QueryRange(t.Context(), "up", window); err != nil || len(got) != 0 || asked != 1 {
		t.Errorf("a window without points was asked for: %v, %v", got, err)
	}
}

func FuzzParseMatrix(f *testing.F) {
	for _, seed := range []string{matrixOf(row(`"a":"b"`, "1", "NaN")), matrixOf(), `{"status":"error","error":"x"}`, "null", "[]", `{"status":"success","data":{"resultType":"matrix","result":null}}`} {
		f.Add(200, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		got, err := ParseMatrix(source.NewAnswer(Name, status, "", body))
		if err != nil {
			if fault, message := source.FaultOf(err); fault == source.Unreachable || message == "" || len(message) > 256+64 {
				t.Errorf("got %s, %q", fault, message)
			}
			return
		}
		if status != 200 || len(got) > MaxSeries {
			t.Errorf("status %d has %d series", status, len(got))
		}
		for _, s := range got {
			for _, v := range s.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) || len(s.Values) > effect.MaxPoints {
					t.Errorf("the series has %d points, and one of %v", len(s.Values), v)
				}
			}
		}
	})
}
