// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"fmt"
	"strings"
	"testing"
)

const smallestRelease = `{serviceName: web, stable: stable, variations: [{name: stable, workload: {kind: Deployment, name: web}}, {name: canary, workload: {kind: Deployment, name: web-canary}}], trafficSplit: {type: Percentage, percentages: {stable: 90, canary: 10}}}`

// variations of a release: the stable one, and these.
func variations(others string) string {
	return "variations: [{name: stable, workload: {kind: Deployment, name: web}}, " + others + "]"
}

func TestABRelease_Fields(t *testing.T) {
	const canary = "{name: canary, workload: {kind: Deployment, name: web-canary}}"
	split := func(more string) string { return "trafficSplit: {" + more + "}" }
	const percentages = "percentages: {stable: 90, canary: 10}"
	const at, to = "spec.trafficSplit", "spec.variations"
	runSpecCases(t, "ABRelease", smallestRelease, map[string]specCase{
		"the smallest release is accepted":                      {},
		"a canary without a share is accepted":                  {spec: split("type: Percentage, percentages: {stable: 100, canary: 0}")},
		"one with all of it is accepted":                        {spec: split("type: Percentage, percentages: {stable: 0, canary: 100}")},
		"a cookie is accepted":                                  {spec: split("type: Sticky, sticky: {cookie: shop}, " + percentages)},
		"a header that visitors are known by is accepted":       {spec: split("type: Sticky, sticky: {header: X-User}, " + percentages)},
		"a header map is accepted":                              {spec: split(`type: Header, headerMatch: {header: X-Beta, values: {"yes": canary}}, overrideHeader: X-Variation, ` + percentages)},
		"an acknowledgment is accepted":                         {spec: "acknowledgment: {deadline: 90s, onTimeout: Proceed, namespaces: Same}"},
		"a deadline that no proxy could keep is refused":        {"acknowledgment: {deadline: 5s}", []string{"spec.acknowledgment.deadline"}, "from 10s to 168h"},
		"a deadline that is no duration is refused":             {"acknowledgment: {deadline: soon}", []string{"spec.acknowledgment.deadline"}, "from 10s to 168h"},
		"a policy that does not exist is refused":               {"acknowledgment: {onTimeout: Abort}", []string{"spec.acknowledgment.onTimeout"}, "Unsupported value"},
		"namespaces by name are refused":                        {"acknowledgment: {namespaces: pay}", []string{"spec.acknowledgment.namespaces"}, "Unsupported value"},
		"no service is refused":                                 {"serviceName: ''", []string{"spec.serviceName"}, "should be at least 1 chars"},
		"a service of another namespace is refused":             {"serviceName: other/web", []string{"spec.serviceName"}, "should match"},
		"one variation is refused":                              {"variations: [{name: stable, workload: {kind: Deployment, name: web}}]", []string{to, at + ".percentages"}, "should have at least 2 items"},
		"a variation twice is refused":                          {variations("{name: stable, workload: {kind: Deployment, name: x}}, " + canary), []string{to + "[1]"}, "Duplicate value"},
		"a variation of nothing is refused":                     {variations("{name: canary}"), []string{to + "[1]"}, "either a workload or a selector"},
		"a variation of both is refused":                        {variations("{name: canary, workload: {kind: Deployment, name: x}, selector: {matchLabels: {a: b}}}"), []string{to + "[1]"}, "either a workload or a selector"},
		"an empty selector is refused":                          {variations("{name: canary, selector: {}}"), []string{to + "[1].selector"}, "an empty selector selects every pod"},
		"two variations of one workload are refused":            {variations("{name: canary, workload: {kind: Deployment, name: web}}"), []string{to}, "two variations have the same workload"},
		"a workload of a kind that has no pods is refused":      {variations("{name: canary, workload: {kind: Service, name: x}}"), []string{to + "[1].workload.kind"}, "Unsupported value"},
		"a stable one that is not the first is accepted":        {spec: "stable: canary"},
		"a stable one that is no variation is refused":          {"stable: other", []string{"spec.stable"}, "stable names no variation"},
		"no stable one is refused":                              {"stable: ''", []string{"spec.stable"}, "should be at least 1 chars"},
		"a salt is accepted":                                    {spec: "salt: spring-sale"},
		"a salt of 65 characters is refused":                    {"salt: " + strings.Repeat("s", 65), []string{"spec.salt"}, "may not be more than 64"},
		"a quarter of a percent is accepted":                    {spec: split(`type: Percentage, percentages: {stable: "99.75", canary: "0.25"}`)},
		"a half and a whole number are accepted":                {spec: split(`type: Percentage, percentages: {stable: 99, canary: "1.0"}`)},
		"a tenth, as binary floats round it, is accepted":       {spec: split(`type: Percentage, percentages: {stable: "99.71", canary: "0.29"}`)},
		"a share of half a percent beyond its range is refused": {variations("{name: canary, reserved: 10, workload: {kind: Deployment, name: x}}") + "\n" + split(`type: Percentage, percentages: {stable: "89.5", canary: "10.5"}`), []string{to}, "reserve more"},
		"a hundredth too much is refused":                       {split(`type: Percentage, percentages: {stable: "99.75", canary: "0.26"}`), []string{at + ".percentages"}, "must add up to 100"},
		"three decimals are refused":                            {split(`type: Percentage, percentages: {stable: "99.875", canary: "0.125"}`), []string{at + ".percentages.canary", at + ".percentages.stable"}, "should match"},
		"a percentage in words is refused":                      {split(`type: Percentage, percentages: {stable: most, canary: few}`), []string{at + ".percentages.canary", at + ".percentages.stable", at}, "should match"},
		"a percent sign is refused":                             {split(`type: Percentage, percentages: {stable: "90%", canary: "10%"}`), []string{at + ".percentages.canary", at + ".percentages.stable", at}, "should match"},
		"a range of the stable one is refused":                  {"variations: [{name: stable, reserved: 50, workload: {kind: Deployment, name: web}}, " + canary + "]", []string{to}, "leave reserved out for it"},
		"a share beyond its range is refused":                   {variations("{name: canary, reserved: 5, workload: {kind: Deployment, name: x}}"), []string{to}, "reserve more"},
		"percentages that do not add up are refused":            {split("type: Percentage, percentages: {stable: 90, canary: 20}"), []string{at + ".percentages"}, "must add up to 100"},
		"a percentage beyond 100 is refused":                    {split("type: Percentage, percentages: {stable: -1, canary: 101}"), []string{at + ".percentages"}, "must not be negative"},
		"a variation without a percentage is refused":           {split("type: Percentage, percentages: {stable: 90, other: 10}"), []string{at + ".percentages"}, "must name a variation"},
		"an unknown variation in a header map is refused":       {split("type: Header, headerMatch: {header: x, values: {a: other}}, " + percentages), []string{at + ".headerMatch.values"}, "each value of the header must go to a variation"},
		"a header map of another type is refused":               {split("type: Percentage, headerMatch: {header: x, values: {a: canary}}, " + percentages), []string{at + ".headerMatch"}, "only type Header"},
		"type Header without a map is refused":                  {split("type: Header, " + percentages), []string{at + ".headerMatch"}, "needs headerMatch"},
		"type Sticky without a key is refused":                  {split("type: Sticky, " + percentages), []string{at + ".sticky"}, "needs sticky"},
		"type Percentage with a key is refused":                 {split("type: Percentage, sticky: {cookie: a}, " + percentages), []string{at + ".sticky"}, "use Sticky"},
		"a key of both kinds is refused":                        {split("type: Sticky, sticky: {cookie: a, header: b}, " + percentages), []string{at + ".sticky"}, "by a header or by a cookie"},
		"a header that proxies would have to give is refused":   {split("type: Sticky, sticky: {header: b, visitors: Assign}, " + percentages), []string{at + ".sticky.visitors"}, "give visitors no header"},
		"a cookie that browsers take over TLS alone is refused": {split("type: Sticky, sticky: {cookie: __Host-a}, " + percentages), []string{at + ".sticky.cookie"}, "with the attribute Secure alone"},
		"unless it is secure (L4)":                              {spec: split("type: Sticky, sticky: {cookie: __Host-a, secure: Always}, " + percentages)},
		"a cookie of a domain is accepted (L4)":                 {spec: split("type: Sticky, sticky: {cookie: a, domain: shop.example.com, secure: Never}, " + percentages)},
		"a domain that browsers would not keep is refused (L4)": {split("type: Sticky, sticky: {cookie: __Host-a, domain: example.com, secure: Always}, " + percentages), []string{at + ".sticky.domain"}, "only without a domain"},
		"a domain of the application's cookie is refused (L4)":  {split("type: Sticky, sticky: {cookie: a, domain: example.com, visitors: Ignore}, " + percentages), []string{at + ".sticky"}, "the cookie that proxies give"},
		"a header is not secure (L4)":                           {split("type: Sticky, sticky: {header: a, secure: Always}, " + percentages), []string{at + ".sticky"}, "the cookie that proxies give"},
		"a domain with attributes is refused (L4)":              {split("type: Sticky, sticky: {cookie: a, domain: 'example.com; Path=/a'}, " + percentages), []string{at + ".sticky.domain"}, "should match"},
		"unless the application gives it":                       {spec: split("type: Sticky, sticky: {cookie: __Host-a, visitors: Ignore}, " + percentages)},
		"a cookie's name of 200 characters is refused":          {split("type: Sticky, sticky: {cookie: " + strings.Repeat("c", 200) + "}, " + percentages), []string{at + ".sticky.cookie"}, "may not be more than 64"},
		"a cookie with attributes is refused":                   {split("type: Sticky, sticky: {cookie: 'a; Domain=example.com'}, " + percentages), []string{at + ".sticky.cookie"}, "should match"},
		"a header with a line break is refused":                 {split(`type: Sticky, sticky: {header: "a\r\nb: c"}, ` + percentages), []string{at + ".sticky.header"}, "should match"},
		"host is refused":                                       {split("type: Sticky, sticky: {header: Host}, " + percentages), []string{at + ".sticky.header"}, "belongs to the connection or to proxies"},
		"headers of Envoy are refused":                          {split("type: Percentage, overrideHeader: X-Envoy-Any, " + percentages), []string{at + ".overrideHeader"}, "belongs to the connection or to proxies"},
		"headers of ours are refused":                           {split("type: Percentage, overrideHeader: x-plb-visitor, " + percentages), []string{at + ".overrideHeader"}, "belongs to the connection or to proxies"},
		"one header for two purposes is refused":                {split("type: Header, overrideHeader: X, headerMatch: {header: x, values: {a: canary}}, " + percentages), []string{at + ".overrideHeader"}, "look at one header"},
		"more values than are mapped are refused":               {split("type: Header, headerMatch: {header: x, values: {" + mapped(65) + "}}, " + percentages), []string{at + ".headerMatch.values"}, "must have at most 64"},
		"a value that is too long is refused":                   {split("type: Header, headerMatch: {header: x, values: {" + strings.Repeat("v", 257) + ": canary}}, " + percentages), []string{at + ".headerMatch.values"}, "1 to 256 characters"},
		"the seed's spelling of a type is refused":              {split("type: percentage, " + percentages), []string{at + ".type"}, "Unsupported value"},
	})
}

