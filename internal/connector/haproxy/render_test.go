// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

var options = Options{Folder: "/plumbline", Instance: "test"}

func idle(Server) bool { return false }

func render(t *testing.T, ports ...envoyxds.Port) Files {
	t.Helper()
	files, err := Render(options, ports, PlaceArms(nil, ports, idle))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The files are also what a real HAProxy is given (test/integration/haproxy).
func TestGolden(t *testing.T) {
	for name, ports := range portset.Sets(portset.Differences{RetriesOff: true, Cookie: "a%$#b"}) {
		t.Run(name, func(t *testing.T) {
			files := render(t, ports...)
			var all strings.Builder
			for _, file := range []struct {
				name    string
				content []byte
			}{{ConfigFile, files.Config}, {SplitsFile, files.Splits}, {MatchesFile, files.Matches}} {
				all.WriteString("-- " + file.name + " --\n" + string(file.content))
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), all.String())
		})
	}
}

// A reload closes connections that are idle, so nothing that the Runtime API can change needs one.
func TestOnlyStructureNeedsAReload(t *testing.T) {
	before := portset.Divided(portset.ByHeader, 500, portset.Force)
	tests := map[string]struct {
		change func(*envoyxds.Port)
		reload bool
	}{
		"nothing":            {func(*envoyxds.Port) {}, false},
		"a weight":           {func(p *envoyxds.Port) { p.Division.Segments = portset.Segments(5_000) }, false},
		"a sequence":         {func(p *envoyxds.Port) { p.Sequence++ }, false},
		"all for the canary": {func(p *envoyxds.Port) { p.Division.Segments = portset.Segments(traffic.Total) }, false},
		"an endpoint":        {func(p *envoyxds.Port) { p.Arms[0].Own = portset.Addresses("10.1.0.9:8080") }, false},
		"an endpoint more":   {func(p *envoyxds.Port) { p.Arms[0].Own = portset.Addresses("10.1.0.3:8080", "10.1.0.9:8080") }, false},
		"no endpoint":        {func(p *envoyxds.Port) { p.Arms[0].Own, p.Arms[0].Failover = nil, nil }, false},
		"more endpoints than slots": {func(p *envoyxds.Port) {
			p.Arms[0].Own = portset.Addresses("10.1.0.3:1", "10.1.0.3:2", "10.1.0.3:3", "10.1.0.3:4", "10.1.0.3:5")
		}, true},
		"a salt":                         {func(p *envoyxds.Port) { p.Division.Salt = "s2" }, true},
		"another header for visitors":    {func(p *envoyxds.Port) { p.Division.Key.Name = "x-account" }, true},
		"a variation":                    {portset.AddThird, true},
		"another value of a header":      {func(p *envoyxds.Port) { p.Division.Forced[3].Value = "gamma" }, true},
		"a time-out":                     {func(p *envoyxds.Port) { p.Connect = time.Minute }, true},
		"no retries":                     {func(p *envoyxds.Port) { p.RetriesOff = true }, true},
		"HTTP/2":                         {func(p *envoyxds.Port) { p.Protocol = ir.HTTP2 }, true},
		"the end of the split":           {func(p *envoyxds.Port) { p.Division, p.Arms = nil, portset.Web().Arms }, true},
		"the Service is not known now":   {func(p *envoyxds.Port) { p.Unavailable, p.Division, p.Arms = true, nil, nil }, true},
		"a second port, by another name": {func(p *envoyxds.Port) { p.Number = 81 }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			arms := PlaceArms(nil, []envoyxds.Port{before}, idle)
			was, err := Render(options, []envoyxds.Port{before}, arms)
			if err != nil {
				t.Fatal(err)
			}
			after := portset.Divided(portset.ByHeader, 500, portset.Force)
			tc.change(&after)
			is, err := Render(options, []envoyxds.Port{after}, PlaceArms(arms, []envoyxds.Port{after}, idle))
			if err != nil {
				t.Fatal(err)
			}
			if got := was.Structure != is.Structure; got != tc.reload {
				t.Errorf("a reload is needed: %v, want %v; the files (-before +after):\n%s", got, tc.reload, cmp.Diff(string(was.Config), string(is.Config)))
			}
		})
	}
}

