// SPDX-License-Identifier: Apache-2.0

package netfilter

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/plumbline-dev/plumbline/pkg/traffic/redirect"
)

// register is the one that all expressions use.
const register = 1

// Where in a packet a field begins (RFC 791, 8200, 9293), in bytes.
const (
	offsetDaddr4   = 16
	offsetDaddr6   = 24
	offsetPort     = 2
	offsetTCPFlags = 13
)

const (
	flagFIN, flagSYN, flagRST, flagACK = 0x01, 0x02, 0x04, 0x10
	openingMask                        = flagFIN | flagSYN | flagRST | flagACK
)

// rangeSpecified is NF_NAT_RANGE_PROTO_SPECIFIED of linux/netfilter/nf_nat.h: the
// kernel sets it when a port is given, so rules that are read have it.
const rangeSpecified = 2

// loopbackName is as the kernel compares it, padded with zeros (IFNAMSIZ).
func loopbackName() []byte { return append([]byte("lo"), make([]byte, unix.IFNAMSIZ-len("lo"))...) }

// encode says a rule in the kernel's expressions.
func encode(r redirect.Rule) ([]expr.Any, error) {
	if r.Foreign != "" {
		return nil, fmt.Errorf("the rule %q is not one of Plumbline", r.Foreign)
	}
	exprs := encodeMatch(r.Match)
	if exprs == nil {
		return nil, fmt.Errorf("the rule %q has no condition", r)
	}
	if r.RedirectTo == 0 {
		return append(exprs, &expr.Verdict{Kind: expr.VerdictAccept}), nil
	}
	return append(exprs,
		&expr.Immediate{Register: register, Data: binaryutil.BigEndian.PutUint16(r.RedirectTo)},
		&expr.Redir{RegisterProtoMin: register, RegisterProtoMax: register, Flags: rangeSpecified},
	), nil
}

func encodeMatch(m redirect.Match) []expr.Any {
	switch m.Field {
	case redirect.Inside:
		return []expr.Any{meta(expr.MetaKeyOIFNAME), equals(loopbackName())}
	case redirect.ByUser:
		return []expr.Any{meta(expr.MetaKeySKUID), equals(binaryutil.NativeEndian.PutUint32(m.User))}
	case redirect.OverIPv6:
		return family(unix.NFPROTO_IPV6)
	case redirect.ToPort:
		return tcp(load(expr.PayloadBaseTransportHeader, offsetPort, 2),
			equals(binaryutil.BigEndian.PutUint16(m.Port)))
	case redirect.ToRange:
		return encodeRange(m.Range)
	case redirect.Opening:
		return tcp(load(expr.PayloadBaseTransportHeader, offsetTCPFlags, 1),
			mask([]byte{openingMask}), equals([]byte{flagSYN}))
	}
	return nil
}

// encodeRange asks for the family first: the same bytes mean another thing in the
// header of the other.
func encodeRange(p netip.Prefix) []expr.Any {
	proto, offset, address := byte(unix.NFPROTO_IPV4), uint32(offsetDaddr4), p.Addr().AsSlice()
	if p.Addr().Is6() {
		proto, offset = unix.NFPROTO_IPV6, offsetDaddr6
	}
	bits := len(address) * 8
	return append(family(proto),
		load(expr.PayloadBaseNetworkHeader, offset, uint32(len(address))),
		mask(net.CIDRMask(p.Bits(), bits)), equals(address))
}

// tcp asks for the protocol first, for the same reason.
func tcp(more ...expr.Any) []expr.Any {
	return append([]expr.Any{meta(expr.MetaKeyL4PROTO), equals([]byte{unix.IPPROTO_TCP})}, more...)
}

func family(proto byte) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyNFPROTO), equals([]byte{proto})}
}

func meta(key expr.MetaKey) expr.Any { return &expr.Meta{Key: key, Register: register} }

func load(base expr.PayloadBase, offset, length uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: base, Offset: offset, Len: length}
}

func mask(bits []byte) expr.Any {
	return &expr.Bitwise{
		SourceRegister: register, DestRegister: register,
		Len: uint32(len(bits)), Mask: bits, Xor: make([]byte, len(bits)),
	}
}

func equals(with []byte) expr.Any {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: with}
}
