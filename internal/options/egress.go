// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
)

// Egress are the flags of a process that sends requests to addresses of people. The flags belong to the
// installation: no policy and no release can widen them.
type Egress struct {
	// AllowedNetworks are networks that are not public and may be told all the same,
	// as CIDR, separated by commas.
	AllowedNetworks string
	// PlainHTTP permits http:// beside https://.
	PlainHTTP bool
}

// AddFlags registers the flags with their defaults.
func (o *Egress) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.AllowedNetworks, "notify-allowed-networks", "", "networks that are not public and that notifications and webhooks of rollouts may still go to, as CIDR, separated by commas")
	fs.BoolVar(&o.PlainHTTP, "notify-plain-http", false, "permit http:// beside https:// for notifications and webhooks of rollouts")
}

// Validate lists what cannot work, each with the flag as its path.
func (o *Egress) Validate() field.ErrorList {
	if _, err := o.networks(); err != nil {
		return field.ErrorList{field.Invalid(flagPath("notify-allowed-networks"), o.AllowedNetworks, err.Error())}
	}
	return nil
}

// Rules say where requests may go; call Validate first.
func (o *Egress) Rules() (deliver.Egress, error) {
	networks, err := o.networks()
	return deliver.Egress{PlainHTTP: o.PlainHTTP, Allowed: networks}, err
}

func (o *Egress) networks() ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range SplitList(o.AllowedNetworks) {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("reading a network: %w", err)
		}
		// Bits behind the prefix are a mistake that would allow more than it says.
		if network != network.Masked() {
			return nil, fmt.Errorf("reading a network: %s has bits behind its prefix; %s is meant, or a longer prefix", text, network.Masked())
		}
		networks = append(networks, network)
	}
	return networks, nil
}
