// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
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
	for name, ports := range sets() {
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
	before := divided(byHeader, 500, forced)
	tests := map[string]struct {
		change func(*envoyxds.Port)
		reload bool
	}{
		"nothing":            {func(*envoyxds.Port) {}, false},
		"a weight":           {func(p *envoyxds.Port) { p.Division.Segments = segments(5_000) }, false},
		"a sequence":         {func(p *envoyxds.Port) { p.Sequence++ }, false},
		"all for the canary": {func(p *envoyxds.Port) { p.Division.Segments = segments(traffic.Total) }, false},
		"an endpoint":        {func(p *envoyxds.Port) { p.Arms[0].Own = addresses("10.1.0.9:8080") }, false},
		"an endpoint more":   {func(p *envoyxds.Port) { p.Arms[0].Own = addresses("10.1.0.3:8080", "10.1.0.9:8080") }, false},
		"no endpoint":        {func(p *envoyxds.Port) { p.Arms[0].Own, p.Arms[0].Failover = nil, nil }, false},
		"more endpoints than slots": {func(p *envoyxds.Port) {
			p.Arms[0].Own = addresses("10.1.0.3:1", "10.1.0.3:2", "10.1.0.3:3", "10.1.0.3:4", "10.1.0.3:5")
		}, true},
		"a salt":                         {func(p *envoyxds.Port) { p.Division.Salt = "s2" }, true},
		"another header for visitors":    {func(p *envoyxds.Port) { p.Division.Key.Name = "x-account" }, true},
		"a variation":                    {three, true},
		"another value of a header":      {func(p *envoyxds.Port) { p.Division.Forced[3].Value = "gamma" }, true},
		"a time-out":                     {func(p *envoyxds.Port) { p.Connect = time.Minute }, true},
		"no retries":                     {func(p *envoyxds.Port) { p.RetriesOff = true }, true},
		"HTTP/2":                         {func(p *envoyxds.Port) { p.Protocol = ir.HTTP2 }, true},
		"the end of the split":           {func(p *envoyxds.Port) { p.Division, p.Arms = nil, web().Arms }, true},
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
			after := divided(byHeader, 500, forced)
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
	before := of(divided(byHeader, 500, forced))
	for name, tc := range map[string]struct {
		port envoyxds.Port
		same bool
	}{
		"a weight and a sequence": {divided(byHeader, 900, forced, func(p *envoyxds.Port) { p.Sequence = 8 }), true},
		"endpoints":               {divided(byHeader, 500, forced, func(p *envoyxds.Port) { p.Arms[0].Own = nil }), true},
		"time-outs":               {divided(byHeader, 500, forced, func(p *envoyxds.Port) { p.Idle = time.Minute }), true},
		"a salt":                  {divided(byHeader, 500, forced, func(p *envoyxds.Port) { p.Division.Salt = "s2" }), false},
		"a kind of key":           {divided(traffic.Key{Kind: traffic.ByCookie, Name: "x-user"}, 500, forced), false},
		"forced requests":         {divided(byHeader, 500), false},
		"a variation":             {divided(byHeader, 500, three), false},
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
		"a domain with a line end":          {func(p *envoyxds.Port) { p.Division.Key = byVisitor; p.Division.Key.Domain = "a\nb" }, "the cookie's domain"},
		"a Service with a brace":            {func(p *envoyxds.Port) { p.Service = "web}" }, `"shop/web}"`},
		"a Service of 253 characters":       {func(p *envoyxds.Port) { p.Service = strings.Repeat("a", 253) }, "is not named as Kubernetes names it"},
		"a Service with an underscore":      {func(p *envoyxds.Port) { p.Service = "web_80" }, `"shop/web_80"`},
		"a namespace without name":          {func(p *envoyxds.Port) { p.Namespace = "" }, `"/web"`},
		"a variation with a dollar":         {func(p *envoyxds.Port) { p.Arms[0].Variation = "$HOME" }, `"$HOME"`},
		"a kind of key that is not known":   {func(p *envoyxds.Port) { p.Division.Key.Kind = 9 }, "by kind 9"},
		"a layout with too many segments":   {func(p *envoyxds.Port) { p.Division.Segments = slices.Repeat(segments(500), 2) }, "4 segments"},
		"all mistakes of a port are listed": {func(p *envoyxds.Port) { p.Request = time.Second; p.Division.Salt = "" }, "the salt"},
	} {
		t.Run(name, func(t *testing.T) {
			p := divided(byHeader, 500, forced)
			tc.change(&p)
			_, err := Render(options, []envoyxds.Port{web(), p}, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	if err := Check(divided(byHeader, 500, forced, three)); err != nil {
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
	p := divided(byHeader, 500, forced)
	for _, a := range append(p.Arms, web().Arms...) {
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