// The rules that read an entry decide its key: another worker's rules would make something else of it.
func TestAnEntryBelongsToItsRules(t *testing.T) {
	of := func(p envoyxds.Port) string {
		e, _ := EntryOf(p)
		return e.Key
	}
	before := of(portset.Divided(portset.ByHeader, 500, portset.Force))
	for name, tc := range map[string]struct {
		port envoyxds.Port
		same bool
	}{
		"a weight and a sequence": {portset.Divided(portset.ByHeader, 900, portset.Force, func(p *envoyxds.Port) { p.Sequence = 8 }), true},
		"endpoints":               {portset.Divided(portset.ByHeader, 500, portset.Force, func(p *envoyxds.Port) { p.Arms[0].Own = nil }), true},
		"time-outs":               {portset.Divided(portset.ByHeader, 500, portset.Force, func(p *envoyxds.Port) { p.Idle = time.Minute }), true},
		"a salt":                  {portset.Divided(portset.ByHeader, 500, portset.Force, func(p *envoyxds.Port) { p.Division.Salt = "s2" }), false},
		"a kind of key":           {portset.Divided(traffic.Key{Kind: traffic.ByCookie, Name: "x-user"}, 500, portset.Force), false},
		"forced requests":         {portset.Divided(portset.ByHeader, 500), false},
		"a variation":             {portset.Divided(portset.ByHeader, 500, portset.AddThird), false},
	} {
		t.Run(name, func(t *testing.T) {
			if after := of(tc.port); (after == before) != tc.same {
				t.Errorf("before %s, after %s, want same: %v", before, after, tc.same)
			}
		})
	}
}

func TestWhatHAProxyCannotCarryOutIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*envoyxds.Port)
		want   string
	}{
		"a time-out of requests":            {func(p *envoyxds.Port) { p.Request = time.Second }, "plumbline.dev/request-timeout"},
		"a cookie with a quote":             {func(p *envoyxds.Port) { p.Division.Key = traffic.Key{Kind: traffic.ByCookie, Name: "a'b"} }, `cookie "a'b"`},
		"a cookie with a brace":             {func(p *envoyxds.Port) { p.Division.Key = traffic.Key{Kind: traffic.ByCookie, Name: "a}b"} }, `cookie "a}b"`},
		"a cookie with a comma":             {func(p *envoyxds.Port) { p.Division.Key = traffic.Key{Kind: traffic.ByVisitor, Name: "a,b"} }, `cookie "a,b"`},
		"a header with a line end":          {func(p *envoyxds.Port) { p.Division.Key.Name = "a\nb" }, `header "a\nb"`},
		"a header of 253 characters":        {func(p *envoyxds.Port) { p.Division.Key.Name = strings.Repeat("a", 253) }, "has a character"},
		"an override with a parenthesis":    {func(p *envoyxds.Port) { p.Division.Forced[0].Header = "a)b" }, `header "a)b"`},
		"a value with a line end":           {func(p *envoyxds.Port) { p.Division.Forced[0].Value = "a\nb" }, "no value of a header"},
		"a salt with a parenthesis":         {func(p *envoyxds.Port) { p.Division.Salt = "s)" }, "the salt"},
		"a domain with a line end":          {func(p *envoyxds.Port) { p.Division.Key = portset.ByVisitor; p.Division.Key.Domain = "a\nb" }, "the cookie's domain"},
		"a Service with a brace":            {func(p *envoyxds.Port) { p.Service = "web}" }, `"shop/web}"`},
		"a Service of 253 characters":       {func(p *envoyxds.Port) { p.Service = strings.Repeat("a", 253) }, "is not named as Kubernetes names it"},
		"a Service with an underscore":      {func(p *envoyxds.Port) { p.Service = "web_80" }, `"shop/web_80"`},
		"a namespace without name":          {func(p *envoyxds.Port) { p.Namespace = "" }, `"/web"`},
		"a variation with a dollar":         {func(p *envoyxds.Port) { p.Arms[0].Variation = "$HOME" }, `"$HOME"`},
		"a kind of key that is not known":   {func(p *envoyxds.Port) { p.Division.Key.Kind = 9 }, "by kind 9"},
		"a layout with too many segments":   {func(p *envoyxds.Port) { p.Division.Segments = slices.Repeat(portset.Segments(500), 2) }, "4 segments"},
		"all mistakes of a port are listed": {func(p *envoyxds.Port) { p.Request = time.Second; p.Division.Salt = "" }, "the salt"},
	} {
		t.Run(name, func(t *testing.T) {
			p := portset.Divided(portset.ByHeader, 500, portset.Force)
			tc.change(&p)
			_, err := Render(options, []envoyxds.Port{portset.Web(), p}, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	if err := Check(portset.Divided(portset.ByHeader, 500, portset.Force, portset.AddThird)); err != nil {
		t.Errorf("a port is refused: %v", err)
	}
}

func TestOptionsThatWouldBreakTheFilesAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"a folder with a space":    {Folder: "/a b", Instance: "test"},
		"a folder that is not one": {Folder: "a", Instance: "test"},
		"no instance":              {Folder: "/a"},
		"an instance of two lines": {Folder: "/a", Instance: "a\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Render(o, nil, nil); err == nil {
				t.Error("it is not refused")
			}
		})
	}
}

