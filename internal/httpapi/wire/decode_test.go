// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strings"
	"testing"
)

func TestABodyIsRefusedByName(t *testing.T) {
	nested := func(depth int) string {
		return `{"selector":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + "}"
	}
	tests := map[string]struct{ body, want string }{
		"an unknown field":                     {`{"policyId":"a","target":[]}`, `unknown field "target"`},
		"a field in another case of letters":   {`{"policyID":"a"}`, `unknown field "policyID"`},
		"a field within a list":                {`{"policy":{"notifications":{"channels":[{"typ":"slack"}]}}}`, `unknown field "policy.notifications.channels[0].typ"`},
		"two unknown fields":                   {`{"a":1,"b":2}`, "unknown field \"a\"\nunknown field \"b\""},
		"a field twice":                        {`{"policyId":"a","policyId":"b"}`, `duplicate field "policyId"`},
		"a word that is none":                  {`{"policy":{"trigger":"age"}}`, `"age" is not one of immediate, scheduled, age_threshold, severity_escalation, manual`},
		"a duration that is none":              {`{"policy":{"cooldownPeriod":"5 minutes"}}`, `"5 minutes" is no duration such as 00:15:00, 15m or PT15M: it has another form`},
		"no body":                              {``, "the body is empty"},
		"a list":                               {`[]`, "the body is not one JSON object"},
		"a null":                               {`null`, "the body is not one JSON object"},
		"two objects":                          {`{} {}`, "the body is not one JSON object"},
		"an object that does not end":          {`{"policyId":`, "the body ends early"},
		"a body that is nested as deep as may": {nested(MaxDepth), `unknown field "selector"`},
		"a body that is nested deeper":         {nested(MaxDepth + 1), "the body is nested more than 32 deep"},
		"a body that is too large":             {`{"policyId":"` + strings.Repeat("a", MaxBytes) + `"}`, ErrTooLarge.Error()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Decode[PreviewRequest]([]byte(tc.body))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// fuzzDecoder feeds a decoder. What it takes is written, and is read as it was written. The seeds are bodies, and
// names of golden files.
func fuzzDecoder[T any](f *testing.F, seeds ...string) {
	f.Helper()
	f.Add([]byte(`{}`))
	known := objects(f)
	for _, seed := range seeds {
		if object, isName := known[seed]; isName {
			body, err := encode(object.value)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(body)
			continue
		}
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		value, err := Decode[T](body)
		if err != nil {
			return
		}
		first, err := encode(value)
		if err != nil {
			t.Fatalf("a body is taken and cannot be shown: %v", err)
		}
		again, err := Decode[T](first)
		if err != nil {
			t.Fatalf("%s\nis not read again: %v", first, err)
		}
		if second, err := encode(again); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s\nbecomes (%v)\n%s", first, err, second)
		}
	})
}

func FuzzDecodePolicy(f *testing.F)   { fuzzDecoder[Policy](f, "policy") }
func FuzzDecodeRelease(f *testing.F)  { fuzzDecoder[Release](f, "release") }
func FuzzDecodeStrategy(f *testing.F) { fuzzDecoder[Strategy](f, "strategy") }
func FuzzDecodePlan(f *testing.F)     { fuzzDecoder[Plan](f, "plan") }
func FuzzDecodeResult(f *testing.F)   { fuzzDecoder[Result](f, "history") }
func FuzzDecodeEvidence(f *testing.F) { fuzzDecoder[Evidence](f, "evidence") }

func FuzzDecodePreview(f *testing.F) {
	fuzzDecoder[PreviewRequest](f, `{"policyId":"a","targets":["shop.web"]}`, `{"policy":{"name":"a","cooldownPeriod":"PT5M"}}`)
}

func FuzzDecodeExecute(f *testing.F) {
	fuzzDecoder[ExecuteRequest](f, `{"policyId":"a","targets":["shop.web","shop.api"],"reason":"INC-9"}`)
}

func FuzzDecodeAdvance(f *testing.F) {
	fuzzDecoder[AdvanceRequest](f, `{"stageNumber":2,"reason":"a"}`, `{"stageNumber":null}`, `{"stageNumber":1e0}`)
}

func FuzzDecodePromote(f *testing.F) { fuzzDecoder[PromoteRequest](f, `{"variation":"B"}`) }

func FuzzDecodeReason(f *testing.F) { fuzzDecoder[ReasonRequest](f, "{\"reason\":\"\\ud800\\u0000\"}") }

func FuzzDecodeActivate(f *testing.F) {
	fuzzDecoder[ActivateRequest](f, `{"groups":[]}`, `{"groups":null}`, `{"groups":["sre"],"reason":"a"}`)
}

func FuzzDecodeAccept(f *testing.F) { fuzzDecoder[AcceptRequest](f, `{"hash":"pl2:aa","reason":"a"}`) }

// FuzzLocate looks for fields of any name. Each is located within the body.
func FuzzLocate(f *testing.F) {
	for _, field := range []string{"", "spec", "spec.safety.maxPerHour", "spec.variations[1].name", "spec.rollout.strategy.stages[0].duration", "spec.trafficSplit.sticky.domain", "..[", "spec.[]."} {
		f.Add(field)
	}
	f.Fuzz(func(t *testing.T, field string) {
		for _, locate := range []func(string) string{LocatePolicy, LocateRelease, LocateVerb} {
			if location := locate(field); location != body && !strings.HasPrefix(location, body+".") {
				t.Errorf("%q is located at %q", field, location)
			}
		}
	})
}
