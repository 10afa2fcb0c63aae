// SPDX-License-Identifier: Apache-2.0

package envoyname_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
)

func TestParseSlotRefusesWhatIsNotOurs(t *testing.T) {
	for _, name := range []string{"", "xds", "shop/web|80", "shop/web|080|", "shop/web|65536|", "shop|80|", "shop/web|80|a|b", "shop/web|80|a|forced|forced"} {
		if slot, ours := envoyname.ParseSlot(name); ours {
			t.Errorf("%q reads as %+v", name, slot)
		}
	}
}

func TestANameReadsAsTheSlotThatItStandsFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := envoyname.Slot{
			Namespace: rapid.StringMatching(`[a-z][a-z0-9-]{0,62}`).Draw(t, "namespace"),
			Service:   rapid.StringMatching(`[a-z][a-z0-9-]{0,62}`).Draw(t, "service"),
			Port:      rapid.Uint16().Draw(t, "port"),
			Variation: rapid.StringMatching(`([a-z][a-z0-9-]{0,62})?`).Draw(t, "variation"),
			Forced:    rapid.Bool().Draw(t, "forced"),
		}
		got, ours := envoyname.ParseSlot(want.String())
		if diff := cmp.Diff(want, got); !ours || diff != "" {
			t.Errorf("%q is ours: %t (-want +got):\n%s", want, ours, diff)
		}
	})
}

func TestTheNameOfACluster(t *testing.T) {
	for want, slot := range map[string]envoyname.Slot{
		"shop/web|80|":              {Namespace: "shop", Service: "web", Port: 80},
		"shop/web|80|canary":        {Namespace: "shop", Service: "web", Port: 80, Variation: "canary"},
		"shop/web|80|canary|forced": {Namespace: "shop", Service: "web", Port: 80, Variation: "canary", Forced: true},
	} {
		if got := slot.String(); got != want {
			t.Errorf("the name is %q, want %q", got, want)
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
