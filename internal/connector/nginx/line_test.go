// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

const header190 = "<190>Nov 30 06:51:16 plb: "

func TestALineIsRead(t *testing.T) {
	got, err := ParseLine([]byte(header190 + "plb_shop_web_80_canary_forced.7 201 1764485476.123 0.023 10.1.0.9:8080, 10.1.0.3:8080"))
	if err != nil {
		t.Fatal(err)
	}
	want := Line{envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "canary", Forced: true}, 7, 201, netip.MustParseAddrPort("10.1.0.3:8080"), time.UnixMilli(1764485476100)}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestTheLastEndpointHasAnswered(t *testing.T) {
	for asked, want := range map[string]string{
		"10.1.0.3:8080":                                "10.1.0.3:8080",
		"[fd00::1]:8080":                               "[fd00::1]:8080",
		"10.1.0.9:8080, 10.1.0.3:8080":                 "10.1.0.3:8080",
		"10.1.0.9:8080, 10.1.0.8:8080 : 10.1.0.3:8080": "10.1.0.3:8080",
		"-":                        "",
		"":                         "",
		"plb_shop_web_80_canary.7": "",
	} {
		got := lastEndpoint(asked)
		if got.IsValid() != (want != "") || got.IsValid() && got.String() != want {
			t.Errorf("of %q the endpoint is %v, want %q", asked, got, want)
		}
	}
}

func TestALineOfAnotherIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                   "",
		"without a mark":          "plb_shop_web_80_canary.7 201 1.000 0.000 -",
		"another upstream":        header190 + "web 201 1.000 0.000 -",
		"without an endpoint":     header190 + "plb_shop_web_80_canary.7 201 1.000 0.000",
		"a status of words":       header190 + "plb_shop_web_80_canary.7 - 1.000 0.000 -",
		"a status above all":      header190 + "plb_shop_web_80_canary.7 1000 1.000 0.000 -",
		"a time without decimals": header190 + "plb_shop_web_80_canary.7 200 1 0.000 -",
		"a time below zero":       header190 + "plb_shop_web_80_canary.7 200 1.000 -1.000 -",
		"a time without end":      header190 + "plb_shop_web_80_canary.7 200 1000000000000000.000 0.000 -",
	} {
		t.Run(name, func(t *testing.T) {
			if line, err := ParseLine([]byte(text)); err == nil {
				t.Errorf("it is read as %+v", line)
			}
		})
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(header190 + "plb_shop_web_80_canary.7 201 1764485476.123 0.023 10.1.0.9:8080, 10.1.0.3:8080"))
	f.Add([]byte(header190 + "plb_shop_web_80__forced.0 499 0.000 0.000 -\n"))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		line, err := ParseLine(datagram)
		if err != nil {
			return
		}
		p := envoyxds.Port{Namespace: line.Arm.Namespace, Service: line.Arm.Service, Number: line.Arm.Port, Sequence: line.Sequence}
		name := UpstreamName(p, envoyxds.Arm{Variation: line.Arm.Variation, Forced: line.Arm.Forced})
		if line.Status < 0 || line.Status > 999 || !bytes.Contains(datagram, []byte(name)) {
			t.Errorf("%q is read as %+v", datagram, line)
		}
	})
}

func TestTheVersionIsRead(t *testing.T) {
	for said, loses := range map[string]bool{
		"nginx version: nginx/1.31.3": false, "nginx version: nginx/1.27.4": false, "nginx version: nginx/1.27.3 (Ubuntu)": true,
		"nginx version: nginx/1.22.1": true, "nginx version: nginx/2.0.0": false,
	} {
		v, err := ParseVersion(said)
		if err != nil || v.LosesRequests() != loses {
			t.Errorf("%s is %v and loses requests: %v, want %v (%v)", said, v, v.LosesRequests(), loses, err)
		}
	}
	for _, said := range []string{"", "nginx version: openresty/1.27.1.1", "nginx/1.27"} {
		if v, err := ParseVersion(said); err == nil {
			t.Errorf("%q is version %v", said, v)
		}
	}
}