// mapped are n values of a header.
func mapped(n int) string {
	var values []string
	for i := range n {
		values = append(values, fmt.Sprintf("v%d: canary", i))
	}
	return strings.Join(values, ", ")
}

func TestABRelease_Transitions(t *testing.T) {
	create(t, object(t, "ABRelease", "salted", smallestRelease, "salt: sea"))
	create(t, object(t, "ABRelease", "unsalted", smallestRelease))
	runPatchCases(t, "ABRelease", "salted", dryPatch, map[string]patchCase{
		"another salt is refused":              {`{"spec":{"salt":"rock"}}`, []string{"spec.salt"}, "salt is immutable: another salt moves visitors"},
		"a salt that is taken away is refused": {`{"spec":{"salt":null}}`, []string{"spec.salt"}, "salt is set when the release is made"},
		"the same salt is accepted":            {patch: `{"spec":{"salt":"sea"}}`},
		"another service is refused":           {`{"spec":{"serviceName":"other"}}`, []string{"spec.serviceName"}, "serviceName is immutable"},
		"another stable one is accepted":       {patch: `{"spec":{"stable":"canary"}}`},
	})
	runPatchCases(t, "ABRelease", "unsalted", dryPatch, map[string]patchCase{
		"a salt afterwards is refused": {`{"spec":{"salt":"sea"}}`, []string{"spec.salt"}, "salt is set when the release is made"},
	})
}
