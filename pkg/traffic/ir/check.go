// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
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

// Check lists what is wrong with a split by itself. Salt, names and values end up in patterns
// and formats of Envoy, so only what means nothing there is let through or escaped.
func (s Split) Check() []Problem {
	var found []Problem
	add := func(reason Reason, err error) {
		if err != nil {
			found = append(found, Problem{Object: s.object(), Reason: reason, Message: err.Error(), Refused: true})
		}
	}
	add(InvalidSplit, s.Shares.Validate())
	if found != nil {
		return found
	}
	add(InvalidVariation, s.checkVariations())
	add(InvalidKey, s.Key.check())
	if s.Key.Kind != PerRequest && !salt.MatchString(s.Salt) {
		add(InvalidSalt, fmt.Errorf("the salt %q is not 1 to 64 letters, digits, _ or -", short(s.Salt)))
	}
	if s.Override != "" {
		add(InvalidHeader, checkHeader(s.Override))
	}
	if s.Match.Header != "" || len(s.Match.Values) > 0 {
		add(InvalidHeader, checkHeader(s.Match.Header))
		add(InvalidMatch, s.checkMatch())
	}
	return found
}

func (s Split) checkVariations() error {
	for _, v := range s.Variations {
		switch {
		case !s.has(v.Name):
			return fmt.Errorf("variation %q has no weight: give it one, if need be 0", short(v.Name))
		case len(validation.IsDNS1123Label(v.Name)) > 0:
			return fmt.Errorf("variation %q is not named with small letters, digits and hyphens", short(v.Name))
		case (v.Selector == nil) == (v.Workload == nil):
			return fmt.Errorf("variation %s needs a selector or a workload, and not both", v.Name)
		}
		if v.Selector == nil {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(v.Selector); err != nil || selector.Empty() {
			return fmt.Errorf("variation %s needs a valid selector that does not select all pods", v.Name)
		}
	}
	for _, share := range s.Shares {
		if n := s.count(share.Variation); n != 1 {
			return fmt.Errorf("%s has a weight and is declared %d times: declare it once", share.Variation, n)
		}
	}
	return nil
}

func (s Split) count(variation string) int {
	n := 0
	for _, v := range s.Variations {
		if v.Name == variation {
			n++
		}
	}
	return n
}

func (s Split) has(variation string) bool {
	for _, share := range s.Shares {
		if share.Variation == variation {
			return true
		}
	}
	return false
}

func (s Split) checkMatch() error {
	if n := len(s.Match.Values); n == 0 || n > MaxMatches {
		return fmt.Errorf("%d values of header %s are mapped, want 1 to %d", n, short(s.Match.Header), MaxMatches)
	}
	for v, variation := range sortedBy(s.Match.Values) {
		switch {
		case !s.has(variation):
			return fmt.Errorf("header %s: %q goes to %q, which is no variation", s.Match.Header, short(v), short(variation))
		case len(v) > MaxValue || !value.MatchString(v):
			return fmt.Errorf("header %s: %q is not 1 to %d printable characters without spaces around", s.Match.Header, short(v), MaxValue)
		}
	}
	return nil
}

func (k Key) check() error {
	switch k.Kind {
	case PerRequest:
		return nil
	case ByHeader:
		return checkHeader(k.Name)
	case ByCookie, ByVisitor:
		lower := strings.ToLower(k.Name)
		switch {
		case len(k.Name) > MaxName || !token.MatchString(k.Name):
			return fmt.Errorf("the cookie's name %q is not 1 to %d characters of a token", short(k.Name), MaxName)
		case k.Kind == ByVisitor && !k.Secure && (strings.HasPrefix(lower, "__host-") || strings.HasPrefix(lower, "__secure-")):
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

// sortedBy makes which of several mistakes is told the same each time.
func sortedBy(m map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
