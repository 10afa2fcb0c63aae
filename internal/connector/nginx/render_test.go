// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"bytes"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

var options = Options{Folder: "/plumbline", LogAddress: netip.MustParseAddrPort("127.0.0.1:15514"), KeepaliveMin: 5 * time.Second, Shutdown: time.Hour}

func render(t *testing.T, ports ...envoyxds.Port) Files {
	t.Helper()
	files, err := Render(options, ports)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The files are also what a real nginx is given (test/integration/nginx).
func TestGolden(t *testing.T) {
	for name, ports := range portset.Sets(portset.Differences{Cookie: "a.b-c"}) {
		t.Run(name, func(t *testing.T) {
			files := render(t, ports...)
			var all strings.Builder
			for _, file := range []struct {
				name    string
				content []byte
			}{{MainFile, files.Main}, {RequestFile, files.Request}, {ConfigFile, files.Config}} {
				all.WriteString("-- " + file.name + " --\n" + string(file.content))
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), all.String())
		})
	}
}

func TestOnlyEndpointsWait(t *testing.T) {
	before := render(t, portset.Divided(portset.ByHeader, 500, portset.Force))
	reloaded := time.Unix(1_000, 0)
	for name, tc := range map[string]struct {
		change func(*envoyxds.Port)
		after  time.Duration
		want   time.Duration
	}{
		"an endpoint, at once":         {func(p *envoyxds.Port) { p.Arms[0].Own = portset.Addresses("10.1.0.9:8080") }, 0, time.Second},
		"an endpoint, soon":            {func(p *envoyxds.Port) { p.Arms[0].Own = portset.Addresses("10.1.0.9:8080") }, 300 * time.Millisecond, 700 * time.Millisecond},
		"an endpoint, a second later":  {func(p *envoyxds.Port) { p.Arms[0].Own = portset.Addresses("10.1.0.9:8080") }, time.Second, 0},
		"a clock that was put back":    {func(p *envoyxds.Port) { p.Arms[0].Own = nil }, -time.Hour, time.Second},
		"the last endpoint of an arm":  {func(p *envoyxds.Port) { p.Arms[0].Own, p.Arms[0].Failover = nil, nil }, 0, time.Second},
		"a weight":                     {func(p *envoyxds.Port) { p.Division.Segments = portset.Segments(501) }, 0, 0},
		"a sequence":                   {func(p *envoyxds.Port) { p.Sequence++ }, 0, 0},
		"an endpoint and the sequence": {func(p *envoyxds.Port) { p.Arms[0].Own, p.Sequence = nil, 8 }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := portset.Divided(portset.ByHeader, 500, portset.Force)
			tc.change(&p)
			after := render(t, p)
			if after.Generation == before.Generation {
				t.Error("the generation is the one of before")
			}
			if got := Wait(before, after, reloaded, reloaded.Add(tc.after)); got != tc.want {
				t.Errorf("waits %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhatNginxCannotCarryOutIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*envoyxds.Port)
		want   string
	}{
		"a time-out of requests":          {func(p *envoyxds.Port) { p.Request = time.Second }, "plumbline.dev/request-timeout"},
		"no retries":                      {func(p *envoyxds.Port) { p.RetriesOff = true }, "proxy_next_upstream off"},
		"a cookie with a quote":           {func(p *envoyxds.Port) { p.Division.Key = traffic.Key{Kind: traffic.ByCookie, Name: `a"b`} }, `cookie "a\"b"`},
		"a cookie with a brace":           {func(p *envoyxds.Port) { p.Division.Key = traffic.Key{Kind: traffic.ByCookie, Name: "a}b"} }, `cookie "a}b"`},
		"a cookie with a dollar":          {func(p *envoyxds.Port) { p.Division.Key = traffic.Key{Kind: traffic.ByVisitor, Name: "a$b"} }, `cookie "a$b"`},
		"a header with a line end":        {func(p *envoyxds.Port) { p.Division.Key.Name = "a\nb" }, `header "a\nb"`},
		"a header with a dot":             {func(p *envoyxds.Port) { p.Division.Forced[0].Header = "a.b" }, `header "a.b"`},
		"a header of 253 characters":      {func(p *envoyxds.Port) { p.Division.Key.Name = strings.Repeat("a", 253) }, "has a character"},
		"a value with a line end":         {func(p *envoyxds.Port) { p.Division.Forced[0].Value = "a\nb" }, "no value of a header"},
		"a salt with a dollar":            {func(p *envoyxds.Port) { p.Division.Salt = "$a" }, "the salt"},
		"a domain with a quote":           {func(p *envoyxds.Port) { p.Division.Key = portset.ByVisitor; p.Division.Key.Domain = `a"b` }, "the cookie's domain"},
		"a Service with a brace":          {func(p *envoyxds.Port) { p.Service = "web}" }, `"shop/web}"`},
		"a Service of 253 characters":     {func(p *envoyxds.Port) { p.Service = strings.Repeat("a", 253) }, "is not named as Kubernetes names it"},
		"a variation with a dollar":       {func(p *envoyxds.Port) { p.Arms[0].Variation = "$HOME" }, `"$HOME"`},
		"a segment of no arm":             {func(p *envoyxds.Port) { p.Division.Segments[0].Variation = "other" }, `variation "other" has no arm`},
		"a header that forces to no arm":  {func(p *envoyxds.Port) { p.Division.Forced[0].Variation = "other" }, `variation "other" has no arm`},
		"segments that are not all":       {func(p *envoyxds.Port) { p.Division.Segments[0].Weight++ }, "10001 of 10000"},
		"a kind of key that is not known": {func(p *envoyxds.Port) { p.Division.Key.Kind = 9 }, "by kind 9"},
		"a cookie for visitors of gRPC":   {func(p *envoyxds.Port) { p.Division.Key, p.Protocol = portset.ByVisitor, ir.HTTP2 }, "grpc_pass"},
	} {
		t.Run(name, func(t *testing.T) {
			p := portset.Divided(portset.ByHeader, 500, portset.Force)
			tc.change(&p)
			if _, err := Render(options, []envoyxds.Port{portset.Web(), p}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	for name, folder := range map[string]string{"a space": "/a b", "no root": "a", "81 characters": "/" + strings.Repeat("a", 80)} {
		if _, err := Render(Options{Folder: folder}, nil); err == nil {
			t.Errorf("a folder with %s is not refused", name)
		}
	}
}

func TestNamesOfUpstreamsAreRead(t *testing.T) {
	p := portset.Divided(portset.ByHeader, 500, portset.Force)
	p.Namespace, p.Service = "my-shop", "a--b"
	for _, a := range append(p.Arms, portset.Web().Arms...) {
		arm, sequence, ours := ParseUpstream(UpstreamName(p, a))
		if !ours || sequence != 7 || arm.Namespace != p.Namespace || arm.Service != p.Service || arm.Port != 80 || arm.Variation != a.Variation || arm.Forced != a.Forced {
			t.Errorf("%s is read as %+v with %d (%v)", UpstreamName(p, a), arm, sequence, ours)
		}
	}
	if got := portVariable(p); got != "plb_my__shop_a____b_80" {
		t.Errorf("the variable is %s", got)
	}
	for _, name := range []string{"", "web", "plb_shop_web.1", "plb_shop_web_80_a", "plb_shop_web_80_a.01", "plb_shop_web_080_a.1", "plb_shop_web_65536_a.1", "other_shop_web_80_a.1"} {
		if arm, _, ours := ParseUpstream(name); ours {
			t.Errorf("%q is read as %+v", name, arm)
		}
	}
}

// hostile is a text that a person hopes to mean more than it should.
func hostile(t *rapid.T, what string) string {
	if rapid.IntRange(0, 4).Draw(t, what+" is any") == 0 {
		return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, what))
	}
	parts := rapid.SampledFrom([]string{
		"x-user", "canary", "\r\n", "\n", "\x00", "'", `"`, "$HOME", "%", ")", " ", "#", "{", "}", `\`, ";", "~", "*", "_", "ü", "\xff", "default", "include /etc/passwd;",
	})
	return strings.Join(rapid.SliceOfN(parts, 1, 3).Draw(t, what), "")
}

// Any port is refused, or the file has the lines of a harmless one, and some for each header more.
func TestEachPortIsRefusedOrHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		either := func(harmless, what string) string {
			return rapid.SampledFrom([]string{harmless, hostile(t, what)}).Draw(t, what+" or not")
		}
		p := portset.Divided(traffic.Key{Kind: traffic.KeyKind(rapid.IntRange(0, 3).Draw(t, "kind")), Name: "x-user"}, 500, portset.Force)
		p.Division.Salt = "s1"
		harmless, err := Render(options, []envoyxds.Port{p})
		if err != nil {
			t.Fatal(err)
		}
		p.Namespace, p.Service = either("shop", "namespace"), either("web", "service")
		p.Division.Key.Name, p.Division.Key.Domain, p.Division.Salt = either("x-user", "key"), either("", "domain"), either("s1", "salt")
		variation := either("canary", "variation")
		p.Arms[0].Variation, p.Arms[1].Variation, p.Division.Segments[0].Variation = variation, variation, variation
		for i := range p.Division.Forced {
			f := &p.Division.Forced[i]
			f.Header, f.Value = either(f.Header, "header"), either(f.Value, "value")
			if f.Variation == "canary" {
				f.Variation = variation
			}
		}
		files, err := Render(options, []envoyxds.Port{p})
		if err != nil {
			return
		}
		const linesOfAHeader = 3
		got, want := bytes.Count(files.Config, []byte("\n")), bytes.Count(harmless.Config, []byte("\n"))
		if got > want+2*linesOfAHeader {
			t.Fatalf("the file has %d lines, want %d:\n%s", got, want, files.Config)
		}
		for line := range bytes.Lines(files.Config) {
			if bytes.ContainsFunc(line[:len(line)-1], func(r rune) bool { return r < ' ' || r > '~' }) || bytes.Count(line, []byte(`"`))%2 != 0 {
				t.Fatalf("line %q", line)
			}
		}
	})
}