func TestNamesOfBackendsAreRead(t *testing.T) {
	p := portset.Divided(portset.ByHeader, 500, portset.Force)
	for _, a := range append(p.Arms, portset.Web().Arms...) {
		slot, ours := ParseBackend(BackendName(p, a))
		if !ours || slot.Namespace != "shop" || slot.Service != "web" || slot.Port != 80 || slot.Variation != a.Variation || slot.Forced != a.Forced {
			t.Errorf("%s is read as %+v (%v)", BackendName(p, a), slot, ours)
		}
	}
	for _, name := range []string{"", "web", "plb_shop_web", "plb_shop_web_80", "plb_shop_web_080_a", "plb_shop_web_65536_a", "plb_shop_web_80_a_b", "other_shop_web_80_a"} {
		if slot, ours := ParseBackend(name); ours {
			t.Errorf("%q is read as %+v", name, slot)
		}
	}
}

// hostile is a text that somebody hopes to mean more than it should, whole or as a part of a harmless one.
func hostile(t *rapid.T, what string) string {
	if rapid.IntRange(0, 4).Draw(t, what+" is any") == 0 {
		return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, what))
	}
	parts := rapid.SampledFrom([]string{
		"x-user", "canary", "a", "\r\n", "\n", "\x00", "'", `"`, "$HOME", "%[env(HOME)]", "%", ")", "(", ",", " ", "#", "{", "}", `\`, ";", "|", ":", "@", "_", "-", "ü", "\xff",
		"if TRUE", "use_backend other", strings.Repeat("n", 65), strings.Repeat("v", 257),
	})
	return strings.Join(rapid.SliceOfN(parts, 1, 3).Draw(t, what), "")
}

// Whatever a port has: it is refused, or each file has the lines of a harmless one, and two lines for each
// header more.
func TestWhateverAPortHasItIsRefusedOrHarmless(t *testing.T) {
	lines := func(f Files) [3]int {
		return [3]int{bytes.Count(f.Config, []byte("\n")), bytes.Count(f.Splits, []byte("\n")), bytes.Count(f.Matches, []byte("\n"))}
	}
	rapid.Check(t, func(t *rapid.T) {
		kind := traffic.KeyKind(rapid.IntRange(0, 3).Draw(t, "kind"))
		either := func(harmless, what string) string {
			return rapid.SampledFrom([]string{harmless, hostile(t, what)}).Draw(t, what+" or not")
		}
		p := portset.Divided(traffic.Key{Kind: kind, Name: "x-user"}, 500, portset.Force)
		p.Division.Salt = "s1"
		harmless, err := Render(options, []envoyxds.Port{p}, PlaceArms(nil, []envoyxds.Port{p}, idle))
		if err != nil {
			t.Fatal(err)
		}
		p.Namespace, p.Service = either("shop", "namespace"), either("web", "service")
		p.Division.Key.Name, p.Division.Key.Domain, p.Division.Salt = either("x-user", "key"), either("", "domain"), either("s1", "salt")
		variation := either("canary", "variation")
		for i := range p.Arms[:2] {
			p.Arms[i].Variation = variation
		}
		p.Division.Segments[0].Variation = variation
		for i := range p.Division.Forced {
			f := &p.Division.Forced[i]
			f.Header, f.Value = map[string]string{"x-variation": either("x-variation", "override"), "x-group": either("x-group", "header")}[f.Header], either(f.Value, "value")
			if f.Variation == "canary" {
				f.Variation = variation
			}
		}
		files, err := Render(options, []envoyxds.Port{p}, PlaceArms(nil, []envoyxds.Port{p}, idle))
		if err != nil {
			return
		}
		if got, want := lines(files), lines(harmless); got[0] > want[0]+4 || got[1] != want[1] || got[2] > want[2] {
			t.Fatalf("the files have %v lines, want %v:\n%s", got, want, files.Config)
		}
		for line := range bytes.Lines(files.Config) {
			if bytes.ContainsFunc(line[:len(line)-1], func(r rune) bool { return r < ' ' || r == 0x7f }) || bytes.Count(line, []byte("'"))%2 != 0 {
				t.Fatalf("line %q", line)
			}
		}
	})
}
