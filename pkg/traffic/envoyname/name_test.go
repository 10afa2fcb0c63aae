// SPDX-License-Identifier: Apache-2.0

package envoyname_test

import (
	"regexp"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
)

func TestParseSlotRefusesWhatIsNotOurs(t *testing.T) {
	for _, name := range []string{"", "xds", "shop/web|80", "shop/web|080|", "shop/web|65536|", "shop|80|", "shop/web|80|a|b", "shop/web|80|a|forced|forced"} {
		if slot, ours := envoyname.ParseSlot(name); ours {
			t.Errorf("%q reads as %+v", name, slot)
		}
	}
}

// What the statistics are filtered by has to tell clusters of a split from others.
func TestMeasuredClusters(t *testing.T) {
	measured := regexp.MustCompile("^" + envoyname.Measured + "upstream_rq_time$")
	for name, want := range map[string]bool{
		"shop/web|80|canary": true, "shop/web|80|": false, "shop/web|80|canary|forced": false, "xds": false,
	} {
		if got := measured.MatchString("cluster." + name + ".upstream_rq_time"); got != want {
			t.Errorf("%s is measured: %t, want %t", name, got, want)
		}
	}
}
