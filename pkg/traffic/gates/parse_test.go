// SPDX-License-Identifier: Apache-2.0

package gates_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

func vector(samples ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
}

func sample(at time.Time, value string) string {
	return fmt.Sprintf(`{"metric":{},"value":[%d.123,%q]}`, at.Unix(), value)
}

func TestParsePrometheus(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   float64
		fault  string
	}{
		"a vector of one sample":          {200, vector(sample(noon, "0.25")), 0.25, ""},
		"a scalar":                        {200, `{"status":"success","data":{"resultType":"scalar","result":[1772452800,"-3e2"]}}`, -300, ""},
		"a sample with warnings":          {200, `{"status":"success","warnings":["w"],"data":{"resultType":"vector","result":[` + sample(noon, "1") + `]}}`, 1, ""},
		"an empty vector":                 {200, vector(), 0, "0 samples"},
		"a vector of two samples":         {200, vector(sample(noon, "1"), sample(noon, "1")), 0, "2 samples"},
		"a value that is not a number":    {200, vector(sample(noon, "NaN")), 0, `"NaN"`},
		"an infinite value":               {200, vector(sample(noon, "+Inf")), 0, `"+Inf"`},
		"a negative infinite value":       {200, vector(sample(noon, "-Inf")), 0, `"-Inf"`},
		"a value out of range":            {200, vector(sample(noon, "1e999")), 0, `"1e999"`},
		"a value that is no text":         {200, `{"status":"success","data":{"resultType":"scalar","result":[1772452800,1]}}`, 0, "pair"},
		"a sample that is too old":        {200, vector(sample(noon.Add(-3*time.Minute), "1")), 0, "180 s old"},
		"a sample of the future":          {200, vector(sample(noon.Add(3*time.Minute), "1")), 0, "-180 s old"},
		"a sample at the limit of age":    {200, `{"status":"success","data":{"resultType":"scalar","result":[1772452680,"1"]}}`, 1, ""},
		"a sample beyond the limit":       {200, `{"status":"success","data":{"resultType":"scalar","result":[1772452679.9,"1"]}}`, 0, "120 s old"},
		"a sample of another API":         {200, `{"data":{"resultType":"scalar","result":[1772452800,"1"]}}`, 0, "not one of the API"},
		"a sample with an unknown status": {200, `{"status":"partial","data":{"resultType":"scalar","result":[1772452800,"1"]}}`, 0, "not one of the API"},
		"a matrix":                        {200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, 0, `type "matrix"`},
		"a string":                        {200, `{"status":"success","data":{"resultType":"string","result":[1772452800,"1"]}}`, 0, `type "string"`},
		"an error of Prometheus":          {400, `{"status":"error","errorType":"bad_data","error":"parse\nerror"}`, 0, "answers 400: parse error"},
		"a success with another status":   {503, vector(sample(noon, "1")), 0, "answers 503"},
		"a page of a proxy":               {200, "<html>", 0, "not one of the API"},
		"no body":                         {200, "", 0, "not one of the API"},
		"a sample of one element":         {200, `{"status":"success","data":{"resultType":"scalar","result":[1772452800]}}`, 0, "pair"},
		"a result that is null":           {200, `{"status":"success","data":{"resultType":"vector","result":null}}`, 0, "0 samples"},
		"a sample that is null":           {200, vector("null"), 0, "pair"},
		"an answer that is too long":      {200, vector(sample(noon, "1")) + strings.Repeat(" ", 1<<20), 0, "more than 1048576 bytes"},
		"something behind the answer":     {200, vector(sample(noon, "1")) + "x", 0, "not one of the API"},
		"a redirect":                      {302, "", 0, "answers 302"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := gates.ParsePrometheus(tc.status, []byte(tc.body), noon)
			if (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) || got != tc.want {
				t.Errorf("got %v and %v, want %v and %q", got, err, tc.want, tc.fault)
			}
		})
	}
}

func TestEachFiniteNumberIsReadAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }).Draw(t, "value")
		got, err := gates.ParsePrometheus(200, []byte(vector(sample(noon, fmt.Sprint(want)))), noon)
		if err != nil || got != want {
			t.Errorf("got %v and %v, want %v", got, err, want)
		}
	})
}

