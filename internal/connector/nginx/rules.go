// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// port writes the upstreams of arms, and the variable that names one of them.
func (w *writer) port(p envoyxds.Port, alone bool) {
	w.line("")
	if p.Unavailable {
		p.Arms = []envoyxds.Arm{{}}
	}
	for _, a := range p.Arms {
		w.upstream(p, a)
	}
	name := portVariable(p)
	if p.Division == nil {
		for _, a := range p.Arms {
			w.constant(name, UpstreamName(p, a))
		}
	} else {
		w.divided(p)
	}
	if alone {
		w.constant(serviceVariable(p), "$"+name)
	}
}

// constant gives a variable one value.
func (w *writer) constant(name, value string) { w.mapped(`""`, name, value) }

// mapped writes a variable that has a value unless an entry says another one.
func (w *writer) mapped(source, name, otherwise string, entries ...string) {
	w.line("map %s $%s {", source, name)
	w.line(`  default "%s";`, otherwise)
	for _, e := range entries {
		w.line("  %s;", e)
	}
	w.line("}")
}

// nowhere is the server of an arm without any endpoint: nginx answers 502, and connects to none.
const nowhere = "127.0.0.1:1 down"

// upstream of an arm. Those of the stable variation come when none of its own can be reached.
func (w *writer) upstream(p envoyxds.Port, a envoyxds.Arm) {
	w.line("upstream %s {", UpstreamName(p, a))
	w.line("  least_conn;")
	own, backup := a.Own, a.Failover
	if len(own) == 0 {
		own, backup = a.Failover, nil
	}
	if len(own) == 0 {
		w.endpoint("  server %s;", nowhere)
	}
	for _, address := range own {
		w.endpoint("  server %s;", address)
	}
	for _, address := range backup {
		w.endpoint("  server %s backup;", address)
	}
	w.line("  keepalive 64;")
	w.line("  keepalive_timeout %dms;", max(1, p.Idle.Milliseconds()))
	w.line("}")
}

// divided writes the key of a visitor, the split, and the headers that come before it.
func (w *writer) divided(p envoyxds.Port) {
	name := portVariable(p)
	w.key(p)
	w.line("split_clients $%s_key $%s_arm {", name, name)
	begin := traffic.Weight(0)
	for _, s := range p.Division.Segments {
		begin += s.Weight
		share := fmt.Sprintf("%d.%02d%%", s.Weight/100, s.Weight%100)
		if begin == traffic.Total {
			share = "*"
		}
		if s.Weight > 0 {
			w.line("  %s %s;", share, UpstreamName(p, envoyxds.Arm{Variation: s.Variation}))
		}
	}
	w.line("}")
	w.forced(p)
}

// key is a random one for a request whose visitor is not known.
func (w *writer) key(p envoyxds.Port) {
	name, d := portVariable(p), p.Division
	known := d.Salt + "|$" + name + "_visitor"
	switch d.Key.Kind {
	case traffic.PerRequest:
		w.constant(name+"_key", "$request_id")
	case traffic.ByHeader:
		w.mapped(header(d.Key.Name), name+"_visitor", header(d.Key.Name))
		w.mapped(header(d.Key.Name), name+"_key", known, `"" $request_id`)
	case traffic.ByCookie:
		w.cookie(name+"_visitor", d.Key.Name)
		w.mapped("$"+name+"_visitor", name+"_key", known, `"" $request_id`)
	case traffic.ByVisitor:
		w.cookie(name+"_cookie", d.Key.Name)
		w.mapped("$"+name+"_cookie", name+"_visitor", "$"+name+"_cookie", `"" $request_id`)
		w.constant(name+"_key", known)
	}
}

// cookie takes the value of the first cookie of a name.
func (w *writer) cookie(variable, name string) {
	w.mapped("$http_cookie", variable, "", fmt.Sprintf(`"~^(?:.*?;[ \t]*)?%s=([^;]*)" $1`, literal(name)))
}

// header is the variable of a header of the request.
func header(name string) string {
	return "$http_" + strings.ToLower(strings.ReplaceAll(name, "-", "_"))
}

var alphanumeric = regexp.MustCompile(`^[0-9A-Za-z]$`)

// literal is a regular expression for one text: all but letters and digits are hexadecimal, so that no
// byte means anything to nginx. A string of a map would match in another case, too.
func literal(text string) string {
	var pattern strings.Builder
	for i := range len(text) {
		if c := text[i : i+1]; alphanumeric.MatchString(c) {
			pattern.WriteString(c)
		} else {
			fmt.Fprintf(&pattern, `\x%02x`, text[i])
		}
	}
	return pattern.String()
}

// forced looks the headers up, each if the one before it sends the request to no arm.
func (w *writer) forced(p envoyxds.Port) {
	name := portVariable(p)
	var headers []string
	entries := map[string][]string{}
	for _, f := range p.Division.Forced {
		if !slices.Contains(headers, f.Header) {
			headers = append(headers, f.Header)
		}
		entries[f.Header] = append(entries[f.Header],
			fmt.Sprintf(`"~^%s\z" %s`, literal(f.Value), UpstreamName(p, envoyxds.Arm{Variation: f.Variation, Forced: true})))
	}
	next := name + "_arm"
	for i, h := range slices.Backward(headers) {
		variable := fmt.Sprintf("%s_header%d", name, i)
		w.mapped(header(h), variable, "$"+next, entries[h]...)
		next = variable
	}
	w.constant(name, "$"+next)
}

// cookies gives a visitor the cookie of the port that the request was sent to, if it had none.
func (w *writer) cookies(ports []envoyxds.Port) {
	var entries []string
	w.line("")
	for _, p := range ports {
		if p.Division == nil || p.Division.Key.Kind != traffic.ByVisitor {
			continue
		}
		name, key := portVariable(p), p.Division.Key
		w.mapped("$"+name+"_cookie", name+"_new", "",
			fmt.Sprintf(`"" "%s=$%s_visitor%s"`, key.Name, name, envoyxds.VisitorAttributes(key)))
		arm := UpstreamName(p, envoyxds.Arm{})
		arm = arm[:strings.LastIndex(arm, "_")+1]
		entries = append(entries, fmt.Sprintf(`"~^%s" $%s_new`, literal(arm), name))
	}
	w.mapped("$proxy_host", "plb_setcookie", "", entries...)
}
