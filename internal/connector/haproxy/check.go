// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// label is a name of Kubernetes that can stand in a name of HAProxy; "" is the variation of a
// Service without a split.
var label = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$`)

// plain are names of headers and cookies that mean themselves in an argument of HAProxy in single
// quotes: the tokens of RFC 9110 without '.
var plain = regexp.MustCompile("^[!#$%&*+.^_`|~0-9A-Za-z-]{1,64}$")

// plainSalt and plainDomain mean themselves there as well.
var (
	plainSalt   = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)
	plainDomain = regexp.MustCompile(`^[0-9A-Za-z.-]{0,253}$`)
)

// Check lists what keeps HAProxy from carrying a port out; nil if nothing does.
func Check(p envoyxds.Port) error {
	var errs []error
	add := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	add(p.Namespace != "" && p.Service != "" && label.MatchString(p.Namespace) && label.MatchString(p.Service), "the Service %q is not named as Kubernetes names it", p.Namespace+"/"+p.Service)
	add(p.Request == 0, "HAProxy has no time-out of a whole request: remove the annotation plumbline.dev/request-timeout (%s)", p.Request)
	arms := map[string]bool{}
	for _, a := range p.Arms {
		add(label.MatchString(a.Variation), "variation %q is not named with small letters, digits and hyphens", a.Variation)
		arms[a.Variation] = true
	}
	if d := p.Division; d != nil {
		errs = append(errs, checkDivision(d, arms))
	}
	return errors.Join(errs...)
}

func checkDivision(d *envoyxds.Division, arms map[string]bool) error {
	var errs []error
	if most := countSegments(len(arms)); len(d.Segments) > most {
		errs = append(errs, fmt.Errorf("%d segments are more than the %d that %d variations have", len(d.Segments), most, len(arms)))
	}
	name := func(what, text string) {
		if !plain.MatchString(text) {
			errs = append(errs, fmt.Errorf("the %s %q has a character that HAProxy cannot have in a name: rename it", what, text))
		}
	}
	switch d.Key.Kind {
	case traffic.PerRequest:
	case traffic.ByHeader:
		name("header", d.Key.Name)
	case traffic.ByCookie, traffic.ByVisitor:
		name("cookie", d.Key.Name)
	default:
		errs = append(errs, fmt.Errorf("visitors cannot be known by kind %d", int(d.Key.Kind)))
	}
	if d.Key.Kind != traffic.PerRequest && !plainSalt.MatchString(d.Salt) {
		errs = append(errs, fmt.Errorf("the salt %q is not 1 to 64 letters, digits, _ or -", d.Salt))
	}
	if !plainDomain.MatchString(d.Key.Domain) {
		errs = append(errs, fmt.Errorf("the cookie's domain %q is not named as example.com", d.Key.Domain))
	}
	for _, f := range d.Forced {
		name("header", f.Header)
		if strings.ContainsAny(f.Value, "\r\n\x00") || f.Value == "" {
			errs = append(errs, fmt.Errorf("header %s: %q is no value of a header", f.Header, f.Value))
		}
	}
	return errors.Join(errs...)
}
