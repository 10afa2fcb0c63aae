// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

const header190 = "<190>Nov 30 06:51:16 plb: "

func TestALineIsRead(t *testing.T) {
	got, err := ParseLine([]byte(header190 + "plb_shop_web_80_canary_forced.7 201 1764485476.123 0.023"))
	if err != nil {
		t.Fatal(err)
	}
	want := Line{envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "canary", Forced: true}, 7, 201, time.UnixMilli(1764485476100)}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestALineOfAnotherIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                   "",
		"without a mark":          "plb_shop_web_80_canary.7 201 1.000 0.000",
		"another upstream":        header190 + "web 201 1.000 0.000",
		"a field more":            header190 + "plb_shop_web_80_canary.7 201 1.000 0.000 5",
		"a status of words":       header190 + "plb_shop_web_80_canary.7 - 1.000 0.000",
		"a status above all":      header190 + "plb_shop_web_80_canary.7 1000 1.000 0.000",
		"a time without decimals": header190 + "plb_shop_web_80_canary.7 200 1 0.000",
		"a time below zero":       header190 + "plb_shop_web_80_canary.7 200 1.000 -1.000",
		"a time without end":      header190 + "plb_shop_web_80_canary.7 200 1000000000000000.000 0.000",
	} {
		t.Run(name, func(t *testing.T) {
			if line, err := ParseLine([]byte(text)); err == nil {
				t.Errorf("it is read as %+v", line)
			}
		})
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(header190 + "plb_shop_web_80_canary.7 201 1764485476.123 0.023"))
	f.Add([]byte(header190 + "plb_shop_web_80__forced.0 499 0.000 0.000\n"))
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

func TestARequestCountsOnce(t *testing.T) {
	var got Counts
	for _, status := range []int{200, 101, 404, 499, 500, 504} {
		got = got.Add(status)
	}
	if want := (Counts{Answered: 5, Failed: 2, ClientErrors: 1, GivenUp: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
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
