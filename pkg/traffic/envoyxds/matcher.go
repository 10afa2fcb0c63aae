// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"regexp"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// is matches a header that has exactly one value.
func is(header, value string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: header, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: exact(value)}}
}

// filled matches a header that is there and not empty.
func filled(header string) *routev3.HeaderMatcher {
	m := is(header, "")
	m.InvertMatch, m.TreatMissingHeaderAsEmpty = true, true
	return m
}

func exact(text string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: text}}
}

func regex(pattern string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: pattern}}}
}

// saltEnd follows the salt in the text that is hashed. No salt has it.
const saltEnd = "|"

// hash has Envoy hash a header of which a pattern is replaced by the salt and what
// follows it. Where the pattern does not match Envoy hashes the header as it is.
func (r router) hash(header, pattern, rest string) *routev3.RouteAction_HashPolicy {
	return &routev3.RouteAction_HashPolicy{PolicySpecifier: &routev3.RouteAction_HashPolicy_Header_{
		Header: &routev3.RouteAction_HashPolicy_Header{
			HeaderName: header,
			RegexRewrite: &matcherv3.RegexMatchAndSubstitute{
				Pattern:      &matcherv3.RegexMatcher{Regex: pattern},
				Substitution: r.division.Salt + saltEnd + rest,
			},
		},
	}}
}

// cookiePattern matches a whole Cookie header and finds the value of the first cookie
// of a name, as Envoy's cookie matcher does. \C is any byte: other cookies need not
// be UTF-8, and a pattern that did not match would have all of them hashed.
func cookiePattern(name string) string {
	return `^(?:\C*?;[ \t]*)??` + regexp.QuoteMeta(name) + `=([^;]*)\C*$`
}
