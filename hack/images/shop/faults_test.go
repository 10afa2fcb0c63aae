// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseFaults(t *testing.T) {
	cases := map[string]struct {
		text, wantErr string
		want          faults
	}{
		"no text has no faults":           {},
		"each fault has its unit":         {text: "errors=5, hangs=0.5,calls=100,delay=300ms,crash=10s,hoards=20s", want: faults{Errors: 0.05, Hangs: 0.005, CallErrors: 1, Delay: 300 * time.Millisecond, Crash: 10 * time.Second, Hoard: 20 * time.Second}},
		"a share over 100 is refused":     {text: "errors=101", wantErr: `SHOP_FAULTS has "errors=101": want a percentage from 0 to 100`},
		"a share that is none is refused": {text: "hangs=NaN", wantErr: `SHOP_FAULTS has "hangs=NaN": want a percentage from 0 to 100`},
		"a delay without unit is refused": {text: "delay=3", wantErr: `SHOP_FAULTS has "delay=3": want a duration such as 300ms`},
		"a negative age is refused":       {text: "crash=-1s", wantErr: `SHOP_FAULTS has "crash=-1s": want a duration such as 300ms`},
		"an unknown fault is refused":     {text: "error=5", wantErr: `SHOP_FAULTS has "error=5": want errors, hangs, calls, delay, crash or hoards`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseFaults(tc.text)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.wantErr, message); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAShareOfTheOrdersFailsAndHealthStaysGood(t *testing.T) {
	shop := httptest.NewServer(serving(t, config{Name: "pay", Version: "v2", Faults: faults{Errors: 0.05}}))
	defer shop.Close()
	o, err := newOrders(visitConfig{URL: shop.URL})
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(1, 0, o.send)
	for range 200 {
		if one, ok := v.begin(); ok {
			v.visit(t.Context(), one)
		}
	}
	seen := v.report()
	if seen.LastSent["v2"].IsZero() {
		t.Error("no order of v2 has a time")
	}
	seen.Slowest, seen.LastSent = 0, nil
	if diff := cmp.Diff(visits{Started: 200, Settled: 200, Answered: map[string]uint64{"v2": 190}, Moved: map[string]uint64{}, Failed: 10, Spoiled: 10, Failures: []string{}}, seen); diff != "" {
		t.Errorf("what became of the orders (-want +got):\n%s", diff)
	}
	health, err := http.Get(shop.URL + "/healthz") //nolint:noctx // a test's own server
	if err != nil || health.StatusCode != http.StatusOK {
		t.Fatalf("health: %v, %v", health, err)
	}
	_ = health.Body.Close()
}

func TestCallsOfABadVersionFailWithACode(t *testing.T) {
	shop := httptest.NewUnstartedServer(serving(t, config{Name: "pay", Version: "v2", Faults: faults{CallErrors: 0.5}}))
	shop.Config.Protocols = protocols()
	shop.Start()
	defer shop.Close()
	c, err := newCalls(visitConfig{URL: shop.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	v := newVisitor(1, 0, c.send)
	for range 10 {
		if one, ok := v.begin(); ok {
			v.visit(t.Context(), one)
		}
	}
	if seen := v.report(); seen.Spoiled != 5 || seen.Answered["v2"] != 5 {
		t.Errorf("calls: %+v", seen)
	}
}
