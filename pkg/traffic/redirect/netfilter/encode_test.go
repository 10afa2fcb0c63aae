// SPDX-License-Identifier: Apache-2.0

package netfilter

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables/expr"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/redirect"
)

func anyRule(t *rapid.T) redirect.Rule {
	m := redirect.Match{Field: redirect.Field(rapid.IntRange(int(redirect.Inside), int(redirect.Opening)).Draw(t, "field"))}
	switch m.Field {
	case redirect.ByUser:
		m.User = rapid.Uint32().Draw(t, "user")
	case redirect.ToPort:
		m.Port = rapid.Uint16().Draw(t, "port")
	case redirect.ToRange:
		length := rapid.SampledFrom([]int{4, 16}).Draw(t, "family")
		addr, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), length, length).Draw(t, "address"))
		m.Range = netip.PrefixFrom(addr, rapid.IntRange(0, length*8).Draw(t, "bits")).Masked()
	case redirect.Inside, redirect.OverIPv6, redirect.Opening:
	}
	return redirect.Rule{Match: m, RedirectTo: rapid.SampledFrom([]uint16{0, 1, 15001, 65535}).Draw(t, "redirect")}
}

func encoded(t rapid.TB, r redirect.Rule) []expr.Any {
	exprs, err := encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return exprs
}

func TestARuleIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRule(t)
		if got := decode(encoded(t, want)); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// A rule that is a little other than ours must not be taken for it.
func TestARuleWithMoreOrLessIsNotOurs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := anyRule(t)
		exprs := encoded(t, rule)
		at := rapid.IntRange(0, len(exprs)-1).Draw(t, "at")
		more := slices.Insert(slices.Clone(exprs), at, expr.Any(&expr.Counter{}))
		less := slices.Delete(slices.Clone(exprs), at, at+1)
		for name, changed := range map[string][]expr.Any{"more": more, "less": less} {
			if got := decode(changed); got.Foreign == "" {
				t.Fatalf("%s than %q was read as %q", name, rule, got)
			}
		}
	})
}

func TestWhatIsNoRuleIsNotWritten(t *testing.T) {
	for name, r := range map[string]redirect.Rule{
		"a rule of others":         {Foreign: "counter", Match: redirect.Match{Field: redirect.Inside}},
		"a rule without condition": {RedirectTo: 15001},
		"a field of tomorrow":      {Match: redirect.Match{Field: redirect.Opening + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if exprs, err := encode(r); err == nil {
				t.Errorf("it was written: %v", exprs)
			}
		})
	}
}

func TestARuleOfOthersIsToldByItsParts(t *testing.T) {
	for name, tc := range map[string]struct {
		exprs []expr.Any
		want  string
	}{
		"something":                   {[]expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}, "counter verdict"},
		"nothing":                     {nil, "an unknown expression"},
		"a range that is not of bits": {maskedBy([]byte{0xff, 0, 0xff, 0}), "meta cmp payload bitwise cmp verdict"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(redirect.Rule{Foreign: tc.want}, decode(tc.exprs), cmp.Comparer(func(a, b redirect.Rule) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func maskedBy(bits []byte) []expr.Any {
	exprs := encodeRange(netip.MustParsePrefix("10.0.0.0/8"))
	exprs[3] = mask(bits)
	return append(exprs, &expr.Verdict{Kind: expr.VerdictAccept})
}
