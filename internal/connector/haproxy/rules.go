// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// protocolOf is what follows an address of a port.
func protocolOf(p envoyxds.Port) string {
	if p.Protocol == ir.HTTP2 {
		return " proto h2"
	}
	return ""
}

// writeRules writes the rules of the frontend of a port. HAProxy takes all rules of requests before it chooses a backend.
func (w *writer) writeRules(p envoyxds.Port) {
	if p.Unavailable {
		w.writeLine("  http-request deny deny_status 503")
		return
	}
	w.writeLine("  http-request del-header %s", ir.VisitorHeader)
	if p.Division == nil {
		for _, a := range p.Arms {
			w.writeLine("  default_backend %s", BackendName(p, a))
		}
		return
	}
	forced := w.writeForced(p)
	w.writeBucket(p.Division)
	w.writeDivision(p)
	for _, v := range forced {
		w.writeLine("  use_backend %s if { var(txn.plb_forced) -m str %s }", BackendName(p, envoyxds.Arm{Variation: v, Forced: true}), v)
	}
	for _, v := range listVariations(p) {
		w.writeLine("  use_backend %s if { var(txn.plb_arm) -m str %s }", BackendName(p, envoyxds.Arm{Variation: v}), v)
	}
}

// writeForced writes the lookup of a header that comes once, and returns the variations to which headers send requests.
// matches.map has values by their bytes in hexadecimal digits, so that none means anything to HAProxy.
func (w *writer) writeForced(p envoyxds.Port) (variations []string) {
	var headers []string
	seen := map[string]bool{}
	for _, f := range p.Division.Forced {
		if !slices.Contains(headers, f.Header) {
			headers = append(headers, f.Header)
		}
		if !slices.Contains(variations, f.Variation) {
			variations = append(variations, f.Variation)
		}
		key := fmt.Sprintf("%s:%d:%X", portName(p), slices.Index(headers, f.Header), f.Value)
		if !seen[key] { // the first one counts
			fmt.Fprintf(&w.matches, "%s %s\n", key, f.Variation)
			seen[key] = true
		}
	}
	for i, header := range headers {
		condition := "if { " + quoteArgument("req.fhdr_cnt("+header+")") + " eq 1 }"
		if i > 0 {
			condition += " !" + isForced
		}
		w.writeLine("  http-request set-var(txn.plb_value%d) %s %s", i, quoteArgument("req.fhdr("+header+",1),hex"), condition)
		w.writeLine("  http-request set-var(txn.plb_forced) %s %s",
			quoteArgument(fmt.Sprintf("str(%s:%d:),concat(,txn.plb_value%d),map_str(%s)", portName(p), i, i, w.nameFile(MatchesFile))), condition)
	}
	return variations
}

// isForced holds for a request that a header has sent to an arm.
const isForced = "{ var(txn.plb_forced) -m found }"

// writeBucket writes the rules that give the request a bucket of traffic.Total: one at random, or that of its visitor, which is
// the hash of the salt, a | and the value as Envoy has it. xxh64 is signed here and a number modulo
// 10,000 keeps the sign: 2⁶⁴ modulo 10,000 is 1,616, and 10,000 more is above all of them.
func (w *writer) writeBucket(d *envoyxds.Division) {
	w.writeLine("  http-request set-var(txn.plb_bucket) 'rand(%d)'", traffic.Total)
	switch d.Key.Kind {
	case traffic.PerRequest:
		return
	case traffic.ByHeader:
		w.writeLine("  http-request set-var(txn.plb_key) %s", quoteArgument("req.fhdr("+d.Key.Name+",1)"))
	case traffic.ByCookie:
		w.writeCookie(d.Key.Name)
	case traffic.ByVisitor:
		w.writeCookie(d.Key.Name)
		w.writeLine("  http-request set-var(txn.plb_visitor) 'uuid()' if !{ var(txn.plb_key) -m len gt 0 } !%s", isForced)
		w.writeLine("  http-request set-var(txn.plb_key) 'var(txn.plb_visitor)' if { var(txn.plb_visitor) -m found }")
		w.writeLine("  http-response add-header set-cookie %s if { var(txn.plb_visitor) -m found }",
			quoteArgument(strings.ReplaceAll(d.Key.Name, "%", "%%")+"=%[var(txn.plb_visitor)]"+envoyxds.VisitorAttributes(d.Key)))
	}
	w.writeLine("  http-request set-var(txn.plb_bucket) %s if { var(txn.plb_key) -m len gt 0 }",
		quoteArgument(fmt.Sprintf("str(%s|),concat(,txn.plb_key),xxh64(0),mod(%d)", d.Salt, traffic.Total)))
	w.writeLine("  http-request set-var(txn.plb_bucket) 'var(txn.plb_bucket),add(%d),mod(%d)' if { var(txn.plb_bucket) -m int lt 0 }", 1_616+traffic.Total, traffic.Total)
}

// writeCookie writes the rule that takes the value of the first cookie of a name; req.cook has the last one. A header in which the
// pattern found none would be taken whole. In the pattern all but letters and digits are hexadecimal.
func (w *writer) writeCookie(name string) {
	var pattern strings.Builder
	for _, c := range []byte(name) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			pattern.WriteByte(c)
		} else {
			fmt.Fprintf(&pattern, `\x%02x`, c)
		}
	}
	w.writeLine("  http-request set-var(txn.plb_key) %s if { %s -m len gt 0 }",
		quoteArgument(`req.fhdr(cookie,1),regsub("^(.*?;[[:blank:]]*)??`+pattern.String()+`=([^;]*).*$","\2")`), quoteArgument("req.cook("+name+")"))
}

// writeDivision writes the rule that sends the request to the arm whose segment has its bucket, by one look at the entry of the
// split. A program whose map was emptied has the entry that it was loaded with.
func (w *writer) writeDivision(p envoyxds.Port) {
	entry, _ := EntryOf(p)
	fmt.Fprintf(&w.splits, "%s %s\n", entry.Key, entry.Value)
	look := fmt.Sprintf("str(%s),map_str(%s", entry.Key, w.nameFile(SplitsFile))
	w.writeLive("  look "+look, "  http-request set-var(txn.plb_split) "+quoteArgument(look+","+entry.Value+")"))
	w.writeLine("  http-request set-var(txn.plb_arm) 'var(txn.plb_split),field(2,%s)'", separator)
	for i := range countSegments(len(listVariations(p))) - 1 {
		w.writeLine("  http-request set-var(txn.plb_end) 'var(txn.plb_split),field(%d,%s),add(0)'", 2*i+3, separator)
		w.writeLine("  http-request set-var(txn.plb_arm) 'var(txn.plb_split),field(%d,%s)' if { 'var(txn.plb_bucket),sub(txn.plb_end)' -m int ge 0 }", 2*i+4, separator)
	}
}
