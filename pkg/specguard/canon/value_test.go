// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

const sampleBody = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","annotations":{"a\n":"\u0041"}},` +
	`"spec":{"clusterIP":"10.0.0.1","x":null,"ports":[{"port":443,"protocol":"TCP"},{"port":80.0}],"on":true}}`

func TestValueReadsTheWholeObject(t *testing.T) {
	root := parse(t, []byte(sampleBody), service).Root()
	spec := root.Get("spec")
	got := map[string]any{
		"name":              root.Get("metadata").Get("name").Text(),
		"decoded value":     root.Get("metadata").Get("annotations").Get("a\n").Text(),
		"decoded key":       string(root.Get("metadata").Get("annotations").Index(0).Key()),
		"first port":        spec.Get("ports").Index(0).Get("port").Text(),
		"canonical number":  string(spec.Get("ports").Index(1).Get("port").Bytes()),
		"kinds":             []canon.Kind{root.Kind(), spec.Get("x").Kind(), spec.Get("on").Kind(), spec.Get("ports").Kind(), spec.Get("none").Kind()},
		"lengths":           []int{spec.Len(), spec.Get("ports").Len(), spec.Get("on").Len()},
		"raw":               string(spec.Get("ports").Index(1).Raw()),
		"canonical element": string(spec.Get("ports").Index(1).AppendCanonical([]byte("="))),
	}
	want := map[string]any{
		"name": "web", "decoded value": "A", "decoded key": "a\n", "first port": "443", "canonical number": "80",
		"kinds":   []canon.Kind{canon.Map, canon.Null, canon.Bool, canon.List, canon.Absent},
		"lengths": []int{4, 2, 0}, "raw": `{"port":80.0}`, "canonical element": `={"port":80}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestValueTellsWhatTheHashCovers(t *testing.T) {
	d := parse(t, []byte(sampleBody), service)
	root := d.RootWithout(path(t, "/spec/on"))
	for p, want := range map[string]bool{
		"/spec": true, "/metadata": false, "/apiVersion": false, "/kind": false, "/spec/clusterIP": false,
		"/spec/x": false, "/spec/on": false, "/spec/ports": true, "/none": false,
	} {
		if got := root.Follow(path(t, p)).Covered(); got != want {
			t.Errorf("%s is covered: %v, want %v", p, got, want)
		}
	}
	if !root.Follow(path(t, "/spec/clusterIP")).Allocated() || root.Follow(path(t, "/spec/on")).Allocated() {
		t.Error("clusterIP must be allocated, and what is merely excluded must not")
	}
	for _, body := range []string{"{}", `{"spec":{"clusterIP":"10.0.0.1"}}`} {
		if d := parse(t, []byte(body), service); !d.Root().Covered() || !d.RootWithout(path(t, "/spec")).Covered() {
			t.Errorf("the root of %s is not covered", body)
		}
	}
	if !d.Root().Follow(path(t, "/spec/on")).Covered() {
		t.Error("an exclusion in one view shows in another")
	}
}

func TestFollow(t *testing.T) {
	root := parse(t, []byte(sampleBody), service).Root()
	for p, want := range map[string]string{
		"/spec/ports/[port=80,protocol=]/port": "80",
		"/spec/ports/[port=443]/protocol":      "TCP",
		"/spec/ports/1/port":                   "80",
		"/spec/ports/2/port":                   "",
		"/spec/ports/*/port":                   "", // two
		"/metadata/annotations/*":              "A",
		"/spec/ports/port":                     "",
		"/spec/on/x":                           "",
	} {
		if got := root.Follow(path(t, p)).Text(); got != want {
			t.Errorf("%s is %q, want %q", p, got, want)
		}
	}
}

func TestAbsentValuesAnswerEverything(t *testing.T) {
	var v canon.Value
	if v.Exists() || v.Covered() || v.Allocated() || v.Len() != 0 || v.Key() != nil || v.Bytes() != nil || v.Raw() != nil ||
		v.Text() != "" || v.Mode() != canon.Atomic || v.Get("x").Index(3).Exists() || v.AppendCanonical(nil) != nil {
		t.Error("the zero Value is not absent in every way")
	}
	if !v.Equal(canon.Value{}) || v.Equal(parse(t, []byte("{}"), custom).Root()) {
		t.Error("absent must equal absent alone")
	}
}

func TestListModes(t *testing.T) {
	body := podSpec(`"initContainers":[{"name":"i"}],"tolerations":[{}],"containers":[{"name":"a","env":[{"name":"A"}],` +
		`"restartPolicyRules":[{"exitCodes":{"values":[1]}}]},{"name":"b","env":[{"name":"B","value":"$(A)"}],"ports":[{"containerPort":1}]}]`)
	spec := parse(t, []byte(body), deployment).Root().Follow(path(t, "/spec/template/spec"))
	for p, want := range map[string]struct {
		mode    canon.ListMode
		segment string
	}{
		"/initContainers":          {canon.KeyedOrdered, "[name=i]"},
		"/containers":              {canon.Keyed, "[name=a]"},
		"/tolerations":             {canon.Atomic, "0"},
		"/containers/[name=a]/env": {canon.Keyed, "[name=A]"},
		"/containers/[name=b]/env": {canon.KeyedOrdered, "[name=B]"},
		"/containers/1/ports":      {canon.Keyed, "[containerPort=1,protocol=]"},
		"/containers/0/restartPolicyRules/0/exitCodes/values": {canon.Set, "[=1]"},
	} {
		list := spec.Follow(path(t, p))
		if list.Mode() != want.mode || list.ElementSegment(0).String() != want.segment {
			t.Errorf("%s has mode %d and segment %s, want %d and %s", p, list.Mode(), list.ElementSegment(0), want.mode, want.segment)
		}
	}
}

func TestParseHash(t *testing.T) {
	digits := strings.Repeat("0123456789abcdef", 4)
	for text, want := range map[string]canon.Algorithm{
		"pl1:sha256:" + digits:       canon.PL1,
		"sha256:" + digits:           canon.DDEM002,
		"pl2:sha256:" + digits:       canon.PL2,
		"pl3:sha256:" + digits:       "",
		"pl2:sha256:":                "",
		"PL1:sha256:" + digits:       "",
		"pl1:sha256:" + digits[1:]:   "",
		"sha256:" + digits + "0":     "",
		"sha256:" + "A" + digits[1:]: "",
		digits:                       "",
		"":                           "",
	} {
		h, err := canon.ParseHash(text)
		if (err == nil) != (want != "") {
			t.Errorf("parsing %q: %v", text, err)
		}
		if err == nil && (string(h) != text || h.Algorithm() != want) {
			t.Errorf("%q was read as %q of %q", text, h, h.Algorithm())
		}
		if got := canon.Hash(text).Algorithm(); got != want {
			t.Errorf("algorithm of %q is %q, want %q", text, got, want)
		}
	}
}

func TestHashesOfEitherAlgorithmParse(t *testing.T) {
	for _, h := range []canon.Hash{bodyHash(t, "{}", custom), specHash(t, "{}")} {
		if _, err := canon.ParseHash(string(h)); err != nil {
			t.Error(err)
		}
	}
}

// The encoder hands a large object to the hash in parts, but appends it to a slice whole.
func TestTheCanonicalFormOfALargeObjectIsAppendedWhole(t *testing.T) {
	var unsorted, want strings.Builder
	const count = 5_000
	for i := range count {
		fmt.Fprintf(&unsorted, `,"k%05d":{"b":1.0, "a":"x"}`, count-i)
		fmt.Fprintf(&want, `,"k%05d":{"a":"x","b":1}`, i+1)
	}
	body := `{"spec":{` + unsorted.String()[1:] + `}}`
	got := string(parse(t, []byte(body), canon.ParseGVK("shop.example/v1", "Shop")).Root().AppendCanonical([]byte("=")))
	if got != `={"spec":{`+want.String()[1:]+`}}` {
		t.Errorf("%d bytes, want %d: %.200s", len(got), want.Len(), got)
	}
}
