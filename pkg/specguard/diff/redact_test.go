// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

func TestRedact(t *testing.T) {
	const eight = `"[redacted, ≤8 bytes]"`
	for name, tc := range map[string]struct{ path, value, want string }{
		"an ordinary value":            {inApp + "/image", `"a:1"`, `"a:1"`},
		"an ordinary env var":          {inApp + "/env/[name=LEVEL]/value", `"debug"`, `"debug"`},
		"an env var of a password":     {inApp + "/env/[name=DB_PASSWORD]/value", `"hunter2"`, eight},
		"an env var of a key":          {inApp + "/env/[name=STRIPE_KEY]/value", `"sk_1"`, eight},
		"an env var in camel case":     {inApp + "/env/[name=githubToken]/value", `"x"`, eight},
		"an env var in one word":       {inApp + "/env/[name=PGPASSWORD]/value", `"x"`, eight},
		"a word that only looks alike": {inApp + "/env/[name=MONKEY]/value", `"x"`, `"x"`},
		"an env var that came": {
			inApp + "/env/[name=API_TOKEN]", `{"name":"API_TOKEN","value":"x"}`, `{"name":"API_TOKEN","value":` + eight + `}`,
		},
		"a reference to a secret": {
			inApp + "/env/[name=API_TOKEN]", `{"name":"API_TOKEN","valueFrom":{"secretKeyRef":{"key":"token","name":"api"}}}`,
			`{"name":"API_TOKEN","valueFrom":{"secretKeyRef":{"key":"token","name":"api"}}}`,
		},
		"a whole container": {
			inApp, `{"env":[{"name":"A","value":"1"},{"name":"SECRET","value":"2"}],"name":"app"}`,
			`{"env":[{"name":"A","value":"1"},{"name":"SECRET","value":` + eight + `}],"name":"app"}`,
		},
		"a header of a probe": {
			inApp + "/livenessProbe/httpGet/httpHeaders", `[{"name":"Authorization","value":"Bearer"},{"name":"Host","value":"h"}]`,
			`[{"name":"Authorization","value":` + eight + `},{"name":"Host","value":"h"}]`,
		},
		"flags": {
			inApp + "/args", `["--level=3","--password=x","--api-token","y","--verbose","z","password=q"]`,
			`["--level=3","--password=[redacted, ≤8 bytes]","--api-token",` + eight + `,"--verbose","z","password=[redacted, ≤8 bytes]"]`,
		},
		"a word that is no flag hides nothing": {inApp + "/args", `["rotate","token","web"]`, `["rotate","token","web"]`},
		"a flag followed by a flag":            {inApp + "/args", `["--password","--verbose"]`, `["--password","--verbose"]`},
		"a URL with a password": {
			inApp + "/env/[name=DB]/value", `"postgres://u:p@db/x"`, `"[redacted, ≤32 bytes]"`,
		},
		"a URL without one": {inApp + "/env/[name=DB]/value", `"postgres://u@db:5432/x"`, `"postgres://u@db:5432/x"`},
		"the content of a Secret or ConfigMap": {
			"/data/config.yaml", `"a: b"`, eight,
		},
		"all of it":                {"/stringData", `{"a":"b","c":""}`, `{"a":` + eight + `,"c":"[redacted, empty]"}`},
		"a member of a custom one": {"/spec/db/password", `"x"`, eight},
		"one below":                {"/spec/db", `{"password":"x","privateKey":"y","secretName":"z","topologyKey":"k"}`, `{"password":` + eight + `,"privateKey":` + eight + `,"secretName":"z","topologyKey":"k"}`},
		"a volume of a secret":     {inPod + "/volumes/[name=v]/secret", `{"secretName":"s"}`, `{"secretName":"s"}`},
		"last applied": {
			"/spec/template/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration", `"{}"`, eight,
		},
		"last applied among others": {
			"/spec/template/metadata/annotations", `{"a":"1","kubectl.kubernetes.io/last-applied-configuration":"{}"}`,
			`{"a":"1","kubectl.kubernetes.io/last-applied-configuration":` + eight + `}`,
		},
		"a number that is a secret": {inApp + "/env/[name=PASSWORD]/value", `1234`, eight},
		"a long one":                {inApp + "/env/[name=PASSWORD]/value", `"` + strings.Repeat("x", 300) + `"`, `"[redacted, >256 bytes]"`},
		"what is no JSON":           {inApp, `{"password":`, `"[redacted, ≤16 bytes]"`},
	} {
		t.Run(name, func(t *testing.T) {
			change := diff.Change{Path: path(t, tc.path), Op: diff.Changed, Before: []byte(tc.value), After: []byte(tc.value)}
			got := diff.Redact(change)
			if d := cmp.Diff([]string{tc.want, tc.want}, []string{string(got.Before), string(got.After)}); d != "" {
				t.Errorf("values (-want +got):\n%s", d)
			}
			if string(change.Before) != tc.value {
				t.Errorf("the argument was changed to %s", change.Before)
			}
		})
	}
}

