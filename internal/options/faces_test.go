// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
)

func TestARangeOfTrustedClientsThatIsNamedTwiceIsOne(t *testing.T) {
	faces := Faces{GatewayTrustedCIDRs: "fd00::/8,10.1.2.3/16, 10.0.0.0/8,10.1.0.0/16,fd00::1/8"}
	got, err := faces.Trusted()
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHostsOfNamespacesAreRefusedWithTheirEntry(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		err  string
	}{
		"none are given":       {"", ""},
		"a list":               {`[{"namespaceSelector":{"matchLabels":{"team":"shop"}},"domains":["*.example.com","a.example.org"]}]`, ""},
		"no JSON":              {"shop=example.com", "reading the hosts of namespaces"},
		"a field of no use":    {`[{"namespace":"shop","domains":["a.example.com"]}]`, `unknown field "namespace"`},
		"no selector":          {`[{"domains":["a.example.com"]}]`, "entry 0 has no namespaceSelector: give it one, {} for all namespaces"},
		"an operator of none":  {`[{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Like"}]},"domains":["a.example.com"]}]`, "namespaceSelector of entry 0"},
		"everything":           {`[{"namespaceSelector":{},"domains":["*"]}]`, `domain "*" of entry 0: want a name`},
		"a name with capitals": {`[{"namespaceSelector":{},"domains":["A.example.com"]}]`, `domain "A.example.com" of entry 0`},
	} {
		t.Run(name, func(t *testing.T) {
			faces := Faces{GatewayHosts: tc.text, GatewayAccount: "a"}
			grants, err := faces.Grants()
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%v, want %q", err, tc.err)
			}
			if errs := faces.validate(); (len(errs) > 0) != (tc.err != "") {
				t.Errorf("validated: %v", errs)
			}
			if tc.err == "" && tc.text != "" && (len(grants) != 1 || !grants[0].Namespaces.Matches(labels.Set{"team": "shop"}) || len(grants[0].Domains) != 2) {
				t.Errorf("it is %+v", grants)
			}
		})
	}
}
