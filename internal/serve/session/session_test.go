// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// keyOf is a key of one byte again and again.
func keyOf(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, keySize))
}

func keysOf(t testing.TB, of ...byte) *Keys {
	t.Helper()
	var lines []string
	for _, b := range of {
		lines = append(lines, keyOf(b))
	}
	k, err := ParseKeys([]byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// kept are the cookies that a browser keeps after a value was written.
func kept(t testing.TB, k *Keys, purpose Purpose, value string) []*http.Cookie {
	t.Helper()
	w := httptest.NewRecorder()
	if err := Write(w, k, purpose, now.Add(time.Hour), value); err != nil {
		t.Fatal(err)
	}
	var cookies []*http.Cookie
	for _, c := range w.Result().Cookies() {
		if c.MaxAge >= 0 {
			cookies = append(cookies, c)
		}
	}
	return cookies
}

func requestWith(t testing.TB, cookies ...*http.Cookie) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

func TestKeysAreReadByLines(t *testing.T) {
	whole := keyOf(1)
	for name, tc := range map[string]struct {
		text string
		keys int // 0 for an error
	}{
		"one key":                       {whole, 1},
		"two keys and empty lines":      {"\n" + whole + "\r\n\n " + keyOf(2) + "\n", 2},
		"eight keys":                    {strings.Repeat(whole+"\n", 8), 8},
		"nine keys":                     {strings.Repeat(whole+"\n", 9), 0},
		"no key":                        {"\n", 0},
		"a key of 16 bytes":             {base64.StdEncoding.EncodeToString(make([]byte, 16)), 0},
		"a key of 33 bytes":             {base64.StdEncoding.EncodeToString(make([]byte, 33)), 0},
		"a key in hexadecimal":          {strings.Repeat("ab", 32), 0},
		"a word":                        {"secret", 0},
		"a good key before a short one": {whole + "\nc2hvcnQ=", 0},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := ParseKeys([]byte(tc.text))
			if (err == nil) != (tc.keys > 0) || err == nil && len(*k.ciphers.Load()) != tc.keys {
				t.Errorf("got %v, %v", k, err)
			}
			if err != nil && (strings.Contains(err.Error(), whole) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "c2hv")) {
				t.Errorf("the error shows a key: %v", err)
			}
		})
	}
}

func TestAValueComesBackFromItsCookies(t *testing.T) {
	k := keysOf(t, 1)
	for name, tc := range map[string]struct {
		size, cookies int
	}{"short": {10, 1}, "of a full cookie": {2780, 1}, "of two cookies": {4096, 2}, "of three cookies": {8000, 3}} {
		t.Run(name, func(t *testing.T) {
			want := strings.Repeat("a", tc.size)
			cookies := kept(t, k, Caller, want)
			got, found := Read[string](requestWith(t, cookies...), k, Caller, now)
			if !found || got != want || len(cookies) != tc.cookies {
				t.Errorf("%d bytes of %d cookies came back: %v", len(got), len(cookies), found)
			}
			for _, c := range cookies {
				if len(c.String()) > 4096 {
					t.Errorf("a cookie has %d bytes", len(c.String()))
				}
				if !strings.HasPrefix(c.Name, "__Host-plumbline-session") || c.Path != "/" || c.Domain != "" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode {
					t.Errorf("%+v", c)
				}
				// Random text has four equal letters now and then.
				if strings.Contains(c.Value, strings.Repeat("a", 16)) || strings.Contains(c.Value, strings.Repeat("YWFh", 4)) {
					t.Error("a cookie shows the value")
				}
			}
		})
	}
	if err := Write(httptest.NewRecorder(), k, Caller, now, strings.Repeat("a", 9000)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a value that is too large: %v", err)
	}
}

func TestAShorterValueRemovesTheCookiesOfALongerOne(t *testing.T) {
	k := keysOf(t, 1)
	long := kept(t, k, Caller, strings.Repeat("a", 8000))
	w := httptest.NewRecorder()
	if err := Write(w, k, Caller, now.Add(time.Hour), "short"); err != nil {
		t.Fatal(err)
	}
	removed := map[string]bool{}
	for _, c := range w.Result().Cookies() {
		removed[c.Name] = c.MaxAge < 0
	}
	want := map[string]bool{"__Host-plumbline-session": false, "__Host-plumbline-session-1": true, "__Host-plumbline-session-2": true}
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A browser that has kept the others reads the new value all the same.
	if got, found := Read[string](requestWith(t, w.Result().Cookies()[0], long[1], long[2]), k, Caller, now); !found || got != "short" {
		t.Errorf("got %q, %v", got, found)
	}
}

