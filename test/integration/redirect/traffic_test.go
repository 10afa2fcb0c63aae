// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redirect

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

const (
	root    = 0
	someone = 1000
)

// visit is a connection, and who is to answer it.
type visit struct {
	uid         int
	network, to string
	want        string
}

func (w world) visits(t *testing.T, visits map[string]visit) {
	t.Helper()
	for name, v := range visits {
		t.Run(name, func(t *testing.T) {
			if got := w.pod.reach(v.uid, v.network, v.to); got != v.want {
				t.Errorf("%q, want %q", got, v.want)
			}
		})
	}
}

func TestOutboundTCPComesToTheProxyAndNothingElseDoes(t *testing.T) {
	w := newWorld(t)
	w.pod.mustRedirect(t, arguments()...)
	captureV4 := fmt.Sprintf("127.0.0.1:%d", inject.CapturePort)
	w.visits(t, map[string]visit{
		"IPv4, of a user":                {someone, "tcp", "198.51.100.1:80", "captured 198.51.100.1:80"},
		"IPv4, of root":                  {root, "tcp", "198.51.100.1:80", "captured 198.51.100.1:80"},
		"IPv4, to where nobody is":       {someone, "tcp", "198.51.100.99:4321", "captured 198.51.100.99:4321"},
		"IPv4, to the next hop":          {someone, "tcp", "192.0.2.1:80", "captured 192.0.2.1:80"},
		"IPv6":                           {someone, "tcp", "[2001:db8:2::1]:80", "captured [2001:db8:2::1]:80"},
		"IPv4 from a socket of IPv6":     {someone, "tcp", "[::ffff:198.51.100.1]:80", "captured 198.51.100.1:80"},
		"the proxy, IPv4":                {proxyUID, "tcp", "198.51.100.1:80", "outside 198.51.100.1:80"},
		"the proxy, IPv6":                {proxyUID, "tcp", "[2001:db8:2::1]:80", "outside [2001:db8:2::1]:80"},
		"an excluded port, IPv4":         {someone, "tcp", "198.51.100.1:5432", "outside 198.51.100.1:5432"},
		"an excluded port, IPv6":         {someone, "tcp", "[2001:db8:2::1]:5432", "outside [2001:db8:2::1]:5432"},
		"an excluded range, IPv4":        {someone, "tcp", "203.0.113.1:80", "outside 203.0.113.1:80"},
		"an excluded range, IPv6":        {someone, "tcp", "[2001:db8:3::1]:80", "outside [2001:db8:3::1]:80"},
		"beside the excluded range":      {someone, "tcp", "203.0.114.1:80", "captured 203.0.114.1:80"},
		"beside the excluded range, 6":   {someone, "tcp", "[2001:db8:3:1::1]:80", "captured [2001:db8:3:1::1]:80"},
		"an address of the link":         {someone, "tcp", "[fe80::1%eth0]:80", "outside [fe80::1%eth0]:80"},
		"UDP, IPv4":                      {someone, "udp", "198.51.100.1:80", "outside climb"},
		"UDP, IPv6":                      {someone, "udp", "[2001:db8:2::1]:80", "outside climb"},
		"loopback, IPv4":                 {someone, "tcp", "127.0.0.1:8080", "pod 127.0.0.1:8080"},
		"loopback, another address":      {someone, "tcp", "127.7.7.7:8080", "pod 127.7.7.7:8080"},
		"loopback, IPv6":                 {someone, "tcp", "[::1]:8080", "pod [::1]:8080"},
		"loopback, UDP":                  {someone, "udp", "127.0.0.1:8080", "pod climb"},
		"the pod's own address, IPv4":    {someone, "tcp", "192.0.2.2:8080", "pod 192.0.2.2:8080"},
		"the pod's own address, IPv6":    {someone, "tcp", "[2001:db8:1::2]:8080", "pod [2001:db8:1::2]:8080"},
		"the capture port by its name":   {someone, "tcp", captureV4, "captured " + captureV4},
		"the proxy to the pod's own":     {proxyUID, "tcp", "192.0.2.2:8080", "pod 192.0.2.2:8080"},
		"the proxy over loopback, again": {proxyUID, "tcp", "127.0.0.1:8080", "pod 127.0.0.1:8080"},
	})
	t.Run("a connection from outside", func(t *testing.T) {
		for _, at := range []string{"192.0.2.2:8080", "[2001:db8:1::2]:8080"} {
			if got, want := w.outside.reach(root, "tcp", at), "pod "+at; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	})
}

func TestWithoutIPv6ItStaysUntouched(t *testing.T) {
	w := newWorld(t)
	w.pod.mustRedirect(t, "--proxy-uid=15700", "--capture-port=15001", "--ipv6=false")
	w.visits(t, map[string]visit{
		"IPv4": {someone, "tcp", "198.51.100.1:80", "captured 198.51.100.1:80"},
		"IPv6": {someone, "tcp", "[2001:db8:2::1]:80", "outside [2001:db8:2::1]:80"},
	})
}

// The kernel begins to follow connections with the first rules, and of one that was
// open it takes the next packet for the first.
func TestAConnectionThatWasOpenBeforeTheRulesGoesOn(t *testing.T) {
	w := newWorld(t)
	opened := map[string]*connection{}
	for name, from := range map[string]struct {
		namespace namespace
		to        string
	}{
		"out, IPv4": {w.pod, "198.51.100.1:80"}, "out, IPv6": {w.pod, "[2001:db8:2::1]:80"},
		"in, IPv4": {w.outside, "192.0.2.2:8080"}, "in, IPv6": {w.outside, "[2001:db8:1::2]:8080"},
	} {
		c, _, err := from.namespace.dial(someone, "tcp", from.to)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		opened[name] = c
	}
	for range 2 {
		w.pod.mustRedirect(t, arguments()...)
		for name, c := range opened {
			t.Run(name, func(t *testing.T) {
				if _, err := fmt.Fprintln(c, "still here"); err != nil {
					t.Fatal(err)
				}
				if line, err := c.line(); err != nil || line != "still here" {
					t.Errorf("%q, %v", line, err)
				}
			})
		}
	}
}

func TestNoConnectionGetsPastWhileTheRulesAreReplaced(t *testing.T) {
	w := newWorld(t)
	w.pod.mustRedirect(t, arguments()...)
	var made atomic.Int64
	stop, past := make(chan struct{}), make(chan []string, 1)
	go func() {
		var wrong []string
		defer func() { past <- wrong }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got := w.pod.reach(someone, "tcp", "198.51.100.1:80"); got != "captured 198.51.100.1:80" {
				wrong = append(wrong, got)
			}
			made.Add(1)
		}
	}()
	for replaced := 0; replaced < 100 || made.Load() < 100; replaced++ {
		w.pod.mustRedirect(t, arguments()...)
	}
	close(stop)
	for _, got := range <-past {
		t.Error(got)
	}
}
