// SPDX-License-Identifier: Apache-2.0

package login

import (
	"net/url"
	"strings"
	"testing"
)

// Whatever a link has, the path to return to is one of this server, also for browsers, which read "\" as "/".
func FuzzPathOf(f *testing.F) {
	for _, back := range []string{"/plans?a=b#c", "//evil.example", `/\evil.example`, "/%2f/evil.example", "/\t/evil.example", "https:evil.example", "/login", "/..//evil.example", "/%zz"} {
		f.Add(back)
	}
	ours := &url.URL{Scheme: "https", Host: "ours.example", Path: "/login"}
	f.Fuzz(func(t *testing.T, back string) {
		path := pathOf(back)
		to, err := ours.Parse(path)
		if err != nil {
			t.Fatalf("%q: %v", back, err)
		}
		if to.Scheme != ours.Scheme || to.Host != ours.Host || to.User != nil || strings.HasPrefix(to.Path, "//") {
			t.Errorf("%q leads to %s", back, to)
		}
		if path[0] != '/' || len(path) > 1 && (path[1] == '/' || path[1] == '\\') || strings.ContainsAny(path, "\\\t\r\n") {
			t.Errorf("%q leads to %q", back, path)
		}
	})
}
