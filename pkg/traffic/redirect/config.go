// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// MaxExclusions is how many ports, and how many ranges, can be excluded.
const MaxExclusions = 64

// Config is what the rules depend on.
type Config struct {
	// ProxyUID is the user of the proxy, 1 to 2147483647. Nothing else in the pod may
	// run as that user.
	ProxyUID int64
	// CapturePort is where the proxy takes redirected connections, on loopback.
	CapturePort uint16
	// IPv6 redirects that too; otherwise it stays untouched.
	IPv6 bool
	// ExcludePorts and ExcludeCIDRs are destinations that are not redirected.
	ExcludePorts []uint16
	ExcludeCIDRs []netip.Prefix
}

// AddFlags makes a flag of each field. Lists have commas, and may be empty.
func (c *Config) AddFlags(fs *flag.FlagSet) {
	fs.Int64Var(&c.ProxyUID, "proxy-uid", c.ProxyUID, "`user` of the proxy, with connections of its own that leave the pod")
	fs.Func("capture-port", "`port` on loopback where the proxy takes connections", func(text string) (err error) {
		c.CapturePort, err = port(text)
		return err
	})
	fs.BoolVar(&c.IPv6, "ipv6", c.IPv6, "redirect IPv6 too")
	fs.Func("exclude-ports", "destination `ports` that are not redirected: 5432,6379", func(text string) (err error) {
		c.ExcludePorts, err = list(text, port)
		return err
	})
	fs.Func("exclude-cidrs", "`ranges` of destinations that are not redirected: 10.0.0.0/8,fd00::/8", func(text string) (err error) {
		c.ExcludeCIDRs, err = list(text, cidr)
		return err
	})
}

func list[T any](text string, one func(string) (T, error)) ([]T, error) {
	if text == "" {
		return nil, nil
	}
	var out []T
	for part := range strings.SplitSeq(text, ",") {
		item, err := one(part)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func port(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no port: give a number from 1 to 65535", text)
	}
	return uint16(n), nil
}

func cidr(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no range: give an address and a length, as in 10.0.0.0/8 or fd00::/8", text)
	}
	return p, nil
}

// Validate names each flag that cannot be right, and what to give instead.
func (c Config) Validate() error {
	var errs []error
	if c.ProxyUID < 1 || c.ProxyUID > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("--proxy-uid: %d is not 1 to %d: give the user that the proxy runs as, and not root, "+
			"for all that runs as that user goes past the proxy", c.ProxyUID, math.MaxInt32))
	}
	if c.CapturePort == 0 {
		errs = append(errs, errors.New("--capture-port: give the port where the proxy takes connections, 1 to 65535"))
	}
	return errors.Join(append(errs, c.validatePorts(), c.validateCIDRs())...)
}

func (c Config) validatePorts() error {
	switch {
	case len(c.ExcludePorts) > MaxExclusions:
		return fmt.Errorf("--exclude-ports: %d ports are more than %d: exclude ranges of addresses instead", len(c.ExcludePorts), MaxExclusions)
	case slices.Contains(c.ExcludePorts, 0):
		return errors.New("--exclude-ports: 0 is no port: give numbers from 1 to 65535")
	case slices.Contains(c.ExcludePorts, c.CapturePort):
		return fmt.Errorf("--exclude-ports: %d is the capture port, which belongs to the proxy: take it out of the list", c.CapturePort)
	}
	return nil
}

func (c Config) validateCIDRs() error {
	if len(c.ExcludeCIDRs) > MaxExclusions {
		return fmt.Errorf("--exclude-cidrs: %d ranges are more than %d: join some", len(c.ExcludeCIDRs), MaxExclusions)
	}
	for _, p := range c.ExcludeCIDRs {
		switch {
		case !p.IsValid():
			return errors.New("--exclude-cidrs: a range without an address: give one as in 10.0.0.0/8")
		case canonical(p).Addr().Is6() && !c.IPv6:
			return fmt.Errorf("--exclude-cidrs: %s is IPv6, which is not redirected: take it out, or set --ipv6", p)
		}
	}
	return nil
}

// canonical is the same range as packets have it: without bits that do not count, and
// IPv4 as such, because a socket that connects to ::ffff:10.0.0.1 sends IPv4.
func canonical(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}
