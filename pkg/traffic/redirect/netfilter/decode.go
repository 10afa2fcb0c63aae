// SPDX-License-Identifier: Apache-2.0

package netfilter

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"github.com/plumbline-dev/plumbline/pkg/traffic/redirect"
)

// decode is the inverse of encode. It guesses which rule the expressions are, and
// believes it only if that rule has these expressions and no other.
func decode(exprs []expr.Any) redirect.Rule {
	for _, field := range []redirect.Field{
		redirect.Inside, redirect.ByUser, redirect.OverIPv6, redirect.ToPort, redirect.ToRange, redirect.Opening,
	} {
		guess := redirect.Rule{Match: guessMatch(field, exprs), RedirectTo: redirectTo(exprs)}
		if want, err := encode(guess); err == nil && reflect.DeepEqual(want, exprs) {
			return guess
		}
	}
	return redirect.Rule{Foreign: foreign(exprs)}
}

func guessMatch(field redirect.Field, exprs []expr.Any) redirect.Match {
	m := redirect.Match{Field: field}
	value := last[*expr.Cmp](exprs)
	switch {
	case value == nil:
	case field == redirect.ByUser && len(value.Data) == 4:
		m.User = binaryutil.NativeEndian.Uint32(value.Data)
	case field == redirect.ToPort && len(value.Data) == 2:
		m.Port = binaryutil.BigEndian.Uint16(value.Data)
	case field == redirect.ToRange:
		m.Range = guessRange(exprs, value.Data)
	}
	return m
}

func guessRange(exprs []expr.Any, address []byte) netip.Prefix {
	masked := last[*expr.Bitwise](exprs)
	addr, ok := netip.AddrFromSlice(address)
	if masked == nil || !ok {
		return netip.Prefix{}
	}
	ones, _ := net.IPMask(masked.Mask).Size()
	return netip.PrefixFrom(addr, ones)
}

func redirectTo(exprs []expr.Any) uint16 {
	if port := last[*expr.Immediate](exprs); port != nil && len(port.Data) == 2 {
		return binaryutil.BigEndian.Uint16(port.Data)
	}
	return 0
}

func last[T comparable](exprs []expr.Any) T {
	for _, e := range slices.Backward(exprs) {
		if found, ok := e.(T); ok {
			return found
		}
	}
	var none T
	return none
}

func foreign(exprs []expr.Any) string {
	names := make([]string, len(exprs))
	for i, e := range exprs {
		names[i] = strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "*expr."))
	}
	if len(names) == 0 {
		return "an unknown expression"
	}
	return strings.Join(names, " ")
}