func FuzzParsePrometheus(f *testing.F) {
	for _, seed := range []string{vector(), vector(sample(noon, "1")), vector(sample(noon, "NaN")), `{"status":"error","error":"x"}`, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`, "", "null", "[]"} {
		f.Add(200, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		value, err := gates.ParsePrometheus(status, body, noon)
		if math.IsNaN(value) || math.IsInf(value, 0) || err != nil && value != 0 || err == nil && (status != 200 || !json.Valid(body)) {
			t.Errorf("%d %q is %v with %v", status, body, value, err)
		}
	})
}

func TestParseWebhook(t *testing.T) {
	tests := map[string]struct {
		status  int
		body    string
		want    gates.Result
		message string
	}{
		"a pass":                      {200, `{"result":"Pass"}`, gates.Pass, ""},
		"a failure with a message":    {200, `{"result":"Fail","message":"no\u001b way"}`, gates.Fail, "no  way"},
		"a wait":                      {200, ` {"result":"Wait","message":"until Monday"} `, gates.Wait, "until Monday"},
		"a field that is not known":   {200, `{"result":"Pass","more":1}`, gates.Pass, ""},
		"a result in small letters":   {200, `{"result":"pass"}`, gates.Wait, `the result is "pass", want Pass, Fail or Wait`},
		"a result of no data":         {200, `{"result":"NoData"}`, gates.Wait, `the result is "NoData", want Pass, Fail or Wait`},
		"no result":                   {200, `{}`, gates.Wait, `the result is "", want Pass, Fail or Wait`},
		"a body that is null":         {200, `null`, gates.Wait, `the answer is not the JSON object {"result":"Pass|Fail|Wait"}`},
		"a body that is no JSON":      {200, `ok`, gates.Wait, `the answer is not the JSON object {"result":"Pass|Fail|Wait"}`},
		"two objects":                 {200, `{"result":"Pass"}{}`, gates.Wait, `the answer is not the JSON object {"result":"Pass|Fail|Wait"}`},
		"a pass with another status":  {201, `{"result":"Pass"}`, gates.Wait, "the receiver answers 201, want 200"},
		"a failure with an error":     {500, `{"result":"Fail"}`, gates.Wait, "the receiver answers 500, want 200"},
		"an answer that is too long":  {200, `{"result":"Pass"}` + strings.Repeat(" ", 64<<10), gates.Wait, "the answer has more than 65536 bytes"},
		"a message that is no string": {200, `{"result":"Pass","message":1}`, gates.Wait, `the answer is not the JSON object {"result":"Pass|Fail|Wait"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, message := gates.ParseWebhook(tc.status, []byte(tc.body))
			if got != tc.want || message != tc.message {
				t.Errorf("got %s and %q, want %s and %q", got, message, tc.want, tc.message)
			}
		})
	}
}

func FuzzParseWebhook(f *testing.F) {
	for _, seed := range []string{`{"result":"Pass"}`, `{"result":"Fail","message":"x"}`, `{"result":1}`, "null", "", "[]"} {
		f.Add(200, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		result, message := gates.ParseWebhook(status, body)
		if result != gates.Wait && (status != 200 || !json.Valid(body)) || len(message) > 320 || result != gates.Pass && result != gates.Fail && result != gates.Wait {
			t.Errorf("%d %q is %s with %q", status, body, result, message)
		}
	})
}

func TestParseTold(t *testing.T) {
	for status, want := range map[int]gates.Result{199: gates.Wait, 200: gates.Pass, 204: gates.Pass, 299: gates.Pass, 302: gates.Wait, 500: gates.Wait} {
		if got, _ := gates.ParseTold(status); got != want {
			t.Errorf("%d is %s, want %s", status, got, want)
		}
	}
}

func TestTheIDOfAQuestionIsItsOwn(t *testing.T) {
	q := gates.Question{Key: smokeKey, Point: during}
	id := gates.ID("u", q)
	if id != gates.ID("u", q) {
		t.Error("the same question has two ids")
	}
	if !strings.HasPrefix(id, "evt_") || len(id) != 36 {
		t.Errorf("the id is %q", id)
	}
	others := map[string]func(*gates.Question){
		"another webhook": func(q *gates.Question) { q.Name = "smok" }, "another run": func(q *gates.Question) { q.Run = 2 },
		"another event": func(q *gates.Question) { q.Event = gates.BeforeStage }, "another stage": func(q *gates.Question) { q.Stage = 3 },
		"another measurement": func(q *gates.Question) { q.Restart = 1 },
	}
	for name, edit := range others {
		other := q
		if edit(&other); gates.ID("u", other) == id {
			t.Errorf("%s has the same id", name)
		}
	}
	if gates.ID("v", q) == id {
		t.Error("another release has the same id")
	}
}

func TestRequest(t *testing.T) {
	s := gates.Subject{Names: names, UID: "u", From: "pl1:sha256:a", To: "pl1:sha256:b", Reason: "GateFailed", Message: "no"}
	q := gates.Question{Key: smokeKey, Point: gates.Point{Run: 3, Event: gates.AfterRollback}}
	body, err := gates.Request(s, q, noon)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"rollout.after_rollback","timestamp":"2026-03-02T12:00:00Z","data":{"id":"` + gates.ID("u", q) + `","webhook":"smoke","event":"AfterRollback",` +
		`"namespace":"shop","release":"checkout","service":"web","run":3,"canary":{"variation":"green","revision":"pl1:sha256:b"},` +
		`"stable":{"variation":"blue","revision":"pl1:sha256:a"},"reason":"GateFailed","message":"no"}}`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("the body (-want +got):\n%s", diff)
	}
}