func TestOlderKeysStillOpenAndTheFirstSeals(t *testing.T) {
	old, rotated, after := keysOf(t, 1), keysOf(t, 2, 1), keysOf(t, 2)
	if got, found := Read[string](requestWith(t, kept(t, old, Caller, "a")...), rotated, Caller, now); !found || got != "a" {
		t.Errorf("a value of the older key: %q, %v", got, found)
	}
	if got, found := Read[string](requestWith(t, kept(t, rotated, Caller, "b")...), after, Caller, now); !found || got != "b" {
		t.Errorf("a value of the first key: %q, %v", got, found)
	}
	if _, found := Read[string](requestWith(t, kept(t, old, Caller, "c")...), after, Caller, now); found {
		t.Error("a key that was removed still opens")
	}
}

func TestAChangedValueIsNoSession(t *testing.T) {
	k := keysOf(t, 1)
	whole := kept(t, k, Caller, strings.Repeat("a", 4096))
	with := func(i int, value string) []*http.Cookie {
		changed := *whole[i]
		changed.Value = value
		cookies := []*http.Cookie{whole[0], whole[1]}
		cookies[i] = &changed
		return cookies
	}
	flow := kept(t, k, Flow, "a")[0]
	flow.Name = nameOf(Caller, 0)
	flip := func(s string, at int) string { return s[:at] + string(s[at]^1) + s[at+1:] }
	for name, cookies := range map[string][]*http.Cookie{
		"no cookie":              nil,
		"the second part alone":  {whole[1]},
		"the first part alone":   {whole[0]},
		"the first part twice":   {whole[0], whole[0], whole[1]},
		"truncated":              with(1, whole[1].Value[:20]),
		"a character more":       with(1, whole[1].Value+"A"),
		"another first byte":     with(0, flip(whole[0].Value, 2)),
		"another byte":           with(1, flip(whole[1].Value, 40)),
		"another count":          with(0, "1"+whole[0].Value[1:]),
		"a count of none":        with(0, "0"+whole[0].Value[1:]),
		"a count below none":     with(0, "-1"+whole[0].Value[1:]),
		"a count of many":        with(0, "9999999999"+whole[0].Value[1:]),
		"no count":               with(0, whole[0].Value[2:]),
		"empty":                  with(0, ""),
		"a dot":                  with(0, "."),
		"no base64":              with(0, "1.!!!!"),
		"of another purpose":     {flow},
		"the parts in one place": {{Name: whole[0].Name, Value: "1." + whole[0].Value[2:] + whole[1].Value + strings.Repeat("A", 8000)}},
	} {
		if got, found := Read[string](requestWith(t, cookies...), k, Caller, now); found {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if _, found := Read[string](requestWith(t, whole...), k, Caller, now.Add(time.Hour-time.Second)); !found {
		t.Error("the value ended early")
	}
	if _, found := Read[string](requestWith(t, whole...), k, Caller, now.Add(time.Hour)); found {
		t.Error("the value outlives its end")
	}
	// A value of another shape is none.
	if _, found := Read[struct{ Token string }](requestWith(t, whole...), k, Caller, now); found {
		t.Error("a text was read as an object")
	}
}

func TestClearRemovesEachCookie(t *testing.T) {
	w := httptest.NewRecorder()
	Clear(w, Caller)
	for _, c := range w.Result().Cookies() {
		if c.MaxAge >= 0 || c.Value != "" || !c.Secure || c.Path != "/" {
			t.Errorf("%+v", c)
		}
	}
	if got := len(w.Result().Cookies()); got != maxParts {
		t.Errorf("%d cookies are removed", got)
	}
}

// Whatever a browser sends, a value comes from the keys or there is none.
func FuzzRead(f *testing.F) {
	k, other := keysOf(f, 1), keysOf(f, 2)
	for _, c := range [][]*http.Cookie{kept(f, k, Caller, "a"), kept(f, k, Caller, strings.Repeat("a", 5000)), kept(f, other, Caller, "a"), kept(f, k, Flow, "a")} {
		second := ""
		if len(c) > 1 {
			second = c[1].Value
		}
		f.Add(c[0].Value, second)
	}
	f.Add("3.", "")
	f.Add("2.AAAA", "=")
	f.Fuzz(func(t *testing.T, first, second string) {
		r := requestWith(t)
		r.Header.Add("Cookie", nameOf(Caller, 0)+"="+first)
		r.Header.Add("Cookie", nameOf(Caller, 1)+"="+second)
		if got, found := Read[string](r, k, Caller, now); found && strings.Trim(got, "a") != "" {
			t.Errorf("%q and %q are read as %q", first, second, got)
		}
	})
}