func TestRedactLeavesAbsentValuesAbsent(t *testing.T) {
	got := diff.Redact(diff.Change{Path: path(t, "/data/a"), Op: diff.Removed, Before: []byte(`"x"`)})
	if got.After != nil || got.Before == nil {
		t.Errorf("values are %q and %q", got.Before, got.After)
	}
}

func TestRedactedValuesNeverHoldTheSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Z0-9]{12}`).Draw(t, "secret")
		word := rapid.SampledFrom([]string{"PASSWORD", "api_token", "dbPassword", "CLIENT_SECRET", "x-api-key", "AUTH"}).Draw(t, "word")
		quoted := `"` + secret + `"`
		value := rapid.SampledFrom([]string{
			`{"name":"` + word + `","value":` + quoted + `}`,
			`[{"env":[{"name":"` + word + `","value":` + quoted + `}]}]`,
			`["--` + word + `=` + secret + `"]`,
			`["--` + word + `",` + quoted + `]`,
			`{"a":["https://me:` + secret + `@host/"]}`,
			`{"password":` + quoted + `,"b":{"token":` + quoted + `}}`,
		}).Draw(t, "value")
		p, _ := canon.NewPath(canon.Field("spec"))
		got := diff.Redact(diff.Change{Path: p, Op: diff.Added, After: []byte(value)})
		if bytes.Contains(got.After, []byte(secret)) {
			t.Errorf("%s became %s", value, got.After)
		}
		if !json.Valid(got.After) {
			t.Errorf("%s became no JSON: %s", value, got.After)
		}
	})
}

func TestTruncate(t *testing.T) {
	for name, tc := range map[string]struct {
		value string
		limit int
		want  string
	}{
		"what fits":              {"abc", 3, "abc"},
		"what does not":          {strings.Repeat("x", 40), 30, strings.Repeat("x", 15) + "… (+25 bytes)"},
		"not inside a character": {strings.Repeat("é", 20), 30, strings.Repeat("é", 7) + "… (+26 bytes)"},
		"no room for the end":    {strings.Repeat("x", 40), 10, ""},
		"no room at all":         {"x", 0, ""},
		"a negative room":        {"x", -1, ""},
		"nothing":                {"", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := diff.Truncate([]byte(tc.value), tc.limit); got != tc.want {
				t.Errorf("result is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTruncateNeverExceedsTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value, limit := rapid.String().Draw(t, "value"), rapid.IntRange(-1, 60).Draw(t, "limit")
		got := diff.Truncate([]byte(value), limit)
		if len(got) > max(limit, 0) {
			t.Errorf("result has %d bytes, limit %d: %q", len(got), limit, got)
		}
		if strings.ContainsRune(got, '\ufffd') && !strings.ContainsRune(value, '\ufffd') {
			t.Errorf("result %q cuts a character", got)
		}
	})
}

func TestTruncateText(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"what fits":              {"abcd", 4, "abcd"},
		"what does not":          {"abcde", 4, "a…"},
		"not inside a character": {"é漢😀", 7, "é…"},
		"an edge is kept":        {"é漢😀x", 8, "é漢…"},
		"room for the end alone": {"abcd", 3, "…"},
		"no room for the end":    {"abcd", 2, ""},
		"no room at all":         {"x", 0, ""},
		"a negative room":        {"x", -1, ""},
		"nothing":                {"", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := diff.TruncateText(tc.text, tc.limit); got != tc.want {
				t.Errorf("result is %q, want %q", got, tc.want)
			}
		})
	}
}

// The twin takes rune by rune for as long as there is room.
func TestTruncateTextKeepsAsManyRunesAsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, limit := rapid.String().Draw(t, "text"), rapid.IntRange(3, 60).Draw(t, "limit")
		want := text
		if len(text) > limit {
			want = ""
			for _, r := range text {
				if len(want)+len(string(r))+len("…") > limit {
					break
				}
				want += string(r)
			}
			want += "…"
		}
		if got := diff.TruncateText(text, limit); got != want {
			t.Errorf("result is %q, want %q", got, want)
		}
	})
}
