// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// Faces say where proxies listen, besides the addresses of Services.
type Faces struct {
	// IPv6 is whether pods have addresses of both families.
	IPv6 bool
	// GatewayPort is where gateways listen; 0 without gateways.
	GatewayPort int
	// GatewayAccount is the service account, in Plumbline's namespace, whose pods are
	// gateways.
	GatewayAccount string
	// GatewayTrustedCIDRs are clients that may choose a variation by its override
	// header, comma separated.
	GatewayTrustedCIDRs string
	// GatewayHops is how many proxies before the gateway are believed.
	GatewayHops int
}

// maxHops is more proxies than anybody puts in a row.
const maxHops = 10

// AddFlags registers the flags with their defaults.
func (f *Faces) AddFlags(fs *flag.FlagSet) {
	fs.BoolVar(&f.IPv6, "ipv6", false, "whether pods have addresses of both families; local ports and gateways then listen on both")
	fs.IntVar(&f.GatewayPort, "gateway-port", 0, "port that gateways listen on, 1024 or more; 0 without gateways")
	fs.StringVar(&f.GatewayAccount, "gateway-account", "plumbline-gateway", "service account, in --namespace, whose pods are gateways")
	fs.StringVar(&f.GatewayTrustedCIDRs, "gateway-trusted-cidrs", "", "clients of gateways that may choose a variation by its override header, as ranges of the addresses that connect, comma separated")
	fs.IntVar(&f.GatewayHops, "gateway-hops", 0, "how many proxies before the gateways are believed in x-forwarded-for and x-forwarded-proto")
}

// Trusted are the ranges of GatewayTrustedCIDRs, masked, each once: an Envoy refuses a
// listener that has one twice, and 10.1.0.0/16 and 10.1.2.3/16 are one.
func (f *Faces) Trusted() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range SplitList(f.GatewayTrustedCIDRs) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no range of addresses, as in 10.0.0.0/8", text)
		}
		all = append(all, p.Masked())
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all), nil
}

func (f *Faces) validate() field.ErrorList {
	var errs field.ErrorList
	switch {
	case f.GatewayPort == 0:
	case f.GatewayPort == inject.AdminPort, f.GatewayPort == inject.StatusPort:
		errs = append(errs, field.Invalid(flagPath("gateway-port"), f.GatewayPort, "belongs to the proxy: take another one"))
	case f.GatewayPort < 1024, f.GatewayPort > 65535:
		errs = append(errs, field.Invalid(flagPath("gateway-port"), f.GatewayPort, "must be 1024 to 65535, or 0 without gateways"))
	}
	for _, msg := range validation.IsDNS1123Subdomain(f.GatewayAccount) {
		errs = append(errs, field.Invalid(flagPath("gateway-account"), f.GatewayAccount, msg))
	}
	if _, err := f.Trusted(); err != nil {
		errs = append(errs, field.Invalid(flagPath("gateway-trusted-cidrs"), f.GatewayTrustedCIDRs, err.Error()))
	}
	if f.GatewayHops < 0 || f.GatewayHops > maxHops {
		errs = append(errs, field.Invalid(flagPath("gateway-hops"), f.GatewayHops, fmt.Sprintf("must be 0 to %d", maxHops)))
	}
	return errs
}
