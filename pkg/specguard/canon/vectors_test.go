// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// vectorsFile is published beside the specification. UPDATE_GOLDEN=1 writes it.
const vectorsFile = "../../../docs/reference/canonical-hash-vectors.json"

type vectors struct {
	PL1      []bodyVector    `json:"pl1"`
	PL2      []bodyVector    `json:"pl2"`
	DDEM002  []ddem002Vector `json:"ddem002"`
	Errors   []errorVector   `json:"errors"`
	Closures []closureVector `json:"closures"`
}

type bodyVector struct {
	Name      string     `json:"name"`
	Group     string     `json:"group"`
	Version   string     `json:"version"`
	Kind      string     `json:"kind"`
	Body      string     `json:"body"`
	Exclude   []string   `json:"exclude,omitempty"`
	Canonical string     `json:"canonical"`
	Hash      canon.Hash `json:"hash"`
}

type ddem002Vector struct {
	Name       string     `json:"name"`
	Spec       string     `json:"spec,omitempty"`
	SpecBase64 string     `json:"specBase64,omitempty"`
	Hash       canon.Hash `json:"hash"`
}

type errorVector struct {
	Name       string       `json:"name"`
	Body       string       `json:"body,omitempty"`
	BodyBase64 string       `json:"bodyBase64,omitempty"`
	Reason     canon.Reason `json:"reason"`
	Offset     int          `json:"offset"`
}

