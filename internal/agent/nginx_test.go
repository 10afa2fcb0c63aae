// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/connector/nginx/carry"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// Each request is told once, whatever the moment of the call is.
func TestRequestsOfAnNginxAreCountedSinceTheCallBefore(t *testing.T) {
	address := freeport.Address(t)
	lines, err := carry.Listen(netip.MustParseAddrPort(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lines.Close() })
	n := NewNGINX(carry.Config{Lines: lines})
	log, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	slot := envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "canary"}
	var sum Counted
	for i, status := range []int{200, 404, 503, 499} {
		if _, err := fmt.Fprintf(log, "<190>Nov 30 06:51:16 plb: plb_shop_web_80_canary.7 %d 1.000 0.000 10.1.0.3:8080", status); err != nil {
			t.Fatal(err)
		}
		poll.Until(t, patience, "the line is counted", func() error {
			counted, err := n.Count(t.Context())
			c := counted[slot]
			sum = Counted{
				Answered: sum.Answered + c.Answered, Failed: sum.Failed + c.Failed,
				ClientErrors: sum.ClientErrors + c.ClientErrors, GivenUp: sum.GivenUp + c.GivenUp,
			}
			if err == nil && sum.Answered+sum.GivenUp != uint64(i+1) { //nolint:gosec // small
				err = fmt.Errorf("counted %+v", sum)
			}
			return err
		})
	}
	if want := (Counted{Answered: 3, Failed: 1, ClientErrors: 1, GivenUp: 1}); sum != want {
		t.Errorf("counted %+v, want %+v", sum, want)
	}
}
