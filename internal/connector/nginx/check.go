// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

var (
	// label is a name of Kubernetes; "" is the variation of a Service without a split.
	label = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$`)
	// plainHeader can stand in the name of a variable, after hyphens are underscores.
	plainHeader = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
	// plainCookie, plainSalt and plainDomain mean themselves between double quotes.
	plainCookie = regexp.MustCompile(`^[0-9A-Za-z_.-]{1,64}$`)
	plainSalt   = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)
	plainDomain = regexp.MustCompile(`^[0-9A-Za-z.-]{0,253}$`)
)

// Check lists the reasons that keep nginx from carrying a port out; nil if there are none.
func Check(p envoyxds.Port) error {
	var errs []error
	add := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	add(p.Namespace != "" && p.Service != "" && label.MatchString(p.Namespace) && label.MatchString(p.Service), "the Service %q is not named as Kubernetes names it", p.Namespace+"/"+p.Service)
	add(p.Request == 0, "nginx has no time-out of a whole request: remove the annotation plumbline.dev/request-timeout (%s)", p.Request)
	add(!p.RetriesOff, "an upstream of nginx cannot turn retries off: remove the annotation, and write proxy_next_upstream off in the location")
	arms := map[string]bool{}
	for _, a := range p.Arms {
		add(label.MatchString(a.Variation), "variation %q is not named with small letters, digits and hyphens", a.Variation)
		arms[a.Variation] = true
	}
	if d := p.Division; d != nil {
		add(p.Protocol != ir.HTTP2 || d.Key.Kind != traffic.ByVisitor, "nginx gives no cookie to visitors of grpc_pass: keep visitors by a header")
		errs = append(errs, checkDivision(d, arms))
	}
	return errors.Join(errs...)
}

func checkDivision(d *envoyxds.Division, arms map[string]bool) error {
	var errs []error
	name := func(what string, plain *regexp.Regexp, text string) {
		if !plain.MatchString(text) {
			errs = append(errs, fmt.Errorf("the %s %q has a character that nginx cannot have in a name: rename it", what, text))
		}
	}
	known := func(variation string) {
		if !arms[variation] {
			errs = append(errs, fmt.Errorf("variation %q has no arm", variation))
		}
	}
	switch d.Key.Kind {
	case traffic.PerRequest:
	case traffic.ByHeader:
		name("header", plainHeader, d.Key.Name)
	case traffic.ByCookie, traffic.ByVisitor:
		name("cookie", plainCookie, d.Key.Name)
	default:
		errs = append(errs, fmt.Errorf("visitors cannot be known by kind %d", int(d.Key.Kind)))
	}
	if d.Key.Kind != traffic.PerRequest && !plainSalt.MatchString(d.Salt) {
		errs = append(errs, fmt.Errorf("the salt %q is not 1 to 64 letters, digits, _ or -", d.Salt))
	}
	if !plainDomain.MatchString(d.Key.Domain) {
		errs = append(errs, fmt.Errorf("the cookie's domain %q is not named as example.com", d.Key.Domain))
	}
	total := traffic.Weight(0)
	for _, s := range d.Segments {
		known(s.Variation)
		total += s.Weight
	}
	if total != traffic.Total {
		errs = append(errs, fmt.Errorf("the segments have %d of %d", total, traffic.Total))
	}
	for _, f := range d.Forced {
		known(f.Variation)
		name("header", plainHeader, f.Header)
		if strings.ContainsAny(f.Value, "\r\n\x00") || f.Value == "" {
			errs = append(errs, fmt.Errorf("header %s: %q is no value of a header", f.Header, f.Value))
		}
	}
	return errors.Join(errs...)
}