var bodyInputs = []struct {
	name    string
	gvk     canon.GVK
	body    string
	exclude []string
}{
	{"empty object", custom, `{}`, nil},
	{"uncovered members", deployment, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{},"status":{}}`, nil},
	{"keys by UTF-8 bytes", custom, `{"spec":{"é":1,"z":2,"a":3,"":4,"😀":5,"｡":6,"a\u0000":7}}`, nil},
	{"white space", custom, " {\t\"spec\" :\r\n{ } } ", nil},
	{"null members", deployment, `{"spec":{"a":null,"b":[null],"c":{"d":null}}}`, nil},
	{"null members of a custom kind", custom, `{"spec":{"a":null,"b":[null],"c":{"d":null}},"metadata":null}`, nil},
	{"exclude null", custom, `{"spec":{"a":null,"b":{"c":null}}}`, []string{"/spec/a", "/spec/b/c"}},
	{"escapes", custom, `{"spec":"\u0000\b\t\n\u000b\f\r\u001f\u007f\"\\\/<>&\u2028\u00e9\ud83d\ude00"}`, nil},
	{"integers", custom, `{"spec":[0,-0,1,-1,9007199254740993,18446744073709551616,999999999999999999999,1000000000000000000000]}`, nil},
	{"decimals", custom, `{"spec":[1.0,1e0,1.50,0.1,-0.10e1,12.34E+1,0.000001,0.0000001,123456789012345678901.5]}`, nil},
	{"exponents", custom, `{"spec":[1e20,1e21,1e999999999,1e-999999999,0e999999999,1234567890123456789012]}`, nil},
	{"lists of unknown kinds", custom, `{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}`, nil},
	{"keyed lists", deployment, podSpec(`"containers":[{"name":"b","ports":[{"containerPort":53,"protocol":"UDP"},{"containerPort":53,"protocol":"TCP"},{"containerPort":100},{"containerPort":53}]},{"name":"a"}]`), nil},
	{"kinds of keys", deployment, podSpec(`"volumes":[{"name":"a"},{"name":10},{"name":9},{"name":true},{"name":false},{"name":null},{"x":1},{"name":""}]`), nil},
	{"equal keys keep their order", deployment, podSpec(`"volumes":[{"name":"b"},{"name":"a","x":2},{"name":"a","x":1}]`), nil},
	{"a misfit keeps the order", deployment, podSpec(`"volumes":[{"name":"b"},"a"]`), nil},
	{"init containers", deployment, podSpec(`"initContainers":[{"name":"b","env":[{"name":"B"},{"name":"A"}]},{"name":"a"}]`), nil},
	{"env without reference", deployment, container(`"env":[{"name":"B","value":"$A"},{"name":"A","value":"("}]`), nil},
	{"env with reference", deployment, container(`"env":[{"name":"B","value":"\u0024(A)"},{"name":"A","value":"1"}]`), nil},
	{"sets", pod, podSet(`[20,3,"a",null,true,3.0]`), nil},
	{"Service allocations", service, `{"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","healthCheckNodePort":1,"ports":[{"port":80,"nodePort":30000}]}}`, nil},
	{"Service choices", service, `{"spec":{"clusterIP":"None","clusterIPs":["None"],"ipFamilyPolicy":"PreferDualStack"}}`, nil},
	{"Job labels", job, `{"spec":{"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"u"}},"template":{"metadata":{"creationTimestamp":null,"labels":{"controller-uid":"u","job-name":"j"}},"spec":{}}}}`, nil},
	{"exclude fields", deployment, `{"spec":{"replicas":3,"paused":true,"template":{"metadata":{"annotations":{"a/b":"1"}}}}}`, []string{"/spec/replicas", "/spec/template/metadata/annotations/a~1b", "/spec/nosuch"}},
	{"exclude elements", deployment, podSpec(`"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"},{"name":"c"}]`), []string{"/spec/template/spec/containers/[name=a]", "/spec/template/spec/containers/*/image"}},
	{"exclude by two keys, and by position", service, `{"spec":{"ports":[{"port":80,"targetPort":1},{"port":8e1,"protocol":"UDP","targetPort":2}],"x":["a","b"]}}`, []string{"/spec/ports/[port=80,protocol=]/targetPort", "/spec/x/0"}},
	{"exclude set elements", pod, podSet(`[2,1]`), []string{"/spec/containers/*/restartPolicyRules/0/exitCodes/values/[=1]"}},
	{"exclude everything", custom, `{"spec":1}`, []string{""}},
}

var ddem002Inputs = []struct{ name, spec string }{
	{"no bytes", ""},
	{"null", "null"},
	{"empty map", "{}"},
	{"null member", `{"a":null}`},
	{"lists and maps", `{"l":[{"b":1,"a":[2,1]},"s",10,9,[],{},null,true,false],"m":{}}`},
	{"strings", `{"s":"<>&\u2028\u2029\b\f\n\r\t\u0000\"\\/é😀\ud800"}`},
	{"invalid UTF-8", "{\"s\":\"a\xff\"}"},
	{"numbers", `{"n":[1.0,1e3,9007199254740993,9223372036854775807,9223372036854775808,1e20,1e21,0.000001,0.0000001,0.1,-0,-0.0]}`},
	{"duplicate keys", `{"a":{"x":1},"a":{"y":2}}`},
}

func currentVectors(t *testing.T) vectors {
	t.Helper()
	var v vectors
	for _, in := range bodyInputs {
		paths := make([]canon.Path, len(in.exclude))
		for i := range in.exclude {
			paths[i] = path(t, in.exclude[i])
		}
		d := parse(t, []byte(in.body), in.gvk)
		vector := bodyVector{
			Name: in.name, Group: in.gvk.Group, Version: in.gvk.Version, Kind: in.gvk.Kind, Body: in.body, Exclude: in.exclude,
			Canonical: string(d.AppendCanonical(nil, paths...)), Hash: d.Hash(paths...),
		}
		if vector.Hash.Algorithm() == canon.PL2 {
			v.PL2 = append(v.PL2, vector)
		} else {
			v.PL1 = append(v.PL1, vector)
		}
	}
	for _, in := range ddem002Inputs {
		vector := ddem002Vector{Name: in.name, Hash: specHash(t, in.spec)}
		vector.Spec, vector.SpecBase64 = textOrBase64(in.spec)
		v.DDEM002 = append(v.DDEM002, vector)
	}
	for _, name := range slices.Sorted(maps.Keys(invalidBodies)) {
		in := invalidBodies[name]
		vector := errorVector{Name: name, Reason: in.reason, Offset: in.offset}
		vector.Body, vector.BodyBase64 = textOrBase64(in.body)
		v.Errors = append(v.Errors, vector)
	}
	v.Closures = currentClosures(t)
	return v
}

func textOrBase64(s string) (text, encoded string) {
	if utf8.ValidString(s) {
		return s, ""
	}
	return "", base64.StdEncoding.EncodeToString([]byte(s))
}

func TestPublishedVectors(t *testing.T) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(currentVectors(t)); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, vectorsFile, b.Bytes())
}

// The published canonical forms must not rest on one implementation.
func TestPublishedVectorsEqualTheNaiveTwin(t *testing.T) {
	beyond := map[string]bool{ // what the twin leaves out
		"exponents": true, "Service choices": true, "Service allocations": true, "Job labels": true,
		"exclude by two keys, and by position": true, "exclude set elements": true,
	}
	checked := 0
	published := currentVectors(t)
	for _, v := range slices.Concat(published.PL1, published.PL2) {
		if beyond[v.Name] {
			continue
		}
		gvk := canon.GVK{Group: v.Group, Version: v.Version, Kind: v.Kind}
		want, err := naiveCanonical([]byte(v.Body), gvk, v.Exclude...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, v.Canonical); diff != "" {
			t.Errorf("%s (-twin +published):\n%s", v.Name, diff)
		}
		if v.Hash != canon.Hash(naiveHash(want, gvk)) {
			t.Errorf("%s: hash is %s, want %s", v.Name, v.Hash, naiveHash(want, gvk))
		}
		checked++
	}
	if checked != len(bodyInputs)-len(beyond) {
		t.Errorf("%d vectors checked, want all but %d", checked, len(beyond))
	}
}
