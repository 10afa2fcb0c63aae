// SPDX-License-Identifier: Apache-2.0

package options

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
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
	// GatewayHosts give hosts to namespaces: a JSON list of objects with a namespaceSelector
	// and domains. Empty: any namespace may have any host.
	GatewayHosts string
}

// maxHops is more proxies than anybody puts in a row.
const maxHops = 10

// AddFlags registers the flags with their defaults.
func (f *Faces) AddFlags(fs *flag.FlagSet) {
	fs.BoolVar(&f.IPv6, "ipv6", false, "whether pods have addresses of both families; local ports and gateways then listen on both")
	fs.IntVar(&f.GatewayPort, "gateway-port", 0, "port that gateways listen on, 1024 or more; 0 without gateways")
	fs.StringVar(&f.GatewayAccount, "gateway-account", "plumbline-gateway", "service account, in --namespace, of the pods that are gateways")
	fs.StringVar(&f.GatewayTrustedCIDRs, "gateway-trusted-cidrs", "", "clients of gateways that may choose a variation by its override header, as ranges of the addresses that connect, comma separated")
	fs.StringVar(&f.GatewayHosts, "gateway-hosts", "", "hosts that namespaces may have at gateways, as a JSON list of objects with namespaceSelector and domains; empty: any namespace any host")
	fs.IntVar(&f.GatewayHops, "gateway-hops", 0, "how many proxies before the gateways are believed in x-forwarded-for and x-forwarded-proto")
}

// Grants are those of GatewayHosts.
func (f *Faces) Grants() ([]ir.Grant, error) {
	if f.GatewayHosts == "" {
		return nil, nil
	}
	var all []struct {
		NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
		Domains           []string              `json:"domains"`
	}
	decoder := json.NewDecoder(strings.NewReader(f.GatewayHosts))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf(`reading the hosts of namespaces, as in [{"namespaceSelector":{"matchLabels":{"team":"shop"}},"domains":["*.example.com"]}]: %w`, err)
	}
	var grants []ir.Grant
	for i, g := range all {
		if g.NamespaceSelector == nil {
			return nil, fmt.Errorf("entry %d has no namespaceSelector: give it one, {} for all namespaces", i)
		}
		selector, err := metav1.LabelSelectorAsSelector(g.NamespaceSelector)
		if err != nil {
			return nil, fmt.Errorf("namespaceSelector of entry %d: %w", i, err)
		}
		for _, domain := range g.Domains {
			if len(validation.IsDNS1123Subdomain(domain)) > 0 && len(validation.IsWildcardDNS1123Subdomain(domain)) > 0 {
				return nil, fmt.Errorf("domain %q of entry %d: want a name as shop.example.com or *.example.com, in small letters", domain, i)
			}
		}
		grants = append(grants, ir.Grant{Namespaces: selector, Domains: g.Domains})
	}
	return grants, nil
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
	if _, err := f.Grants(); err != nil {
		errs = append(errs, field.Invalid(flagPath("gateway-hosts"), f.GatewayHosts, err.Error()))
	}
	if f.GatewayHops < 0 || f.GatewayHops > maxHops {
		errs = append(errs, field.Invalid(flagPath("gateway-hops"), f.GatewayHops, fmt.Sprintf("must be 0 to %d", maxHops)))
	}
	return errs
}
