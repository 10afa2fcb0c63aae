// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestParsePath(t *testing.T) {
	name := func(key, value string) canon.KeyValue { return canon.KeyValue{Key: key, Value: value} }
	for text, want := range map[string][]canon.Segment{
		"":                        nil,
		"/":                       {canon.Field("")},
		"/spec/replicas":          {canon.Field("spec"), canon.Field("replicas")},
		"/a~1b/c~0d":              {canon.Field("a/b"), canon.Field("c~d")},
		"/l/0":                    {canon.Field("l"), canon.Position(0)},
		"/*/x":                    {canon.Any(), canon.Field("x")},
		"/~2/x":                   {canon.Field("*"), canon.Field("x")},
		"/a*":                     {canon.Field("a*")},
		"/~3name=a]":              {canon.Field("[name=a]")},
		"/c/[name=app]":           {canon.Field("c"), canon.Element(name("name", "app"))},
		"/p/[port=80,protocol=T]": {canon.Field("p"), canon.Element(name("port", "80"), name("protocol", "T"))},
		"/p/[port=80,protocol=]":  {canon.Field("p"), canon.Element(name("port", "80"), name("protocol", ""))},
		"/s/[=NET_RAW]":           {canon.Field("s"), canon.Element(name("", "NET_RAW"))},
		"/m/[mountPath=~1a=b]":    {canon.Field("m"), canon.Element(name("mountPath", "/a=b"))},
		"/m/[a~6b=c~5d~4]":        {canon.Field("m"), canon.Element(name("a=b", "c,d]"))},
	} {
		t.Run(text, func(t *testing.T) {
			got := path(t, text)
			if diff := cmp.Diff(want, got.Segments()); diff != "" {
				t.Errorf("segments (-want +got):\n%s", diff)
			}
			if got.String() != text {
				t.Errorf("String() is %q, want %q", got.String(), text)
			}
		})
	}
}

func TestParsePathRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a path without the first slash": "spec",
		"a lone tilde":                   "/a~",
		"an unknown escape":              "/a~7",
		"an escape that is no digit":     "/a~x",
		"an unclosed selector":           "/[name=a",
		"an empty selector":              "/[]",
		"a selector without =":           "/[name]",
		"a bad escape in a selector":     "/[name=~9]",
		"a bad escape in a key":          "/[~9=a]",
		"five keys":                      "/[a=1,b=2,c=3,d=4,e=5]",
		"65 segments":                    strings.Repeat("/a", 65),
		"1025 bytes":                     "/" + strings.Repeat("a", 1024),
		"bad UTF-8":                      "/\xff",
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := canon.ParsePath(text); err == nil {
				t.Errorf("%q was read as %q, want an error", text, p)
			} else if len(err.Error()) > 400 {
				t.Errorf("the message has %d bytes: %s", len(err.Error()), err)
			}
		})
	}
}

func TestPathBounds(t *testing.T) {
	for _, text := range []string{strings.Repeat("/a", 64), "/" + strings.Repeat("a", 1023)} {
		p := path(t, text)
		if _, fits := p.Child(canon.Field("x")); fits {
			t.Errorf("a child of a path of %d segments and %d bytes fits", p.Len(), len(text))
		}
	}
}

func drawSegment(t *rapid.T) canon.Segment {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("a1~/*[],=é ")), 0, 4, -1)
	switch rapid.IntRange(0, 3).Draw(t, "segment") {
	case 0:
		return canon.Any()
	case 1:
		keys := make([]canon.KeyValue, rapid.IntRange(1, 4).Draw(t, "keys"))
		for i := range keys {
			keys[i] = canon.KeyValue{Key: text.Draw(t, "key"), Value: text.Draw(t, "value")}
		}
		return canon.Element(keys...)
	default:
		return canon.Field(text.Draw(t, "name"))
	}
}

func drawPath(t *rapid.T) canon.Path {
	segments := rapid.SliceOfN(rapid.Custom(drawSegment), 0, 5).Draw(t, "segments")
	p, _ := canon.NewPath(segments...)
	return p
}

func TestPathTextRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPath(t)
		again, err := canon.ParsePath(p.String())
		if err != nil {
			t.Fatalf("%q: %v", p, err)
		}
		if !again.Equal(p) || again.Compare(p) != 0 {
			t.Errorf("%q was read back as %q", p, again)
		}
	})
}

func TestPathRelations(t *testing.T) {
	for name, tc := range map[string]struct {
		p, q             string
		covers, overlaps bool
	}{
		"itself":                          {"/a/b", "/a/b", true, true},
		"a descendant":                    {"/a", "/a/b", true, true},
		"an ancestor":                     {"/a/b", "/a", false, true},
		"a sibling":                       {"/a/b", "/a/c", false, false},
		"a name that only begins alike":   {"/a", "/ab", false, false},
		"everything":                      {"", "/a", true, true},
		"a wildcard over a name":          {"/a/*/c", "/a/b/c/d", true, true},
		"a wildcard over an element":      {"/a/*", "/a/[name=x]", true, true},
		"a name under a wildcard":         {"/a/b", "/a/*", false, true},
		"an element of the same key":      {"/a/[name=x]", "/a/[name=x]/b", true, true},
		"an element of another key":       {"/a/[name=x]", "/a/[name=y]", false, false},
		"fewer keys":                      {"/a/[port=80]", "/a/[port=80,protocol=TCP]", true, true},
		"more keys":                       {"/a/[port=80,protocol=TCP]", "/a/[port=80]", false, true},
		"keys that may meet":              {"/a/[x=1]", "/a/[y=2]", false, true},
		"a position and an element":       {"/a/0", "/a/[name=x]", false, false},
		"wildcards in the same place":     {"/*", "/*/b", true, true},
		"two elements that exclude other": {"/a/[x=1,y=1]", "/a/[y=2]", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, q := path(t, tc.p), path(t, tc.q)
			if got := p.Covers(q); got != tc.covers {
				t.Errorf("Covers is %v, want %v", got, tc.covers)
			}
			if a, b := p.Overlaps(q), q.Overlaps(p); a != tc.overlaps || b != tc.overlaps {
				t.Errorf("Overlaps is %v and %v, want %v", a, b, tc.overlaps)
			}
		})
	}
}

func TestPathRelationsAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := drawPath(t), drawPath(t)
		if !p.Covers(p) || !p.Parent().Covers(p) {
			t.Errorf("%q does not cover itself, or is not covered by its parent", p)
		}
		if p.Covers(q) && !p.Overlaps(q) {
			t.Errorf("%q covers %q, but does not overlap it", p, q)
		}
		if p.Compare(q) != -q.Compare(p) || (p.Compare(q) == 0) != p.Equal(q) {
			t.Errorf("Compare of %q and %q is %d and %d", p, q, p.Compare(q), q.Compare(p))
		}
	})
}

func TestPathStandsInJSONAsText(t *testing.T) {
	want := map[string]canon.Path{"p": path(t, "/a/[name=x]/*")}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]canon.Path
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("path through %s (-want +got):\n%s", text, diff)
	}
	if err := json.Unmarshal([]byte(`{"p":"x"}`), &got); err == nil {
		t.Error("a bad path was read from JSON")
	}
}

func TestTheLastSegmentOfTheRootIsNone(t *testing.T) {
	for text, want := range map[string]canon.Segment{
		"": {}, "/spec": canon.Field("spec"), "/spec/l/0": canon.Position(0),
	} {
		if got := path(t, text).Last(); !got.Equal(want) {
			t.Errorf("that of %q is %v, want %v", text, got, want)
		}
	}
}
