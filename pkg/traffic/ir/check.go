// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// VisitorHeader carries the id that a proxy makes for each request. What a client
// sends under this name is overwritten.
const VisitorHeader = "x-plb-visitor"

// Bounds of what goes into the configuration of every proxy.
const (
	// MaxName is the most characters of a header's or a cookie's name.
	MaxName = 64
	// MaxMatches is the most values of a header that are mapped.
	MaxMatches = 64
	// MaxValue is the most characters of such a value.
	MaxValue = 256
)

var (
	// token is that of https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2, which
	// names of headers and cookies are.
	token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	salt  = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)
	value = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)
)

// reserved are headers that belong to a connection or that proxies make.
var reserved = []string{
	"connection", "content-length", "cookie", "expect", "host", "keep-alive", "proxy-authenticate",
	"proxy-authorization", "proxy-connection", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade", VisitorHeader,
}

// Check lists what keeps proxies from carrying out a split. Salt, names and values end up in patterns
// and formats of Envoy, so only what means nothing there is let through or escaped.
func Check(s traffic.Split) []Problem {
	var found []Problem
	add := func(reason Reason, err error) {
		if err != nil {
			found = append(found, Problem{Object: objectOf(s), Reason: reason, Message: err.Error(), Refused: true})
		}
	}
	add(InvalidSplit, s.Shares.Validate())
	if found != nil {
		return found
	}
	add(InvalidVariation, s.ValidateVariations())
	add(InvalidKey, checkKey(s.Key))
	if s.Key.Kind != traffic.PerRequest && !salt.MatchString(s.Salt) {
		add(InvalidSalt, fmt.Errorf("the salt %q is not 1 to 64 letters, digits, _ or -", short(s.Salt)))
	}
	if s.Override != "" {
		add(InvalidHeader, checkHeader(s.Override))
	}
	if s.Match.Header != "" || len(s.Match.Values) > 0 {
		add(InvalidHeader, checkHeader(s.Match.Header))
		add(InvalidMatch, cmp.Or(s.ValidateMatch(), checkMatch(s.Match)))
	}
	return found
}

func checkMatch(m traffic.Match) error {
	if n := len(m.Values); n == 0 || n > MaxMatches {
		return fmt.Errorf("%d values of header %s are mapped, want 1 to %d", n, short(m.Header), MaxMatches)
	}
	for _, v := range slices.Sorted(maps.Keys(m.Values)) { // the first of several mistakes is the same each time
		if len(v) > MaxValue || !value.MatchString(v) {
			return fmt.Errorf("header %s: %q is not 1 to %d printable characters without spaces around", m.Header, short(v), MaxValue)
		}
	}
	return nil
}

func checkKey(k traffic.Key) error {
	switch k.Kind {
	case traffic.PerRequest:
		return nil
	case traffic.ByHeader:
		return checkHeader(k.Name)
	case traffic.ByCookie, traffic.ByVisitor:
		lower := strings.ToLower(k.Name)
		switch {
		case len(k.Name) > MaxName || !token.MatchString(k.Name):
			return fmt.Errorf("the cookie's name %q is not 1 to %d characters of a token", short(k.Name), MaxName)
		case k.Kind == traffic.ByVisitor && !k.Secure && (strings.HasPrefix(lower, "__host-") || strings.HasPrefix(lower, "__secure-")):
			return fmt.Errorf("browsers take cookie %s with the attribute Secure alone: set secure to Always, or name it otherwise", k.Name)
		case k.Domain != "" && strings.HasPrefix(lower, "__host-"):
			return fmt.Errorf("browsers take cookie %s without a domain alone: take the domain out, or name it otherwise", k.Name)
		case k.Domain != "" && (!strings.Contains(k.Domain, ".") || len(validation.IsDNS1123Subdomain(k.Domain)) > 0):
			return fmt.Errorf("the cookie's domain %q is not named as example.com", short(k.Domain))
		}
		return nil
	default:
		return fmt.Errorf("visitors cannot be known by kind %d", int(k.Kind))
	}
}

func checkHeader(name string) error {
	lower := strings.ToLower(name)
	switch {
	case len(name) > MaxName || !token.MatchString(name):
		return fmt.Errorf("the header's name %q is not 1 to %d characters of a token", short(name), MaxName)
	case slices.Contains(reserved, lower), strings.HasPrefix(lower, "x-envoy-"), strings.HasPrefix(lower, "x-plb-"):
		return fmt.Errorf("header %s belongs to the connection or to proxies: name another", lower)
	}
	return nil
}

// short keeps a message readable when what is wrong is that something is too long.
func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
