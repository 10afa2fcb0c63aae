// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
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
